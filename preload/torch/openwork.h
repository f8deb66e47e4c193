// SPDX-License-Identifier: Apache-2.0
/* openwork.h - counts collectives where that is wanted (torch_bridge.h) */
#pragma once

#include <stdint.h>

#include "collector/base/kp_hot.h"

extern _Atomic uint32_t kp_torch_watches; /* 0: it is not */
/* A range of the program, or of torch.distributed, begins or ends. */
KP_COLD void kp_torch_collective_begin(const uint8_t *rf);
KP_COLD void kp_torch_collective_end(const uint8_t *rf);

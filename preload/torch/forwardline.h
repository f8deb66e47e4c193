// SPDX-License-Identifier: Apache-2.0
/* forwardline.h - whose forward op autograd allocates for, by torch's sequence numbers, with KPROF_ON_OOM */
#pragma once

#include <stdint.h>

#include "collector/base/kp_hot.h"

extern _Atomic uint32_t kp_torch_forwards; /* 0: not wanted */
void kp_torch_forwards_setup(void);
/* An op begins on this thread, inside a hook. Returns what was open around it, for the end. */
KP_COLD uint64_t kp_torch_forward_begin(const uint8_t *rf);
KP_COLD void kp_torch_forward_end(const uint8_t *rf, uint64_t around);
/* The call site of a block: that of the forward op where a backward op is open, else `site` (python_bridge.h). */
KP_HOT uint32_t kp_torch_forward_site(uint32_t site);

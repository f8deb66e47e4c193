// SPDX-License-Identifier: Apache-2.0
/*
 * getenv.h - gives NVTX and the CUDA driver this library's path, without setting an environment variable
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/hook/hook.h"

/*
 * Call once, from the constructor, after kp_hook_start. answers: NVTX and CUDA are to be recorded. `more`: other taps
 * to install now, since each set costs a scan of all modules. 0 or -errno: no tap was installed.
 */
int kp_getenv_start(bool answers, const struct kp_tap_row *more, uint32_t count);

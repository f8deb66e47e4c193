// SPDX-License-Identifier: Apache-2.0
/*
 * getenv.h - tells NVTX and the CUDA driver where we are, without a word in the environment
 */
#ifndef KP_GETENV_H
#define KP_GETENV_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/hook/hook.h"

/*
 * Once, from the constructor, after kp_hook_start. answers: NVTX and CUDA are to be recorded. `more`: taps that go in
 * at the start as well, since each set is a look through all modules. 0 or -errno: nothing is answered.
 */
int kp_getenv_start(bool answers, const struct kp_tap_row *more, uint32_t count);

#endif

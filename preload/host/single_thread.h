// SPDX-License-Identifier: Apache-2.0
/*
 * single_thread.h - pauses helper threads while the host makes a call that needs a single-threaded process
 */
#pragma once

#include <stdint.h>

#include "preload/hook/hook.h"

enum { KP_SOLO_MORE = 4 };
/* Installs the taps, those of confine.c and `count` rows more, at most KP_SOLO_MORE, before the first helper thread is
 * made. Rules as for kp_hook_add_taps. */
void kp_solo_install(const struct kp_tap_row *more, uint32_t count);

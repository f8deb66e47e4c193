// SPDX-License-Identifier: Apache-2.0
/*
 * single_thread.h - pauses helper threads while the host makes a call that needs a single-threaded process
 */
#pragma once

#include <stdbool.h>

/* Installs the taps, and those of confine.c and selfsignal.c, before the first helper thread is made. Rules as for
 * kp_hook_add_taps. */
void kp_solo_install(void);

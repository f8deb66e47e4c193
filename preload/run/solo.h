// SPDX-License-Identifier: Apache-2.0
/*
 * solo.h - sends our threads away while the host calls what only a process of one thread may call
 */
#ifndef KP_SOLO_H
#define KP_SOLO_H

#include <stdbool.h>

/* Puts the taps in, and those of confine.c: when the first of our threads may be made. As kp_hook_add_taps. */
void kp_solo_install(void);

#endif

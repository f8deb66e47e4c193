// SPDX-License-Identifier: Apache-2.0
/*
 * locks.h - a host that locks its memory finds ours neither counted nor locked
 */
#ifndef KP_LOCKS_H
#define KP_LOCKS_H

#include "preload/hook/hook.h"

/* Functions whose calls come to us from the start on (kp_getenv_start). */
enum { KP_LOCKS_ROWS = 1 };
extern const struct kp_tap_row kp_locks_rows[KP_LOCKS_ROWS];

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * mlockall.h - keeps our memory out of the host's mlockall
 */
#pragma once

#include "preload/hook/hook.h"

/* Taps that kp_getenv_start installs. */
enum { KP_LOCKS_ROWS = 1 };
extern const struct kp_tap_row kp_locks_rows[KP_LOCKS_ROWS];

// SPDX-License-Identifier: Apache-2.0
/* execs.h - notes as which program this one goes on, or that it leaves without an exit */
#pragma once

#include "preload/hook/hook.h"

enum { KP_EXECS_ROWS = 14 };
extern const struct kp_tap_row kp_execs_rows[KP_EXECS_ROWS];
/* The program sends itself a signal that ends it: one of a crash is noted, with the line. Async-signal-safe. */
void kp_execs_signal(int number);

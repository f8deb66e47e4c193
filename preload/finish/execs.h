// SPDX-License-Identifier: Apache-2.0
/* execs.h - notes as which program this one goes on, or that it leaves without an exit */
#pragma once

#include "preload/hook/hook.h"

enum { KP_EXECS_ROWS = 13 };
extern const struct kp_tap_row kp_execs_rows[KP_EXECS_ROWS];

// SPDX-License-Identifier: Apache-2.0
/*
 * selfsignal.h - says what is kept where the program ends itself by a signal, as Python does after Ctrl-C
 */
#pragma once

#include "preload/hook/hook.h"

enum { KP_SELFSIGNAL_ROWS = 2 };
extern const struct kp_tap_row kp_selfsignal_rows[KP_SELFSIGNAL_ROWS];

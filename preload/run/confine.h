// SPDX-License-Identifier: Apache-2.0
/*
 * confine.h - lets a program go before it forbids itself what we do in it: system calls, the processor's clock
 */
#ifndef KP_CONFINE_H
#define KP_CONFINE_H

#include "preload/hook/hook.h"

enum { KP_CONFINE_ROWS = 3 };
extern const struct kp_tap_row kp_confine_rows[KP_CONFINE_ROWS];

#endif

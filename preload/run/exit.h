// SPDX-License-Identifier: Apache-2.0
/*
 * exit.h - ends the run: when the process exits, or earlier on demand
 */
#pragma once

#include "preload/hook/hook.h"

/* Registers a handler that runs before exit() destroys torch's objects. Outside fork, as libc may allocate. */
void kp_exit_watch(void);
/* Does what exit does though the program goes on. On a host thread, outside hooks. */
void kp_exit_early(void);

/* selfsignal.c: says what is kept where the program ends itself by a signal, as Python does after Ctrl-C */
enum { KP_SELFSIGNAL_ROWS = 2 };
extern const struct kp_tap_row kp_selfsignal_rows[KP_SELFSIGNAL_ROWS];

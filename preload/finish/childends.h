// SPDX-License-Identifier: Apache-2.0
/* childends.h - notes how child processes ended, as waitpid tells this process, and how it ends itself */
#pragma once

#include "preload/hook/hook.h"

enum { KP_CHILDENDS_ROWS = 5 };
extern const struct kp_tap_row kp_childends_rows[KP_CHILDENDS_ROWS];
/* A trace was written, and the program goes on: HOST_PID.ends (kp_ends.h) says so. It waits for the disk. */
void kp_childends_await(void);
bool kp_childends_awaits(void); /* it does, of this process; async-signal-safe */
/*
 * Says there how this process is about to end without an exit ("exec of sh"), and its status as wait(2) has it; "" and
 * KP_ENDS_PENDING: it goes on. It waits for the disk.
 */
void kp_childends_way(const char *way, int status);
/*
 * At exit: writes that file, where a child ended badly, or no trace tells how this process ends. It waits for the disk.
 * `is_told`: the last trace does. The process's own end is not noted if there is no trace.
 */
void kp_childends_write(bool is_told, bool has_trace);

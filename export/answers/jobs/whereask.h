// SPDX-License-Identifier: Apache-2.0
/* whereask.h - asks running processes of this machine where their threads stand (KPROF_CONTROL) */
#pragma once

#include "export/answers/hang/hangread.h"

/* Asks the process behind a socket, HOST_PID. False: it is no more, or `errno` says why it cannot be asked. */
bool kp_where_ask(struct kp_hang *hang, const char *path, const char *who);
/* Asks one process, by its number alone. Returns 0, or -1 with ENOENT: no process of that number listens. */
int kp_where_ask_pid(struct kp_hang *hang, long pid);
/*
 * Asks all processes of a folder; also adds the ranks of this machine that are gone, stopped or silent. Returns how
 * many sockets of other machines there are, or -1 with errno.
 */
int kp_where_ask_all(struct kp_hang *hang, const char *folder);
/*
 * Adds what processes wrote when they stood (KPROF_HANG), of the newest such time in the folder, and which are not
 * there yet. Returns how many.
 */
size_t kp_where_files(struct kp_hang *hang, const char *folder);
/* The text of the last answer, as the process wrote it. NULL: there is none. */
const char *kp_where_text(void);

// SPDX-License-Identifier: Apache-2.0
/* ctlsocket.h - the sockets by which running processes of this machine hear `kprof ctl` (KPROF_CONTROL) */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Connects to a socket that this user or root owns. -1: no process answers there, errno says why. */
int kp_ctlsocket_connect(const char *path);
/* Sends a request, which ends with a newline, and reads the answer up to its newline. False: none came in time. */
bool kp_ctlsocket_ask(int fd, const char *request, char *answer, size_t bytes);

/* A process in which nothing is recorded yet has a socket for `where` alone, with this ending. */
#define KP_CTLSOCKET_EARLY ".where"
/* `who`: HOST_PID */
typedef void (*kp_ctlsocket_fn)(void *context, const char *path, const char *who);
/*
 * Visits the sockets of this machine in a folder, by name. On a shared folder those of other machines cannot be
 * reached: returns how many there are, or -1 with errno.
 */
int kp_ctlsocket_each(const char *folder, kp_ctlsocket_fn visit, void *context);
/* The path of a process's socket with this ending, ".sock" or KP_CTLSOCKET_EARLY, in any folder. False: it has none. */
bool kp_ctlsocket_of_pid(long pid, const char *ending, char *out, size_t bytes);
/* Wakes the processes of this machine: each looks at once what is asked of all ranks. */
void kp_ctlsocket_knock(const char *folder);
/* Removes the sockets of this machine whose processes are gone: no process listens, and none has the number. */
void kp_ctlsocket_sweep(const char *folder);

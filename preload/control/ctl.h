// SPDX-License-Identifier: Apache-2.0
/*
 * ctl.h - control from outside while the program runs: a socket (KPROF_CONTROL) and a signal (KPROF_SIGNAL)
 *
 * The thread kprof-control answers both. The host's threads do nothing for it, and never wait for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_config;
struct pollfd;

/* --- ctl.c: the thread, the socket, its clients --- */
void kp_ctl_setup(const struct kp_config *config); /* once, by the constructor */
bool kp_ctl_is_wanted(void);
/* The run begins, not in a worker: makes the socket, watches the signal, starts the thread. On failure logs a line. */
void kp_ctl_begin(void);
/* In a process that neither torch nor CUDA is in yet: the thread alone. After a second it answers where threads stand,
 * by HOST_PID.where. By the constructor. */
void kp_ctl_begin_early(void);
void kp_ctl_end(void);    /* exit: removes the socket's name. The thread ends by itself */
void kp_ctl_forget(void); /* in a child: it keeps neither the socket nor the signal */

/* --- ctl_job.c: a start of all ranks --- */
void kp_ctl_job_setup(const struct kp_config *config); /* once, by the constructor */
bool kp_ctl_job_is_wanted(void);
/* Looks at what kprof ctl asks of all ranks, if that is due, and does it. Returns how many ms later it is due again. */
uint32_t kp_ctl_job_look(void);
void kp_ctl_job_look_soon(void); /* kprof ctl, or the rank that looks for this one, knocked: the next look is due */
void kp_ctl_job_end(void);       /* exit, or control ends: this rank takes no part any more */
void kp_ctl_job_forget(void);    /* in a child */

/* --- ctl_peers.c: one rank of this machine looks at the shared folder, and wakes the others --- */
/* Names the ranks of this machine that belong together: of one user, with one folder. Once. */
void kp_ctl_peers_begin(const char *folder);
/* Whether this rank has to look by itself: it is the one that looks, or none looks for it. Never waits. */
bool kp_ctl_peers_must_look(uint64_t now_ms);
void kp_ctl_peers_wake(void);          /* the call changed: the others look, too */
struct pollfd kp_ctl_peers_poll(void); /* fd -1: nothing to wait for */
bool kp_ctl_peers_hear(void);          /* that has something. True: this rank looks now */
void kp_ctl_peers_end(void);           /* control ends, or in a child: another rank looks from now on */

/* --- ctl_answer.c --- */
/*
 * Does what a line asks for, and writes the answer, a JSON object and a newline. `line` is changed. Returns the
 * answer's length; 0: the answer is `more`, which the caller drops. has_begun: the run has. May wait for a second, as
 * kprof_start may.
 */
struct kp_where_text;
size_t kp_ctl_answer(char *line, char *answer, size_t bytes, bool has_begun, struct kp_where_text *more);
int kp_ctl_turn(void); /* a signal came: stops the window that records, or starts one. 0 or -errno */

/* --- ctl_signal.c --- */
int kp_ctl_signal_parse(const char *text); /* 0: none of the signals that may be used */
/* `ring` is called by the handler. */
void kp_ctl_signal_watch(int number, void (*ring)(void));
void kp_ctl_signal_forget(void);
bool kp_ctl_signal_take(void); /* Did the signal come since the last call? */

// SPDX-License-Identifier: Apache-2.0
/* latest.h - the files that a command takes when the user names none, or names a folder where one trace is wanted */
#pragma once

#include <stddef.h>

/*
 * Replaces *paths by the files that are meant, and says on stderr which they are. If no path is given that is the
 * latest run in KPROF_DIR, or in ./kprof. DIR/latest is the latest run in DIR, where DIR has no file of that name. With
 * KP_LATEST_ONE, one folder stands for its newest trace, and with KP_LATEST_RANKS for the newest trace of each rank of
 * its newest run. KP_LATEST_REST with that: of a run without ranks the newest trace, and behind it all others of the
 * folder, the newer the sooner. KP_LATEST_PARENT with KP_LATEST_ONE: if another process of the folder started that
 * trace's, directly or through others, then the newest of that process. For a wrapper (timeout, a shell) it is that of
 * the program that it ran. A launcher's trace or spool beside its ranks' is left out (torchrun, with stacks). The rest
 * of a killed program in that run, or in a folder that the user names, is recovered before, unless KP_LATEST_SPOOL is
 * set. Returns how many paths there are, or 0 with the message said. The new paths live as long as the command.
 */
enum { KP_LATEST_ONE = 1, KP_LATEST_SPOOL = 2, KP_LATEST_RANKS = 4, KP_LATEST_PARENT = 8, KP_LATEST_REST = 16 };
/* Notes in the folder, where there is one, that a run begins now: what it then does not write is not mistaken for an
 * older run's. */
void kp_latest_begin(const char *folder);
int kp_latest_take(const char *command, char ***paths, int count, unsigned wish);

/* --- latest_recover.c --- */

/* Recovers those of a folder's spools that the caller's own killed programs left. Returns how many are gone now. */
unsigned kp_latest_recover(const char *command, const char *folder, const char *const *names, size_t count);

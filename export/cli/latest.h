// SPDX-License-Identifier: Apache-2.0
/* latest.h - the files that a command takes when the user names none, or names a folder where one trace is wanted */
#ifndef KP_LATEST_H
#define KP_LATEST_H

#include <stdbool.h>

/*
 * Replaces *paths by the files that are meant, and says on stderr which they are. Without paths that is the latest run
 * in KPROF_DIR, or in ./kprof. With `wants_one`, one folder stands for its newest trace. Returns how many paths there
 * are, or 0 with the message said. The new paths live as long as the command.
 */
int kp_latest_take(const char *command, char ***paths, int count, bool wants_one);

#endif

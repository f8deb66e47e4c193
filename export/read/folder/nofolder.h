// SPDX-License-Identifier: Apache-2.0
/* nofolder.h - what to say of a folder that is not there */
#pragma once

#include <stdbool.h>

/* What a run says that left no trace: its last line. */
#define KP_NOFOLDER_WHY "in its last line, \"no trace: ...\" or \"nothing was recorded: ...\""

/* Is a file of this name a trace, or a spool? */
typedef bool (*kp_nofolder_fn)(const char *name);
/* Says it on stderr, with the folder beside it that may be meant, or with those that have traces. */
void kp_nofolder_say(const char *path, kp_nofolder_fn is_trace);

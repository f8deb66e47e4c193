// SPDX-License-Identifier: Apache-2.0
/* endranks.h - what the other ranks' traces of a run that has just ended tell of one rank's findings */
#pragma once

#include "export/answers/runadvice/advised.h"

/* Compares the ranks of the run where the trace at `path` is one of several, and their traces are read quickly:
 * `advised->has_read_ranks` says so then. Unasked it reads fewer. */
void kp_endranks_tell(struct kp_advised *advised, const char *path, const char *folder, const struct timespec *since,
                      bool is_asked);

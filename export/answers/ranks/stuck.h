// SPDX-License-Identifier: Apache-2.0
/* stuck.h - whether a job stands still at the end of its traces, and in what each rank is */
#pragma once

#include <stdio.h>

#include "export/read/tree/chosen.h"

enum { KP_STUCK_NAME_BYTES = 160, KP_STUCK_BYTES = 1200 };
struct kp_stuckrank {
    long rank; /* -1: of no job */
    bool in_collective, is_stuck;
    int64_t ns;                   /* so long, up to the end of the trace */
    char in[KP_STUCK_NAME_BYTES]; /* what is open; "": no op */
    char after[KP_STUCK_NAME_BYTES],
        call[KP_STUCK_NAME_BYTES]; /* the last op, and the Python function; "": not known */
};
struct kp_stuck { /* all zero: empty */
    struct kp_stuckrank *of;
    size_t count, capacity;
};

/* Looks at the end of a trace. `chosen`: its steps. */
void kp_stuck_add(struct kp_stuck *stuck, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* Says in one line which rank is in what, and since when. False: none stands. */
bool kp_stuck_tell(char *out, size_t bytes, const struct kp_stuck *stuck);
void kp_stuck_fini(struct kp_stuck *stuck);

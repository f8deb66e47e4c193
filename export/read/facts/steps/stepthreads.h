// SPDX-License-Identifier: Apache-2.0
/* stepthreads.h - the threads that run steps: one in a training, several where a server's handlers run steps at once */
#pragma once

#include "export/read/tree/chosen.h"

struct kp_stepthread {
    int64_t pid, tid;
    size_t steps;
};
struct kp_stepthreads { /* all zero: the trace has no step */
    struct kp_stepthread *of;
    size_t count, capacity;
    bool are_others; /* none is a program's first thread, as far as the trace tells */
};
void kp_stepthreads_find(struct kp_stepthreads *out, const struct kp_tree *tree);
/* Is it a call of Python in which a thread waits that runs no step? Such a thread is idle, and no cost. The first
 * thread of a program is idle only where others run its steps. */
bool kp_stepthreads_is_idle(const struct kp_stepthreads *threads, const struct kp_tree *tree,
                            const struct kp_node *node);
void kp_stepthreads_fini(struct kp_stepthreads *threads);

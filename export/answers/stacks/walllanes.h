// SPDX-License-Identifier: Apache-2.0
/* walllanes.h - the threads of a trace's host events, and which is the main one */
#pragma once

#include "export/answers/stacks/calltree.h"
#include "export/read/kineto/stepends.h"
#include "export/read/store/keyindex.h"
#include "export/read/tree/tree.h"

struct kp_walllane { /* a thread */
    uint64_t thread; /* kp_tree_thread() */
    int64_t tid, from, to;
    uint32_t *nodes; /* by time */
    size_t count, capacity, steps;
    bool is_engine, is_process,
        is_named;   /* is_engine: one of autograd's. is_named: its id, or its process's, is text */
    bool has_other; /* than the engine's ops */
};
struct kp_walllanes { /* all zero: empty */
    struct kp_stepends ends;
    struct kp_keyindex threads;
    struct kp_walllane *of;
    size_t count, capacity, main;
};
/* `parts`: by node (enum kp_part). */
void kp_walllanes_find(struct kp_walllanes *lanes, const struct kp_tree *tree, const uint8_t *parts);
void kp_walllanes_fini(struct kp_walllanes *lanes);

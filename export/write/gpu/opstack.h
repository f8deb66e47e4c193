// SPDX-License-Identifier: Apache-2.0
/* opstack.h - keeps each thread's ops that are open at the current time of a walk */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_open_op {
    uint64_t start_ns, end_ns;
    uint32_t external;   /* External id of the innermost op, at or around this, that is no annotation; or 0 */
    uint32_t annotation; /* 1 + place in the stack of the innermost annotation, at or around this; or 0 */
    /* of an annotation */
    uint32_t own, note; /* its External id; its number among the notes, or 0 before it launched work */
    const char *name;   /* NULL: a step */
    uint64_t step;
};
struct kp_op_thread {
    uint32_t tid; /* 0: free place */
    uint32_t n, cap;
    bool is_named;        /* its row of the trace was written */
    uint64_t last_end_ns; /* of the op that was closed last */
    struct kp_open_op *of;
};
struct kp_opstack {
    struct kp_op_thread *threads; /* a hash table, at most half full */
    uint32_t n, cap;
};

/* made when missing, or NULL without memory */
struct kp_op_thread *kp_opstack_thread(struct kp_opstack *s, uint32_t tid);
void kp_opstack_close(struct kp_op_thread *thread, uint64_t now_ns); /* closes ops that ended by now_ns */
/* Opens an op behind those that are open. The caller fills in the rest. NULL: no memory. */
struct kp_open_op *kp_opstack_open(struct kp_op_thread *thread, uint64_t start_ns, uint64_t end_ns);
void kp_opstack_fini(struct kp_opstack *s);

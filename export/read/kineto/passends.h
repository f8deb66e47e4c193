// SPDX-License-Identifier: Apache-2.0
/* passends.h - backward passes that end the steps of a trace in which nothing else does (decisions/190) */
#pragma once

#include "export/read/kineto/kineto.h"

/* The last range of the engine in such a pass: its flag. The engine's ranges have no inputs. */
#define KP_KINETO_ENDS_PASS KP_KINETO_TENSOR_FIRST

struct kp_pass_op {
    int64_t start_ns, end_ns;
    int64_t pid, tid;
    uint64_t thread;
    uint32_t name, index; /* index: of the event, as the caller counts them */
    bool has_seq, has_names;
    bool is_outer; /* inside of no other op of its thread; set by kp_passends_settle() */
};
/* All zero: empty. Ops are seen in any order. */
struct kp_passends {
    struct kp_pass_op *ops;
    size_t count, capacity;
    int64_t pid, tid; /* of the thread that calls the engine; set by kp_passends_settle() */
};
void kp_passends_see(struct kp_passends *passes, const struct kp_kineto_event *event, size_t index);
/*
 * Keeps the ops with which a step ends, in order: the last of each outermost backward pass of the thread that has most
 * of them. Passes between two updates of the parameters are of one step; of kinds that alternate regularly (a GAN's),
 * all are. No pass is left if they do not.
 */
void kp_passends_settle(struct kp_passends *passes, const struct kp_kineto *trace);
void kp_passends_fini(struct kp_passends *passes);

static inline bool kp_passends_ends(const struct kp_kineto *trace, const struct kp_kineto_event *event)
{
    return trace->has_pass_ends && event->flags & KP_KINETO_ENDS_PASS &&
           kp_kineto_is_engine(kp_kineto_text(trace, event->name));
}
/* Flags these ops, if the trace has no steps otherwise. */
void kp_passends_mark(struct kp_kineto *trace);
/* May passes end the steps of a trace with these names? */
bool kp_passends_may(const struct kp_kineto *trace);

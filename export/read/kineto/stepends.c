// SPDX-License-Identifier: Apache-2.0
/* stepends.c - decides which ranges end the steps of a trace that marks none */
#include "export/read/kineto/stepends.h"

#include <string.h>

#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/passends.h"

static enum kp_stepends_kind kind_of(const char *name)
{
    if (kp_kineto_is_engine(name)) return KP_STEPENDS_PASS;
    if (kp_stepends_is_optimizer(name)) return KP_STEPENDS_OPTIMIZER;
    return strncmp(name, "enumerate(DataLoader)#", 22) == 0 ? KP_STEPENDS_BATCH : KP_STEPENDS_CALL;
}

/* Batches before the first step of an optimizer were an evaluation, or data that was prepared (step_source.c). */
static bool is_void(const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    const char *const source = kp_kineto_fact(trace, "kprof.step_source");
    const bool is_batch = kind_of(kp_kineto_text(trace, e->name)) == KP_STEPENDS_BATCH;
    return is_batch && source && strcmp(source, "dataloader") != 0;
}

bool kp_stepends_may(const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    if (e->kind == KP_KINETO_OP) return kp_passends_ends(trace, e);
    if (e->kind != KP_KINETO_ANNOTATION) return false;
    if (!trace->has_step_ends) return kp_stepends_is_optimizer(kp_kineto_text(trace, e->name));
    return strcmp(kp_kineto_text(trace, e->concrete), KP_STEPENDS_MARK) == 0 && !is_void(trace, e);
}

const char *kp_stepends_what(enum kp_stepends_kind kind)
{
    static const char *const names[] = {"", "optimizer step", "batch load", "kprof_step()", "backward pass"};
    return names[kind];
}

bool kp_stepends_counts(struct kp_stepends *ends, const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    const char *const name = kp_kineto_text(trace, e->name);
    const int64_t pid = e->flags & KP_KINETO_TEXT_PID ? -1 : e->pid, tid = e->flags & KP_KINETO_TEXT_TID ? -1 : e->tid;
    const bool is_first = !ends->is_known;
    if (is_first) {
        *ends = (struct kp_stepends){.is_known = true, .pid = pid, .tid = tid};
        memcpy(ends->name, name, strnlen(name, sizeof ends->name - 1));
    }
    ends->kind = kind_of(name);
    if (trace->has_step_ends || is_first || ends->kind == KP_STEPENDS_PASS) return true;
    return pid == ends->pid && tid == ends->tid && strncmp(name, ends->name, sizeof ends->name - 1) == 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * phasetail.c - ends the trace of a phase that was open when the program ended with its last op
 *
 * A program whose last call is kprof_phase("validate") leaves that phase open while Python and torch shut down. The
 * recorder cannot tell that time from the phase's own, but no op runs there.
 */
#include "export/read/kineto/phasetimes.h"

#include <inttypes.h>
#include <stdio.h>

#include "export/read/kineto/kineto_facts.h"

struct tail {
    int64_t last_ns, end_ns; /* of the last op, and of all */
    bool has_last;
};

static bool is_of_host(const struct kp_kineto_event *e)
{
    return e->kind == KP_KINETO_OP || e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_PYTHON ||
           e->kind == KP_KINETO_RUNTIME || e->kind == KP_KINETO_OVERHEAD;
}

/* A call of the runtime is none: some free what the program had. A step that is not whole goes on to the end. */
static bool is_activity(const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    if (e->flags & KP_KINETO_UNFINISHED) return false;
    if (e->kind == KP_KINETO_OP || e->kind == KP_KINETO_GPU) return true;
    if (e->kind != KP_KINETO_ANNOTATION) return false;
    return !kp_kineto_is_step(kp_kineto_text(trace, e->name)) || !e->concrete;
}

static struct tail tail_find(const struct kp_kineto *trace)
{
    struct tail t = {.end_ns = trace->has_start ? trace->end_ns : INT64_MIN};
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_kineto_event *e = &trace->events[i];
        const int64_t end_ns = e->start_ns + e->dur_ns;
        if (e->phase != 'X' || (!is_of_host(e) && e->kind != KP_KINETO_GPU)) continue;
        if (end_ns > t.end_ns) t.end_ns = end_ns;
        if (!is_activity(trace, e)) continue;
        if (!t.has_last || end_ns > t.last_ns) t.last_ns = end_ns;
        t.has_last = true;
    }
    return t;
}

static void event_cut(struct kp_kineto_event *e, int64_t last_ns)
{
    if (e->phase != 'X' || !is_of_host(e) || e->start_ns + e->dur_ns <= last_ns) return;
    if (e->start_ns > last_ns) e->start_ns = last_ns;
    e->dur_ns = last_ns - e->start_ns;
}

static void tail_note(struct kp_kineto *trace, int64_t tail_ns)
{
    char text[160];
    const int n = snprintf(text, sizeof text, "%s:1:%" PRId64, kp_kineto_fact(trace, "kprof.phase"), tail_ns / 1000);
    if (n >= 0 && (size_t)n < sizeof text) kp_fact_put(trace, "kprof.phase_tail", text);
}

void kp_phasetail_cut(struct kp_kineto *trace)
{
    if (!kp_kineto_number(trace, "kprof.phase_open") || !kp_kineto_fact(trace, "kprof.phase") || trace->keep) return;
    const struct tail t = tail_find(trace);
    if (!t.has_last || t.end_ns <= t.last_ns) return;
    for (size_t i = 0; i < trace->count; i++) event_cut(&trace->events[i], t.last_ns);
    if (trace->has_start) trace->end_ns = t.last_ns;
    tail_note(trace, t.end_ns - t.last_ns);
}

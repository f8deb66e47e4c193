// SPDX-License-Identifier: Apache-2.0
/*
 * kineto_torn.c - of a trace whose file ends early: up to when it tells, and which steps it has whole
 *
 * Events stand in the file by their begin, so behind the last op of the file nothing is known. An event that goes on
 * there is shortened to it, and a step is no whole one. A file that ends among events of devices has the host whole.
 */
#include "export/read/kineto/kineto_torn.h"

#include <stdlib.h>

/* The end of all that is known of the host. False: the host is whole. */
static bool end_find(const struct kp_kineto *trace, int64_t *end_ns)
{
    for (size_t i = trace->count; i-- > 0;) {
        const struct kp_kineto_event *e = &trace->events[i];
        if (e->kind == KP_KINETO_GPU || e->kind == KP_KINETO_GPU_ANNOTATION) return false;
        if (e->kind != KP_KINETO_OP || e->phase != 'X') continue;
        *end_ns = e->start_ns;
        return true;
    }
    return false;
}

static void step_note(struct kp_kineto *trace, struct kp_kineto_event *e, bool goes_on, struct kp_kineto_torn *out)
{
    const long number = strtol(kp_kineto_text(trace, e->name) + sizeof "ProfilerStep#" - 1, NULL, 10);
    if (goes_on) {
        static const char word[] = "cut short";
        e->concrete = kp_strings_put(trace->strings, word, sizeof word - 1);
        out->has_cut = true;
        out->cut = number;
        return;
    }
    if (*kp_kineto_text(trace, e->concrete)) return; /* no whole one anyway */
    if (!out->whole++) out->first = out->last = number;
    if (number < out->first) out->first = number;
    if (number > out->last) out->last = number;
}

void kp_kineto_end_torn(struct kp_kineto *trace, struct kp_kineto_torn *out)
{
    int64_t end_ns = 0, begin_ns = INT64_MAX;
    const bool is_cut = end_find(trace, &end_ns);
    *out = (struct kp_kineto_torn){.is_known = is_cut};
    for (size_t i = 0; i < trace->count; i++) {
        struct kp_kineto_event *e = &trace->events[i];
        const bool goes_on = is_cut && e->phase == 'X' && e->start_ns + e->dur_ns > end_ns;
        if (e->kind == KP_KINETO_ANNOTATION && e->phase == 'X' && kp_kineto_is_step(kp_kineto_text(trace, e->name)))
            step_note(trace, e, goes_on, out);
        if (e->phase == 'X' && e->start_ns < begin_ns) begin_ns = e->start_ns;
        if (goes_on) e->dur_ns = e->start_ns < end_ns ? end_ns - e->start_ns : 0;
    }
    if (is_cut) out->span_ns = end_ns - begin_ns;
    if (is_cut && (!trace->end_ns || trace->end_ns > end_ns)) trace->end_ns = end_ns;
}

// SPDX-License-Identifier: Apache-2.0
/* kineto_windows.c - the windows of a trace of a phase: their time, and of which run they are */
#include "export/read/kineto/kineto_windows.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/store/qsort.h"

/* From the first event to the end of the last; false: none has a time. */
static bool events_span(const struct kp_kineto *trace, struct kp_kineto_window *out)
{
    bool any = false;
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_kineto_event *e = &trace->events[i];
        const bool has_time = e->phase == 'X' && e->kind != KP_KINETO_OTHER && e->kind != KP_KINETO_MEMORY;
        if (!has_time || e->flags & KP_KINETO_UNFINISHED) continue;
        if (!any || e->start_ns < out->start_ns) out->start_ns = e->start_ns;
        if (!any || e->start_ns + e->dur_ns > out->end_ns) out->end_ns = e->start_ns + e->dur_ns;
        any = true;
    }
    if (any) out->pid = trace->events[0].pid;
    return any;
}

void kp_kineto_windows_note(struct kp_kineto *trace)
{
    struct kp_kineto_window w = {.run = kp_kineto_number(trace, "kprof.phase_run"),
                                 .part = kp_kineto_number(trace, "kprof.phase_part"),
                                 .is_gapless = kp_kineto_number(trace, "kprof.phase_gapless"),
                                 .is_left = kp_kineto_number(trace, "kprof.phase_leaving")};
    if (!kp_kineto_fact(trace, "kprof.phase") || trace->windows || !events_span(trace, &w)) return;
    /* The profiler's span begins with the warm-up, which is no part of the window. A gapless one has none. */
    if (trace->has_start && w.is_gapless && trace->start_ns < w.start_ns) w.start_ns = trace->start_ns;
    if (trace->has_start && trace->end_ns > w.end_ns) w.end_ns = trace->end_ns;
    trace->windows = kp_kineto_room(1, sizeof *trace->windows);
    *trace->windows = (struct kp_kineto_windows){0};
    *KP_KINETO_NEXT(trace->windows->of, trace->windows->count, trace->windows->capacity) = w;
}

void kp_kineto_windows_append(struct kp_kineto_windows *to, const struct kp_kineto_windows *from)
{
    for (size_t i = 0; to && from && i < from->count; i++)
        *KP_KINETO_NEXT(to->of, to->count, to->capacity) = from->of[i];
}

void kp_kineto_windows_close(struct kp_kineto_windows *windows)
{
    if (!windows) return;
    free(windows->of);
    free(windows);
}

/* ---- runs ---- */

KP_ORDERED(window_order, struct kp_kineto_window, KP_UP(pid) KP_UP(run) KP_UP(part) KP_UP(start_ns))

static bool are_of_one_run(const struct kp_kineto_window *a, const struct kp_kineto_window *b)
{
    return a->pid == b->pid && a->run == b->run;
}

/*
 * Were the windows from `first` up to `end`, of one run, all of it? Its first part is there, each part to its end. A
 * part behind one that was recorded to its end is recorded as well, or has no event, and then no trace.
 */
static bool is_whole(const struct kp_kineto_window *first, const struct kp_kineto_window *end)
{
    if (!first->run || first->part != 1) return false;
    for (const struct kp_kineto_window *w = first; w < end; w++) {
        const bool is_last = w + 1 == end || w[1].part != w->part;
        if (!w->is_gapless || (is_last && !w->is_left)) return false;
    }
    return true;
}

void kp_kineto_windows_runs(struct kp_kineto_windows *windows, struct kp_kineto_runs *out)
{
    double *lengths = kp_kineto_room(windows->count + 1, sizeof *lengths);
    size_t count = 0;
    *out = (struct kp_kineto_runs){.is_all = true};
    if (windows->count) kp_qsort(windows->of, windows->count, sizeof *windows->of, window_order);
    const struct kp_kineto_window *const all_end = windows->of + windows->count, *end;
    for (const struct kp_kineto_window *w = windows->of; w < all_end; w = end) {
        int64_t ns = 0;
        for (end = w; end < all_end && are_of_one_run(w, end); end++) ns += end->end_ns - end->start_ns;
        if (!is_whole(w, end)) {
            out->is_all = false;
            continue;
        }
        lengths[count++] = (double)ns;
        out->mean_ns += ns;
        out->has_parts |= end[-1].part > 1;
    }
    if (count) {
        out->mean_ns /= (int64_t)count;
        out->median_ns = (int64_t)kp_quantile(lengths, count, 0.5); /* sorts them */
        out->least_ns = (int64_t)lengths[0];
        out->most_ns = (int64_t)lengths[count - 1];
    }
    out->count = count;
    free(lengths);
}

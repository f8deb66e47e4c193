// SPDX-License-Identifier: Apache-2.0
/*
 * overlaps.c - cuts durations that cannot be: of roctracer, or of counters that ran over
 *
 * A kernel may begin a little before the one before it ends (programmatic launch), and those of one graph beside one
 * another. Work that ends behind the begin of several launches that follow on its stream has a wrong end.
 */
#include "export/read/kineto/overlaps.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/store/qsort.h"

enum { FOLLOWING_LEAST = 3, TIMES_LEAST = 50, SCAN_MOST = 256 };

struct stream_work {
    uint64_t device;
    int64_t stream, start_ns, end_ns, correlation;
    uint32_t event;
};

KP_ORDER3(work_order, struct stream_work, device, stream, start_ns)

static size_t works_gather(struct stream_work **out, const struct kp_kineto *t)
{
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct kp_kineto_event *const e = &t->events[i];
        if (e->kind != KP_KINETO_GPU) continue;
        *KP_KINETO_NEXT(*out, count, capacity) = (struct stream_work){(uint64_t)e->pid,        e->tid,     e->start_ns,
                                                                      e->start_ns + e->dur_ns, e->fwd_tid, (uint32_t)i};
    }
    if (count) kp_qsort(*out, count, sizeof **out, work_order);
    return count;
}

/* The latest end of the work; INT64_MAX: its own end may be. */
static int64_t latest_end(const struct stream_work *of, size_t at, size_t count)
{
    const struct stream_work *const w = &of[at];
    int64_t next_ns = INT64_MAX;
    size_t following = 0;
    for (size_t i = at + 1; i < count && i - at < SCAN_MOST && following < FOLLOWING_LEAST; i++) {
        if (of[i].device != w->device || of[i].stream != w->stream || of[i].start_ns >= w->end_ns) break;
        if (of[i].start_ns == w->start_ns || of[i].correlation == w->correlation) continue;
        if (!following++) next_ns = of[i].start_ns;
    }
    if (!following) return INT64_MAX;
    const bool is_far = w->end_ns - w->start_ns >= TIMES_LEAST * (next_ns - w->start_ns);
    return following >= FOLLOWING_LEAST || is_far ? next_ns : INT64_MAX;
}

static void waits_mark(struct kp_kineto *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct kp_kineto_event *const e = &t->events[i];
        if (e->kind == KP_KINETO_GPU && strcmp(kp_kineto_text(t, e->cat), "cuda_sync") == 0)
            e->kind = KP_KINETO_GPU_WAIT;
    }
}

void kp_kineto_works_settle(struct kp_kineto *t)
{
    struct stream_work *of = NULL;
    waits_mark(t);
    if (t->processes > 1) return; /* those may share a device */
    const size_t count = works_gather(&of, t);
    for (size_t i = 0; i < count; i++) {
        const int64_t end_ns = latest_end(of, i, count);
        if (end_ns >= of[i].end_ns) continue;
        t->overlaps++;
        if (of[i].end_ns - end_ns > t->overlap_ns) t->overlap_ns = of[i].end_ns - end_ns;
        t->events[of[i].event].dur_ns = end_ns - of[i].start_ns;
    }
    free(of);
}

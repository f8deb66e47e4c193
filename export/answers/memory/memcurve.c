// SPDX-License-Identifier: Apache-2.0
/* memcurve.c - allocated bytes over time, by category: the curve, its peak, the peak of each stretch */
#include "export/answers/memory/memblocks.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/store/qsort.h"

static int point_order(const void *a, const void *b)
{
    const struct kp_mem_point *x = a, *y = b;
    if (x->at_ns != y->at_ns) return x->at_ns < y->at_ns ? -1 : 1;
    if ((x->bytes < 0) != (y->bytes < 0)) /* frees first: an address reused at one moment is no peak */
        return x->bytes < 0 ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

static void point_add(struct kp_mem_curve *c, int64_t at_ns, int64_t bytes, size_t block, uint8_t category)
{
    *KP_KINETO_NEXT(c->points, c->count, c->capacity) = (struct kp_mem_point){at_ns, bytes, (uint32_t)block, category};
}

void kp_mem_sum_add(struct kp_mem_sum *sum, const struct kp_mem_point *point)
{
    sum->total += point->bytes;
    sum->of[point->category] += point->bytes;
}

static void settle(struct kp_mem_curve *c, int64_t from_ns)
{
    struct kp_mem_sum now = c->begin;
    c->most = c->peak = c->begin;
    c->peak_ns = from_ns;
    for (size_t i = 0; i < c->count; i++) {
        kp_mem_sum_add(&now, &c->points[i]);
        for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++)
            if (now.of[k] > c->most.of[k]) c->most.of[k] = now.of[k];
        if (now.total <= c->peak.total) continue;
        c->peak = now;
        c->peak_ns = c->points[i].at_ns;
    }
    c->most.total = c->peak.total;
    c->end = now;
}

void kp_mem_curve_build(struct kp_mem_curve *c, const struct kp_memview *view, size_t device, int64_t from_ns,
                        int64_t to_ns)
{
    memset(c, 0, sizeof *c);
    c->device = &view->devices[device];
    c->begin.of[KP_MEM_BEFORE] = c->begin.total = c->device->before_bytes;
    for (size_t i = c->device->first; i < c->device->first + c->device->count; i++) {
        const struct kp_mem_block *b = &view->blocks[i];
        const struct kp_mem_point old = {.bytes = b->bytes, .category = b->category};
        if (b->from_ns > to_ns || b->to_ns < from_ns) continue;
        if (b->from_ns < from_ns) kp_mem_sum_add(&c->begin, &old);
        else point_add(c, b->from_ns, b->bytes, i, b->category);
        if (b->to_ns <= to_ns) point_add(c, b->to_ns, -b->bytes, i, b->category);
    }
    if (c->count) kp_qsort(c->points, c->count, sizeof *c->points, point_order);
    settle(c, from_ns);
}

void kp_mem_curve_fini(struct kp_mem_curve *c)
{
    free(c->points);
    c->points = NULL;
    c->count = 0;
}

struct kp_mem_sum *kp_mem_curve_slices(const struct kp_mem_curve *c, int64_t from_ns, int64_t to_ns, size_t n,
                                       int64_t *at_ns)
{
    size_t i = 0;
    struct kp_mem_sum *slices = kp_kineto_room(n, sizeof *slices);
    struct kp_mem_sum now = c->begin;
    double span = (double)(to_ns - from_ns);
    for (size_t s = 0; s < n; s++) {
        int64_t end_ns = from_ns + (int64_t)(span * (double)(s + 1) / (double)n);
        slices[s] = now;
        at_ns[s] = from_ns + (int64_t)(span * (double)s / (double)n);
        for (; i < c->count && (c->points[i].at_ns < end_ns || s + 1 == n); i++) {
            kp_mem_sum_add(&now, &c->points[i]);
            if (now.total <= slices[s].total) continue;
            slices[s] = now;
            at_ns[s] = c->points[i].at_ns;
        }
    }
    return slices;
}

/* ---- which time is shown ---- */

/* If there is no ProfilerStep# the first step has the program's start in it. */
static size_t first_whole(const struct kp_memview *view)
{
    return view->step_count && strcmp(view->step_source, "ProfilerStep") != 0;
}

static int64_t peak_of(const struct kp_memview *view, size_t device, int64_t from_ns, int64_t to_ns)
{
    struct kp_mem_curve c;
    kp_mem_curve_build(&c, view, device, from_ns, to_ns);
    const int64_t peak = c.peak.total;
    kp_mem_curve_fini(&c);
    return peak;
}

/* Do the steps last less than 99 % of the window, and have its highest moments? */
static bool is_of_steps(const struct kp_memview *view, const struct kp_mem_show *show)
{
    const int64_t whole_ns = view->end_ns - view->begin_ns;
    if (show->to_ns - show->from_ns >= whole_ns / 100 * 99) return false;
    for (size_t d = 0; d < view->device_count; d++)
        if (kp_mem_shows(show, d) &&
            peak_of(view, d, show->from_ns, show->to_ns) < peak_of(view, d, view->begin_ns, view->end_ns))
            return false;
    return true;
}

bool kp_memview_steps(const struct kp_memview *view, struct kp_mem_show *show, long first, long last)
{
    bool found = false;
    for (size_t i = first < 0 ? first_whole(view) : 0; i < view->step_count; i++) {
        const struct kp_mem_step *step = &view->steps[i];
        if (first >= 0 && (step->number < first || step->number > last)) continue;
        if (!found || step->from_ns < show->from_ns) show->from_ns = step->from_ns;
        if (!found || step->to_ns > show->to_ns) show->to_ns = step->to_ns;
        if (!found || step->number < show->first_step) show->first_step = step->number;
        if (!found || step->number > show->last_step) show->last_step = step->number;
        found = true;
    }
    show->is_part = found && (first >= 0 || is_of_steps(view, show));
    if (first >= 0 || show->is_part) return found;
    show->from_ns = view->begin_ns;
    show->to_ns = view->end_ns;
    return true;
}

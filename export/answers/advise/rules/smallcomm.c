// SPDX-License-Identifier: Apache-2.0
/* smallcomm.c - a step with many collectives of a few bytes each: their number costs, whatever they wait for */
#include "export/answers/advise/rules/rules.h"

#include <stdlib.h>

#include "export/read/facts/comm/commstarts.h"
#include "export/show/shapetext.h"
#include "export/show/units.h"

enum { MANY = 16, NUMBER_BYTES = 8 }; /* collectives a step; what a number has at most */

struct small_comm {
    const struct kp_costrules *x;
    const int32_t *starts;          /* by node, or NULL (commstarts.h) */
    int64_t all_ns, ns, most_bytes; /* of all collectives, and of small ones */
    size_t count, *of;              /* of: by step */
    struct kp_costplaces places;
};

/* The bytes that a collective sends, at most; -1: the trace does not say. A number without a shape is one. */
static int64_t bytes_of(const struct kp_tree *tree, size_t node)
{
    const struct kp_kineto_event *const e = kp_tree_event(tree, node);
    const struct kp_kineto_work *const work = kp_kineto_work_of(tree->trace, tree->nodes[node].event);
    const uint32_t shapes = kp_kineto_shapes(e);
    double all, largest;
    if (work && work->bus_bytes > 0) return work->bus_bytes;
    if (tree->nodes[node].on_device || !shapes) return -1;
    kp_shapetext_numbers(kp_kineto_text(tree->trace, shapes), &all, &largest);
    const int each = e->device_type == KP_TYPES_FLOAT ? 4 : NUMBER_BYTES;
    return each * (int64_t)(all > 1 ? all : 1);
}

static void collective_take(struct small_comm *s, size_t node)
{
    const size_t step = kp_costrules_step(s->x, node);
    const int64_t bytes = bytes_of(s->x->tree, node), ns = kp_costrules_ns(s->x, node);
    const int32_t start = s->starts ? s->starts[node] : -1;
    if (step >= s->x->chosen->step_count) return;
    s->all_ns += ns;
    if (bytes < 0 || bytes >= KP_COMM_SMALL) return;
    s->ns += ns;
    s->count++;
    s->of[step]++;
    if (bytes > s->most_bytes) s->most_bytes = bytes;
    kp_costplaces_add(&s->places, s->x->tree, start >= 0 ? start : kp_costplace_launcher(s->x->tree, node), -1, ns);
}

static void finding_tell(const struct small_comm *s, struct kp_finding *f)
{
    const double each = (double)s->count / (double)s->x->chosen->step_count;
    const char *const size = kp_units_size(s->most_bytes);
    const char *const lines = kp_costplaces_counts(&s->places, s->x->tree->trace, s->x->chosen->step_count);
    const char *const between = *lines ? ": " : "";
    f->what = kp_costrules_text(s->x,
                                s->x->out->has_gpu
                                    ? "%.3g collectives of at most %s each run in a step while nothing computes%s%s"
                                    : "the step waits for %.3g collectives of at most %s each%s%s",
                                each, size, between, lines);
    f->change = KP_COMM_FEWER;
    f->is_small = true;
    kp_costplaces_tell(&s->places, s->x->tree->trace, f);
}

bool kp_rules_small_comm(const struct kp_costrules *x, double bound, struct kp_finding *f)
{
    struct small_comm s = {.x = x, .of = kp_kineto_zeros(x->chosen->step_count + 1, sizeof *s.of)};
    int32_t *const starts = kp_commstarts_find(x->tree);
    s.starts = starts;
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_collective_is(x->tree, i, x->out->has_gpu)) collective_take(&s, i);
    const double part = s.all_ns > 0 ? (double)s.ns / (double)s.all_ns : 0;
    size_t many = 0;
    for (size_t i = 0; i < x->chosen->step_count; i++) many += s.of[i] >= MANY;
    const bool is_told = part * f->share >= bound && many && 2 * many >= x->chosen->step_count;
    if (is_told) {
        f->step_ns *= part;
        f->share *= part;
        f->is_critical = kp_advise_is_critical(f, x->out->steps);
        finding_tell(&s, f);
    }
    free(starts);
    free(s.of);
    kp_costplaces_fini(&s.places);
    return is_told;
}

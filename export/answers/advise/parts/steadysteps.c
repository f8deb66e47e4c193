// SPDX-License-Identifier: Apache-2.0
/*
 * steadysteps.c - the steps that are not long: what each of them costs is judged without those that are
 *
 * One step of seconds is nearly all of the mean, and its gap is nearly all of the time in which no op runs. So a wait
 * in every step passed no bound beside it, and was told with its line.
 */
#include "export/answers/advise/parts/costrules.h"

#include <stdlib.h>

/* The chosen steps but for the long ones, with what an evaluation leaves of each. */
static void steps_keep(struct kp_steady *out, const struct kp_costrules *x)
{
    const size_t all = x->chosen->step_count;
    struct kp_spans steps = {0};
    size_t kept = 0;
    out->chosen = *x->chosen;
    out->chosen.in_steps = (struct kp_spans){0};
    out->chosen.steps = kp_kineto_room(all + 1, sizeof *out->chosen.steps);
    out->splits = kp_kineto_room(all + 1, sizeof *out->splits);
    out->trained = kp_kineto_room(all + 1, sizeof *out->trained);
    for (size_t i = 0; i < all; i++) {
        if (x->is_long[i]) continue;
        out->chosen.steps[kept] = x->chosen->steps[i];
        out->trained[kept++] = x->trained[i];
        kp_spans_add(&steps, x->chosen->steps[i].start_ns, x->chosen->steps[i].end_ns);
    }
    out->chosen.step_count = kept;
    kp_spans_settle(&steps);
    const struct kp_spans *const in = &x->chosen->in_steps;
    kp_spans_add_all(&out->chosen.in_steps, in);
    kp_spans_settle(&out->chosen.in_steps);
    kp_spans_cut(&out->chosen.in_steps, &steps);
    kp_spans_fini(&steps);
}

bool kp_steady_open(struct kp_steady *out, const struct kp_costrules *x)
{
    *out = (struct kp_steady){0};
    if (!x->is_long) return false;
    steps_keep(out, x);
    if (out->chosen.step_count == x->chosen->step_count) return false;
    return kp_step_split_places(out->splits, x->tree, &out->chosen, &out->places) == x->out->has_gpu;
}

void kp_steady_fini(struct kp_steady *s)
{
    kp_spans_fini(&s->chosen.in_steps); /* the other lists are of the chosen steps */
    free(s->chosen.steps);
    free(s->splits);
    free(s->trained);
    kp_split_places_fini(&s->places);
}

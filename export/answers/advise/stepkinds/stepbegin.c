// SPDX-License-Identifier: Apache-2.0
/*
 * stepbegin.c - whether what steps have more lies at their begin, behind the optimizer of the step before
 *
 * If steps are counted by an optimizer, all that a loop does behind optimizer.step() is the begin of the next step. A
 * loop's own counter is one less there. The first forward op is the first one that has a backward.
 */
#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/read/kineto/kineto_facts.h"

#define BEGIN_SHARE 0.75 /* of what they have more */

static bool is_by_optimizer(const struct kp_costrules *x)
{
    const char *const source = kp_kineto_fact(x->tree->trace, "kprof.step_source");
    return !x->out->ahead &&
           (x->chosen->ended_by == KP_STEPENDS_OPTIMIZER || (source && strcmp(source, "optimizer") == 0));
}

/* How long a step lasts until its first forward op, without an evaluation; 0: it has none. */
static double begin_ns(const struct kp_costrules *x, size_t step)
{
    const struct kp_step *const s = &x->chosen->steps[step];
    const struct kp_node *const nodes = x->tree->nodes;
    for (size_t i = kp_longsteps_node(x->tree, s->start_ns); i < x->tree->count && nodes[i].start_ns < s->end_ns; i++)
        if (x->has_backward[i])
            return (double)(nodes[i].start_ns - s->start_ns -
                            kp_spans_between(&x->evaluated, s->start_ns, nodes[i].start_ns));
    return 0;
}

/* Is most of what these steps have more before their first forward op? */
static bool is_at_begin(const struct kp_costrules *x, const double *of, const double *longer)
{
    double begins = 0, usual = 0, more = 0;
    size_t many = 0, few = 0;
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        const bool is_one = of[i] > 0;
        if (!is_one && longer[i] > 0) continue;
        *(is_one ? &begins : &usual) += begin_ns(x, i);
        *(is_one ? &many : &few) += 1;
        more += of[i];
    }
    return many && few && begins - (double)many * usual / (double)few >= BEGIN_SHARE * more;
}

const char *kp_stepbegin_text(const struct kp_costrules *x, const double *of, const double *longer)
{
    size_t count = 0, first = 0;
    if (!is_by_optimizer(x) || !is_at_begin(x, of, longer)) return "";
    for (size_t i = x->chosen->step_count; i-- > 0;)
        if (of[i] > 0) count++, first = i;
    const long number = x->chosen->steps[first].number;
    return count == 1 ? KP_TEXT(", at its start, after the optimizer of step %ld", number - 1)
                      : KP_TEXT(", at their start, after the optimizer of the step before (for step %ld "
                                "that of step %ld)",
                                number, number - 1);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * secondpass.c - layers that each step of a training runs without gradients, beside its own pass
 *
 * A metric that calls the model again is such a pass, where the outputs of the training's would do. A teacher, or the
 * average of a model, is one that is needed: so it is a note, and no finding.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"

#include <stdlib.h>

#include "export/show/units.h"

#define STEPS_SHARE 0.9 /* of all steps: they have such a pass and train */
#define TOLD_SHARE 0.05 /* of the steps' time */

#define OF_EACH "If they are for a metric, compute it from the outputs of the training's own pass"
#define OF_ONE                                                                                             \
    "A single step does not tell whether each has them, as those of a metric or a teacher, or whether an " \
    "evaluation is in it: record some 20 (--schedule)"

/* Something of the training, or of its loader: a pass without gradients is over. */
static bool is_of_training(const struct kp_costrules *x, size_t node)
{
    const struct kp_kineto_event *const e = kp_tree_event(x->tree, node);
    return kp_evalsteps_has_gradients(e) || kp_node_is(x->tree, node, KP_NAME_RANGE) ||
           (kp_costrules_is_op(x, node) && kp_node_is(x->tree, node, KP_NAME_ENGINE));
}

/* Adds each pass from its first layer to its last, and ops up to the training's next; marks the steps by the layers
 * that run in them. */
static void passes_find(const struct kp_costrules *x, const uint8_t *marks, struct kp_spans *times,
                        struct kp_spans *ops, uint8_t *seen)
{
    const struct kp_tree *const tree = x->tree;
    int64_t from = -1;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const outer = &tree->nodes[kp_costplace_op(tree, (int32_t)i)];
        if (is_of_training(x, i)) from = -1;
        if (from >= 0 && kp_costrules_is_op(x, i)) kp_spans_add(ops, outer->start_ns, outer->end_ns);
        if (marks[i] == KP_PASS_NONE) continue;
        if (kp_node_is_in(tree, (int32_t)i, KP_NAME_OPTIMIZER)) continue; /* Muon multiplies matrices in its step */
        const size_t step = kp_step_at(x->chosen->steps, x->chosen->step_count, outer->start_ns);
        if (step == x->chosen->step_count) continue;
        if (kp_evalsteps_is_layer(kp_costrules_name(x, (int32_t)i))) seen[step] |= (uint8_t)(1u << marks[i]);
        if (marks[i] != KP_PASS_EVALUATION) continue;
        if (from < 0) from = outer->start_ns;
        kp_spans_add(times, from, outer->end_ns);
        kp_spans_add(ops, from, outer->end_ns);
        from = outer->end_ns;
    }
    kp_spans_settle(times);
    kp_spans_settle(ops);
}

const char *kp_secondpass_text(const struct kp_costrules *x, const uint8_t *marks)
{
    const size_t steps = x->chosen->step_count;
    const double all_ns = x->out->step_ns * (double)steps;
    struct kp_spans times = {0}, ops = {0};
    uint8_t *const seen = kp_kineto_zeros(steps + 1, sizeof *seen);
    size_t both = 0;
    const char *text = NULL;
    passes_find(x, marks, &times, &ops, seen);
    for (size_t i = 0; i < steps; i++) both += seen[i] == (1u << KP_PASS_TRAINING | 1u << KP_PASS_EVALUATION);
    const double ns = (double)kp_spans_length(&times, &x->chosen->in_steps);
    if (all_ns > 0 && (double)both > STEPS_SHARE * (double)steps && ns > TOLD_SHARE * all_ns)
        text = KP_TEXT("%s step also runs layers without gradients, at least %s (%.1f %%)%s. %s",
                       steps > 1 ? "each" : "the", kp_units_ms(ns / (double)steps), 100 * ns / all_ns,
                       kp_evalplace_text(x, &ops, NULL), steps > 1 ? OF_EACH : OF_ONE);
    kp_spans_fini(&times);
    kp_spans_fini(&ops);
    free(seen);
    return text;
}

// SPDX-License-Identifier: Apache-2.0
/* test_smallops.c - a loop of small ops in the forward pass, and what only looks like one */
#include "test/unit/advise/advised.h"

#define CELL "model.py(12): step;model.py(20): forward;train.py(31): main"
#define LOOP "model.py(20): forward;train.py(31): main"
enum { STEPS = 2, STEP_US = 4000 };

struct looped {
    int turns, us, python_us;     /* of each op, and between two */
    const char *frames, *others;  /* of each second op; NULL: as the first */
    bool has_no_backward, is_all; /* is_all: the loop begins with the step */
    const char *op;               /* NULL: aten::tanh */
};

static const struct kp_finding *found(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "small-ops-in-a-loop") == 0) return &a->findings[i];
    return NULL;
}

static void op_at(struct little *t, const char *name, int ts, int dur, const char *frames, int id, bool is_backward)
{
    char args[240];
    snprintf(args, sizeof args, "\"Call stack\":\"%s\",\"Sequence number\":%d,\"Fwd thread id\":%d", frames, id,
             is_backward);
    event(t, "cpu_op", name, 1, ts, dur, args);
}

/* Backward takes 4 us an op behind 1 us of the engine; the steps have 500 us of a product at their begin. */
static struct kp_advice loop_advise(struct little *t, const struct looped *l)
{
    for (int step = 0; step < STEPS; step++) {
        const int begin = STEP_US * step, from = begin + (l->is_all ? 0 : 500);
        numbered_step(t, step, begin, STEP_US);
        if (!l->is_all) event(t, "cpu_op", "aten::mm", 1, begin, 500, "\"Call stack\":\"train.py(40): prepare\"");
        for (int i = 0; i < l->turns; i++) {
            const char *const frames = l->others && i % 2 ? l->others : l->frames;
            op_at(t, l->op ? l->op : "aten::tanh", from + i * (l->us + l->python_us), l->us, frames, 1000 * step + i,
                  false);
        }
        for (int i = 0; i < l->turns && !l->has_no_backward; i++) {
            const int at = begin + STEP_US - 5 * (i + 1);
            event(t, "cpu_op", "autograd::engine::evaluate_function: TanhBackward0", 1, at, 4, "");
            op_at(t, "TanhBackward0", at + 1, 2, "train.py(33): main", 1000 * step + i, true);
        }
    }
    return advise(t);
}

static void a_loop_costs_its_ops_the_python_between_and_their_backward(void **state)
{
    const struct kp_advice a = loop_advise(*state, &(struct looped){100, 8, 2, LOOP, NULL, false, false, NULL});
    const struct kp_finding *const f = found(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 998e3 + 499e3, 1);
    assert_int_equal(f->steps, STEPS);
    assert_false(f->is_critical);
    assert_non_null(strstr(f->what, "a loop in forward computes small operators one by one: 100 per step, aten::tanh "
                                    "100 times"));
    assert_string_equal(f->line, "model.py:20 forward");
}

/* A cell is called by the loop: its ops are of the loop, whichever of both has the first one. */
static void what_the_loop_calls_is_of_it(void **state)
{
    struct kp_advice a = loop_advise(*state, &(struct looped){200, 4, 1, CELL, LOOP, false, false, NULL});
    assert_non_null(found(&a));
    assert_float_equal(found(&a)->step_ns, 999e3 + 999e3, 1);
    little_teardown(state);
    little_setup(state);
    a = loop_advise(*state, &(struct looped){200, 4, 1, LOOP, CELL, false, false, NULL});
    assert_non_null(found(&a));
    assert_float_equal(found(&a)->step_ns, 999e3 + 999e3, 1);
}

/* Boxes that are compared in pairs, a decoder: there are reads of values in it, which are no reason for it. */
static void a_loop_that_autograd_does_not_follow_costs_itself(void **state)
{
    const struct kp_advice a = loop_advise(*state, &(struct looped){100, 8, 2, LOOP, NULL, true, false, NULL});
    const struct kp_finding *const f = found(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 998e3, 1);
    assert_non_null(strstr(f->what, "one by one: 100 per step, aten::tanh 100 times"));
    assert_null(strstr(f->what, "backward"));
    assert_non_null(strstr(f->change, ".tolist()"));
}

/* Else a few ops in each of many steps would be a loop. */
static void a_loop_ends_with_its_step(void **state)
{
    struct kp_advice a = loop_advise(*state, &(struct looped){63, 20, 43, LOOP, NULL, true, true, NULL});
    assert_null(found(&a));
    little_teardown(state);
    little_setup(state);
    a = loop_advise(*state, &(struct looped){64, 15, 2, LOOP, NULL, true, true, NULL});
    assert_non_null(found(&a));
}

static void layers_large_ops_python_reads_and_torchs_own_ops_are_no_such_loop(void **state)
{
    const struct looped none[] = {
        {63, 20, 4, LOOP, NULL, false, false, NULL},                                    /* as layers are: few */
        {100, 25, 2, LOOP, NULL, false, false, NULL},                                   /* each computes for long */
        {64, 2, 40, LOOP, "other.py(7): score;train.py(31): main", false, false, NULL}, /* two functions in turn */
        {100, 2, 8, "torch/nn/modules/rnn.py(12): forward", NULL, false, false, NULL},  /* no line of the program */
        {100, 8, 2, LOOP, NULL, true, false, "aten::item"},
        {100, 8, 2, "torch/_tensor.py(9): norm;" LOOP, NULL, true, false, NULL}}; /* torch calls the ops */
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const struct kp_advice a = loop_advise(*state, &none[i]);
        assert_null(found(&a));
        little_teardown(state);
        little_setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_loop_costs_its_ops_the_python_between_and_their_backward),
        LITTLE(what_the_loop_calls_is_of_it),
        LITTLE(a_loop_that_autograd_does_not_follow_costs_itself),
        LITTLE(a_loop_ends_with_its_step),
        LITTLE(layers_large_ops_python_reads_and_torchs_own_ops_are_no_such_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

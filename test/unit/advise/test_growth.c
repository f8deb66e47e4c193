// SPDX-License-Identifier: Apache-2.0
/* test_growth.c - steps get slower by inputs that grow, which is no fault, or by an op that runs more and more often */
#include "test/unit/advise/advised.h"

enum { STEPS = 24, OPS = 4, OP_US = 100, OPTIMIZER_US = 40 };

static struct growing {
    int ops;               /* so many of the ops get slower, to three times the time */
    bool is_optimizer;     /* its op does so as well */
    bool has_shapes, grow; /* sizes are recorded; and grow */
    int added;             /* calls of one more op, more in each step */
    int frozen;            /* so many of the first steps have no backward */
    bool is_forward;       /* ops that begin later are of the forward pass */
    const char *facts;
} larger = {.ops = OPS, .facts = ""};

static int op_us(const struct growing *g, int op, int step)
{
    const int late = 2 * OP_US * step / (STEPS - 1);
    return OP_US + (op < g->ops ? late : 0);
}

/* Two ops forward, with two backward, and an optimizer with one. Returns how long the step is. */
static int step_ops(struct little *t, const struct growing *g, int step, int start)
{
    static const char *const names[OPS] = {"aten::mkldnn_convolution", "aten::relu", "aten::threshold_backward",
                                           "aten::convolution_backward"};
    int at = start;
    for (int i = 0; i < (step < g->frozen ? OPS / 2 : OPS); i++) {
        char args[200], shapes[80] = "";
        const int us = op_us(g, i, step), number = i < 2 || g->is_forward ? i : 3 - i;
        if (g->has_shapes) snprintf(shapes, sizeof shapes, ",\"Input Dims\":[[8,3,%d,32]]", g->grow ? 32 + step : 32);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":%d%s%s", 10 * step + number + 1,
                 i >= 2 && !g->is_forward, i < 2 ? ",\"Call stack\":\"net.py(17): forward\"" : "", shapes);
        event(t, "cpu_op", names[i], 1, at, us, args);
        at += us;
    }
    for (int i = 0; i < g->added * step; i++, at += OP_US / 5)
        event(t, "cpu_op", "aten::std", 1, at, OP_US / 5, "\"Call stack\":\"gauges.py(22): read\"");
    const int last_us = OPTIMIZER_US * (g->is_optimizer ? op_us(&larger, 0, step) : OP_US) / OP_US;
    event(t, "user_annotation", "Optimizer.step#SGD.step", 1, at, last_us, "");
    event(t, "cpu_op", "aten::add_", 1, at, last_us, "");
    return at + last_us - start;
}

static struct kp_advice growing_advise(struct little *t, struct growing g)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"%s},",
             g.facts ? g.facts : "");
    for (int step = 0, at = 0; step < STEPS; step++) {
        const int us = step_ops(t, &g, step, at);
        numbered_step(t, step, at, us);
        at += us;
    }
    return advise(t);
}

static const struct kp_finding *slower_of(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "slower-steps") == 0) return &a->findings[i];
    return NULL;
}

static void inputs_that_grow_are_a_note_and_no_finding(void **state)
{
    const struct kp_advice a = growing_advise(*state, larger);
    assert_int_equal(a.count, 0);
    assert_string_equal(a.grown, "steps get slower, 560 us in the first third of them and 1.12 ms in the last, as if "
                                 "their inputs grow: as many ops run, and most of the forward and backward pass take "
                                 "longer alike, but not the optimizer's. kprof run --record-shapes shows the sizes");
}

static void sizes_that_were_recorded_tell_it(void **state)
{
    struct growing g = larger;
    g.has_shapes = g.grow = g.is_optimizer = true;
    const struct kp_advice a = growing_advise(*state, g);
    assert_int_equal(a.count, 0);
    assert_non_null(a.grown);
    assert_non_null(strstr(a.grown, "because inputs grow: that of aten::mkldnn_convolution at net.py:17 forward from "
                                    "[8, 3, 32, 32] to [8, 3, 55, 32]"));
}

static void ops_that_get_slower_on_equal_sizes_are_a_finding(void **state)
{
    struct growing g = larger;
    g.has_shapes = true;
    const struct kp_advice a = growing_advise(*state, g);
    assert_non_null(slower_of(&a));
    assert_null(a.grown);
}

/* Its sizes do not grow: the machine gets slower. */
static void an_optimizer_that_gets_slower_alike_has_no_larger_inputs(void **state)
{
    struct growing g = larger;
    g.is_optimizer = true;
    const struct kp_advice a = growing_advise(*state, g);
    assert_non_null(slower_of(&a));
    assert_null(a.grown);
}

static void one_op_that_gets_slower_is_a_finding(void **state)
{
    struct growing g = larger;
    g.ops = 1;
    const struct kp_advice a = growing_advise(*state, g);
    assert_non_null(slower_of(&a));
    assert_null(a.grown);
}

static void an_op_that_runs_more_and_more_often_is_told_with_both_numbers(void **state)
{
    struct growing g = larger;
    g.ops = 0;
    g.added = 1;
    const struct kp_advice a = growing_advise(*state, g);
    const struct kp_finding *const f = slower_of(&a);
    assert_non_null(f);
    assert_non_null(strstr(f->what, "is ops, as aten::std runs 1 time a step at first and 22 at the end, at "
                                    "gauges.py:22 read"));
    assert_non_null(strstr(f->change, "a hook (keep what register_forward_hook() returns"));
}

/* A head first, and then all layers: that is a plan. Ops of the forward pass that begin later are none. */
static void layers_that_are_trained_later_are_a_note(void **state)
{
    struct growing g = {.frozen = STEPS / 2, .has_shapes = true, .facts = ""};
    struct kp_advice a = growing_advise(*state, g);
    assert_int_equal(a.count, 0);
    assert_non_null(a.grown);
    assert_non_null(strstr(a.grown, "as more layers are trained: aten::"));
    assert_non_null(strstr(a.grown, "backward of net.py:17 forward did not run at first"));
    little_teardown(state);
    little_setup(state);
    g.is_forward = true;
    a = growing_advise(*state, g);
    assert_non_null(slower_of(&a));
    assert_null(a.grown);
}

static struct kp_advice waiting_advise(struct little *t, int wait_us, int more_us)
{
    char facts[1200] = ",\"core_had_us\":20000,\"core_waited_us\":8000,\"cores\":\"2\",\"busy_threads\":\"1\","
                       "\"core_steps\":\"";
    struct growing g = larger;
    for (int step = 0; step < STEPS; step++) {
        const size_t used = strlen(facts);
        snprintf(facts + used, sizeof facts - used, "%s%d:%d", step ? "," : "", step, wait_us + more_us * step);
    }
    strcat(facts, "\"");
    g.facts = facts;
    return growing_advise(t, g);
}

/* A step of 440 to 1240 us waits a third of its length each time, or in the end ten times as long as at first. */
static void longer_steps_wait_longer_on_a_machine_as_busy_as_before(void **state)
{
    const struct kp_advice same = waiting_advise(*state, 147, 11);
    assert_non_null(same.crowded);
    assert_null(strstr(same.crowded, "The machine got busier"));
    little_teardown(state);
    little_setup(state);
    const struct kp_advice busier = waiting_advise(*state, 20, 17);
    assert_non_null(busier.crowded);
    assert_non_null(strstr(busier.crowded, "The machine got busier"));
    assert_non_null(strstr(busier.crowded, "in the last. The rest of a step grew as well, from "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(inputs_that_grow_are_a_note_and_no_finding),
        LITTLE(sizes_that_were_recorded_tell_it),
        LITTLE(ops_that_get_slower_on_equal_sizes_are_a_finding),
        LITTLE(an_optimizer_that_gets_slower_alike_has_no_larger_inputs),
        LITTLE(one_op_that_gets_slower_is_a_finding),
        LITTLE(an_op_that_runs_more_and_more_often_is_told_with_both_numbers),
        LITTLE(layers_that_are_trained_later_are_a_note),
        LITTLE(longer_steps_wait_longer_on_a_machine_as_busy_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_steprules.c - where the thread of the steps waits for a core, no step is to blame for it */
#include "test/unit/advise/advised.h"

enum { STEPS = 30, STEP_US = 1000 };
static int growth_us = 50;

/* Steps of one op that lasts longer and longer. `facts`: of the trace's head. */
static struct kp_advice advice_of(struct little *t, const char *facts)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"%s},",
             facts);
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = STEP_US + growth_us * i;
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, us - 10);
        at += us;
    }
    return advise(t);
}

static void steps_that_get_slower_are_a_finding(void **state)
{
    const struct kp_advice a = advice_of(*state, "");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slower-steps");
    assert_null(a.crowded);
}

/* Steps from 20 on compute 150 us longer, and those before waited for a core for 300 us more: no part is longer. */
static void steps_longer_without_their_waits_alone_name_no_part(void **state)
{
    struct little *t = *state;
    size_t used =
        (size_t)snprintf(t->head, sizeof t->head,
                         "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\",\"cores\":\"2\","
                         "\"core_had_us\":27000,\"core_waited_us\":10500,\"core_steps\":\"");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = STEP_US + (i >= 20 ? 150 : 300);
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, us - 10);
        at += us;
        used +=
            (size_t)snprintf(t->head + used, sizeof t->head - used, "%s%d:%d", i ? "," : "", i, i >= 20 ? 150 : 450);
    }
    snprintf(t->head + used, sizeof t->head - used, "\"},");
    const struct kp_advice a = advise(t);
    for (size_t i = 0; i < a.count; i++) assert_null(strstr(a.findings[i].what, "communication"));
}

/* Of 30 steps those from 20 on last 300 us longer, and each fourth of the others 20. */
static void steps_that_are_slower_from_one_on_do_not_grow(void **state)
{
    struct little *t = *state;
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = STEP_US + (i >= 20 ? 300 : i % 4 == 1 ? 20 : 0);
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, us - 10);
        at += us;
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slower-steps");
    assert_non_null(
        strstr(a.findings[0].what, "steps are slower from step 20 on (steps 20, 21, 22, 23, 24 and 5 more)"));
    assert_null(strstr(a.findings[0].change, "grows"));
    assert_int_equal(a.findings[0].steps, 10);
    assert_float_equal(a.findings[0].step_ns, 300e3 * 10 / STEPS, 1e3);
}

/* The first steps are longer by less than 3 %: the sentence numbers as many steps as it counts. */
static void steps_that_hardly_differ_are_not_numbered(void **state)
{
    growth_us = 10;
    const struct kp_advice a = advice_of(*state, "");
    growth_us = 50;
    assert_int_equal(a.count, 1);
    char more[40];
    snprintf(more, sizeof more, " and %zu more)", a.findings[0].steps - 5);
    assert_true(a.findings[0].steps < STEPS - 2);
    assert_non_null(strstr(a.findings[0].what, more));
}

/* What grows tells what to look for: a slow disk is no graph that is kept alive. */
static void what_to_look_for_is_said_by_the_part_that_grows(void **state)
{
    const char *const ranges[] = {NULL, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "aten::mm"};
    const char *const said[] = {"No operator runs in that time. Look for a file", "Loading takes longer and longer",
                                "a graph kept alive"};
    for (int kind = 0; kind < 3; kind++) {
        struct little *t = *state;
        snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
        for (int i = 0, at = 0; i < STEPS; i++) {
            const int grows = growth_us * i;
            numbered_step(t, i, at, STEP_US + grows);
            if (kind && grows) event(t, kind == 1 ? "user_annotation" : "cpu_op", ranges[kind], 1, at, grows, "");
            op(t, "aten::mm", at + grows, STEP_US - 10);
            at += STEP_US + grows;
        }
        const struct kp_advice a = advise(t);
        const struct kp_finding *drift = NULL;
        for (size_t i = 0; i < a.count; i++)
            if (strcmp(a.findings[i].id, "slower-steps") == 0) drift = &a.findings[i];
        assert_non_null(drift);
        assert_non_null(strstr(drift->change, said[kind]));
        little_teardown(state);
        little_setup(state);
    }
}

static void where_a_core_lacks_they_are_none(void **state)
{
    const struct kp_advice a = advice_of(*state, ",\"core_had_us\":60000,\"core_waited_us\":40000,\"cores\":\"2\","
                                                 "\"busy_threads\":\"1\"");
    assert_int_equal(a.count, 0);
    assert_string_equal(
        a.crowded,
        "the main thread had no CPU core for 40 % of the time in which it was ready to run. Its work took 1.7 times as "
        "long as on a free core. Other "
        "programs, or a container limit, used the cores: this program ran 1 thread on 2 cores");
}

static void what_is_more_than_its_waits_is_the_programs(void **state)
{
    const struct kp_advice a = advice_of(*state, ",\"core_had_us\":9000,\"core_waited_us\":6000");
    assert_non_null(a.crowded);
    assert_int_equal(a.count, 1);
}

/* 40 % of the time that it wanted a core, but 2 % of the steps. */
static void a_thread_that_sleeps_waits_little(void **state)
{
    const struct kp_advice a = advice_of(*state, ",\"core_had_us\":1200,\"core_waited_us\":800");
    assert_null(a.crowded);
    assert_int_equal(a.count, 1);
}

/* The last ones are far longer than most, and one of all waited for a core. */
static void grow_beside_a_wait(void **state, const char *waits)
{
    growth_us = 100;
    const struct kp_advice a = advice_of(*state, waits);
    growth_us = 50;
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slower-steps");
    assert_int_equal(a.findings[0].steps, STEPS - 1);
    assert_float_equal(a.findings[0].step_ns, 100e3 * (STEPS - 1) / 2, 60e3);
}

/* An early one has it: the last are not longer by that. */
static void a_wait_of_one_step_takes_no_other_out(void **state)
{
    grow_beside_a_wait(state, ",\"core_steps\":\"5:300\"");
}

/* The wait of the last one is half of what it has more: the other half is growth. */
static void a_wait_in_a_long_step_takes_not_its_growth_out(void **state)
{
    grow_beside_a_wait(state, ",\"core_steps\":\"29:800\"");
}

/* Of 60 steps of 1 ms each tenth lasts `tenth` us longer by an op that the others do not have, and step 25 `odd` us. */
static struct kp_advice nth_advise(struct little *t, int tenth, int odd)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int i = 0, at = 0; i < 2 * STEPS; i++) {
        const int more = i % 10 == 9 ? tenth : i == 25 ? odd : 0;
        numbered_step(t, i, at, STEP_US + more);
        op(t, "aten::mm", at, STEP_US - 10);
        if (more) op(t, "aten::histc", at + STEP_US, more - 10);
        at += STEP_US + more;
    }
    return advise(t);
}

static void each_nth_step_is_slow_from_a_smaller_length_on(void **state)
{
    const struct kp_advice a = nth_advise(*state, 450, 0);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
    assert_non_null(strstr(a.findings[0].what, ", each 10th step): the extra time of these steps is ops"));
    assert_string_equal(a.findings[0].where, "aten::histc");
    assert_int_equal(a.findings[0].steps, 6);
    assert_float_equal(a.findings[0].step_ns, 45e3, 1e3);
    assert_false(a.findings[0].is_critical);
}

/* A longer recording has as many of them: half of the time is critical, however few steps have it. */
static void each_nth_step_that_costs_much_is_critical(void **state)
{
    const struct kp_advice a = nth_advise(*state, 9000, 0);
    assert_string_equal(a.findings[0].id, "slow-steps");
    assert_int_equal(a.findings[0].steps, 6);
    assert_true(a.findings[0].share > 0.4 && a.findings[0].is_critical);
}

/* Something else makes it as long: it is not told, and hides nothing. */
static void a_step_among_them_that_is_no_nth_one_hides_nothing(void **state)
{
    const struct kp_advice a = nth_advise(*state, 450, 450);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.findings[0].steps, 6);
    assert_non_null(strstr(a.findings[0].what, ", each 10th step)"));
}

static void op_at(struct little *t, int at, int us, const char *stack)
{
    char args[160];
    snprintf(args, sizeof args, "\"Call stack\":\"%s\"", stack);
    event(t, "cpu_op", "aten::mm", 1, at, us, args);
}

/* The backward pass grows from step to step, the forward pass `forward` times as much. */
static const char *growing_what(struct little *t, int forward)
{
    static struct kp_advice a;
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int grows = growth_us * i, first = 400 + forward * grows, us = STEP_US + (1 + forward) * grows;
        char args[120];
        numbered_step(t, i, at, us);
        snprintf(args, sizeof args,
                 "\"Sequence number\":%d,\"Fwd thread id\":0,\"Call stack\":\"train.py(29): forward\"", i + 1);
        event(t, "cpu_op", "aten::addmm", 1, at, first, args);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", i + 1);
        event(t, "cpu_op", "AddmmBackward0", 1, at + first, us - first - 10, args);
        at += us;
    }
    a = advise(t);
    assert_true(a.count >= 1);
    assert_string_equal(a.findings[0].id, "slower-steps");
    assert_int_equal(strstr(a.findings[0].change, "detach") != NULL, !forward);
    return a.findings[0].what;
}

static void a_backward_that_grows_alone_is_a_graph_that_is_carried(void **state)
{
    const char *const what = growing_what(*state, 0);
    assert_non_null(strstr(what, "is ops of backward passes"));
}

static void a_backward_that_grows_with_its_forward_is_none(void **state)
{
    const char *const what = growing_what(*state, 1);
    assert_null(strstr(what, "backward"));
}

/* Each fourth step calls save() at line 79, with half of its time at each of two lines, or all of it at the first. */
static const char *saving_line(struct little *t, const char *second, const char **where)
{
    static struct kp_advice a;
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = STEP_US + (i % 4 == 1) * 2 * STEP_US;
        numbered_step(t, i, at, us);
        op_at(t, at, STEP_US - 10, "train.py(25): decode;train.py(73): main");
        if (us > STEP_US) {
            op_at(t, at + STEP_US, STEP_US + 100, "train.py(25): decode;train.py(49): save;train.py(79): main");
            op_at(t, at + 2 * STEP_US + 100, STEP_US - 110, second);
        }
        at += us;
    }
    a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
    *where = a.findings[0].where;
    return a.findings[0].line;
}

static void what_lies_at_several_lines_is_told_at_the_call_that_has_all(void **state)
{
    const char *where;
    assert_string_equal(saving_line(*state, "train.py(52): save;train.py(79): main", &where), "train.py:79 main");
    assert_string_equal(where, "train.py save");
}

static void what_lies_at_one_line_is_told_there(void **state)
{
    const char *where;
    const char *const line = saving_line(*state, "train.py(25): decode;train.py(49): save;train.py(79): main", &where);
    assert_string_equal(line, "train.py:25 decode");
    assert_string_equal(where, "aten::mm");
}

/* Lines that the other steps have as well are no call of these steps alone. */
static void what_other_steps_call_as_well_is_told_at_its_line(void **state)
{
    const char *where;
    assert_string_equal(saving_line(*state, "train.py(25): decode;train.py(73): main", &where), "train.py:25 decode");
    assert_string_equal(where, "aten::mm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_that_get_slower_are_a_finding, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(steps_longer_without_their_waits_alone_name_no_part, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(steps_that_are_slower_from_one_on_do_not_grow, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(steps_that_hardly_differ_are_not_numbered, little_setup, little_teardown),
        LITTLE(what_to_look_for_is_said_by_the_part_that_grows),
        cmocka_unit_test_setup_teardown(where_a_core_lacks_they_are_none, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(what_is_more_than_its_waits_is_the_programs, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_thread_that_sleeps_waits_little, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_wait_of_one_step_takes_no_other_out, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_wait_in_a_long_step_takes_not_its_growth_out, little_setup, little_teardown),
        LITTLE(each_nth_step_is_slow_from_a_smaller_length_on),
        LITTLE(a_step_among_them_that_is_no_nth_one_hides_nothing),
        LITTLE(each_nth_step_that_costs_much_is_critical),
        LITTLE(a_backward_that_grows_alone_is_a_graph_that_is_carried),
        LITTLE(a_backward_that_grows_with_its_forward_is_none),
        LITTLE(what_lies_at_several_lines_is_told_at_the_call_that_has_all),
        LITTLE(what_lies_at_one_line_is_told_there),
        LITTLE(what_other_steps_call_as_well_is_told_at_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

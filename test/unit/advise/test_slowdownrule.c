// SPDX-License-Identifier: Apache-2.0
/* test_slowdownrule.c - an op that gets slower on equal sizes, and what else makes an op slower */
#include "test/unit/advise/advised.h"

enum { STEPS = 48, REST_US = 600, FAST_US = 40, SLOW_US = 400, OTHERS = 4 };

static struct slow_case {
    const char *name;                 /* of the op */
    int fast_us, slow_us, from;       /* it is slow from this step on */
    int calls, late_calls;            /* a step; of the late ones */
    int others;                       /* times as slow as the others are from then on */
    bool has_shapes, grow, is_cooled; /* sizes grow; the early steps are the slow ones */
    const char *facts;
} usual = {"aten::sqrt", FAST_US, SLOW_US, 8, 1, 1, 1, true, false, false, ""};

static struct kp_advice case_advise(struct little *t, const struct slow_case *c)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"%s},",
             c->facts);
    for (int step = 0, at = 0; step < STEPS; step++) {
        const bool is_late = step >= c->from, is_slow = is_late != c->is_cooled;
        const int us = is_slow ? c->slow_us : c->fast_us, calls = is_late ? c->late_calls : c->calls;
        const int other_us = REST_US / OTHERS * (is_late ? c->others : 1), start = at;
        char args[160];
        snprintf(args, sizeof args, "\"Input Dims\":[[%d,64]],\"Call stack\":\"levels.py(19): forward\"",
                 c->grow ? 64 + step : 64);
        for (int i = 0; i < calls; i++, at += us)
            event(t, "cpu_op", c->name, 1, at, us, c->has_shapes ? args : "\"Call stack\":\"levels.py(19): forward\"");
        for (int i = 0; i < OTHERS; i++, at += other_us) {
            const char *const names[OTHERS] = {"aten::mm", "aten::mul", "aten::exp", "aten::add"};
            event(t, "cpu_op", names[i], 1, at, other_us, c->has_shapes ? "\"Input Dims\":[[64,64],[64,64]]" : "");
        }
        numbered_step(t, step, start, at - start);
    }
    return advise(t);
}

static const struct kp_finding *slower_find(const struct kp_advice *a, const char *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, id) == 0) return &a->findings[i];
    return NULL;
}

static void an_op_that_gets_slower_on_equal_sizes_is_told_with_both_times(void **state)
{
    const struct kp_advice a = case_advise(*state, &usual);
    const struct kp_finding *const f = slower_find(&a, "op-slows-down");
    assert_non_null(f);
    assert_string_equal(f->what, "aten::sqrt gets slower, with as many calls per step and the same sizes: a call takes "
                                 "40.0 us in the first steps and 400 us in the last third");
    assert_float_equal(f->step_ns, 1e3 * (SLOW_US - FAST_US) * (STEPS - 8) / STEPS, 1e3);
    assert_string_equal(f->line, "levels.py:19 forward");
    assert_non_null(strstr(f->change, "torch.set_flush_denormal(True)"));
    assert_true(f->is_critical);
    assert_null(slower_find(&a, "slower-steps"));
    assert_null(slower_find(&a, "slow-steps"));
}

#define CALM "\"core_had_us\":40000,\"core_waited_us\":12000"
#define BUSY "\"core_had_us\":12000,\"core_waited_us\":12000"

/* Each late step waits so long for a core, of which the op has its part. */
static struct kp_advice waited_advise(struct little *t, int slow_us, int wait_us, const char *core)
{
    char facts[1200];
    struct slow_case waits = usual;
    snprintf(facts, sizeof facts, ",%s,\"cores\":\"2\",\"busy_threads\":\"1\",\"core_steps\":\"", core);
    for (int step = usual.from; step < STEPS; step++) {
        const size_t used = strlen(facts);
        snprintf(facts + used, sizeof facts - used, "%s%d:%d", step > usual.from ? "," : "", step, wait_us);
    }
    strcat(facts, "\"");
    waits.facts = facts;
    waits.slow_us = slow_us;
    return case_advise(t, &waits);
}

static void waits_for_a_core_are_no_time_of_the_op(void **state)
{
    const struct kp_advice half = waited_advise(*state, 200, 400, CALM); /* of steps of 800 us: 2.5 times as slow */
    assert_null(slower_find(&half, "op-slows-down"));
    little_teardown(state);
    little_setup(state);
    const struct kp_advice some = waited_advise(*state, 400, 200, CALM); /* of steps of 1000 us: 8 times */
    const struct kp_finding *const f = slower_find(&some, "op-slows-down");
    assert_non_null(f);
    assert_non_null(strstr(f->what, "40.0 us in the first steps and 320 us in the last third"));
    assert_float_equal(f->step_ns, 280e3 * (STEPS - 8) / STEPS, 1e3);
    assert_float_equal(f->of.core_ns, 1e3 * (640 * 8 + 800.0 * 40) / STEPS, 1e3);
    assert_true(f->is_critical);
}

/* The same times, of a thread that had no core for half of the time that it wanted one. */
static void on_a_busy_machine_it_is_not_critical(void **state)
{
    const struct kp_advice a = waited_advise(*state, 400, 200, BUSY);
    const struct kp_finding *const f = slower_find(&a, "op-slows-down");
    assert_non_null(f);
    assert_true(f->share >= KP_SHARE_CRITICAL);
    assert_false(f->is_critical);
}

static void what_is_no_slower_op_is_not_told(void **state)
{
    struct slow_case cases[8];
    for (int i = 0; i < 8; i++) cases[i] = usual;
    cases[0].slow_us = 110;                       /* less than 3 times */
    cases[1].others = 10;                         /* the machine is slower */
    cases[2].grow = true;                         /* sizes grow */
    cases[3].is_cooled = true;                    /* a warm-up */
    cases[4].name = "aten::copy_";                /* may wait for memory */
    cases[5].late_calls = 2;                      /* it runs more often */
    cases[6].fast_us = 10, cases[6].slow_us = 50; /* less than 8 % of a step */
    cases[7].facts = ",\"core_had_us\":30000,\"core_waited_us\":20000,\"cores\":\"2\",\"busy_threads\":\"1\"";
    for (int i = 0; i < 8; i++) {
        const struct kp_advice a = case_advise(*state, &cases[i]);
        if (slower_find(&a, "op-slows-down")) fail_msg("case %d", i);
        little_teardown(state);
        little_setup(state);
    }
}

static void without_shapes_the_change_says_so(void **state)
{
    struct slow_case bare = usual;
    bare.has_shapes = false;
    bare.from = 4;
    const struct kp_advice a = case_advise(*state, &bare);
    const struct kp_finding *const f = slower_find(&a, "op-slows-down");
    assert_non_null(f);
    assert_null(strstr(f->what, "sizes"));
    assert_ptr_equal(strstr(f->change, "Sizes were not recorded: kprof run --record-shapes"), f->change);
    assert_false(f->is_critical);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(an_op_that_gets_slower_on_equal_sizes_is_told_with_both_times),
        LITTLE(waits_for_a_core_are_no_time_of_the_op),
        LITTLE(on_a_busy_machine_it_is_not_critical),
        LITTLE(what_is_no_slower_op_is_not_told),
        LITTLE(without_shapes_the_change_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

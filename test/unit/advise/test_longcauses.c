// SPDX-License-Identifier: Apache-2.0
/* test_longcauses.c - long steps: those of a busy machine are a note, those of the program a finding */
#include "test/unit/advise/advised.h"

enum { STEPS = 40, OPS = 4, OP_US = 240, STEP_US = 1000 };
static const char *const names[OPS] = {"aten::linear", "aten::relu", "aten::mm", "aten::sum"};

/* What one step has more than the others: us, at its op of that number, in front of it or as an op of another name. */
struct longer {
    int step, us, op;
    enum { IN_OP, BEFORE_OP, NEW_OP } how;
};

static const struct longer *longer_of(const struct longer *all, int step)
{
    for (; all->us; all++)
        if (all->step == step) return all;
    return NULL;
}

static struct kp_advice steps_advise(struct little *t, const struct longer *all, const char *head)
{
    snprintf(t->head, sizeof t->head, "%s", head);
    for (int step = 0, at = 0; step < STEPS; step++) {
        const struct longer *const l = longer_of(all, step);
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, STEP_US + (l ? l->us : 0), "");
        for (int i = 0; i < OPS; i++) {
            const bool is_it = l && l->op == i;
            if (is_it && l->how == NEW_OP) op(t, "aten::sort", at, l->us);
            if (is_it && l->how != IN_OP) at += l->us;
            op(t, names[i], at, OP_US + (is_it && l->how == IN_OP ? l->us : 0));
            at += STEP_US / OPS + (is_it && l->how == IN_OP ? l->us : 0);
        }
    }
    return advise(t);
}

static const struct kp_finding *slow_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "slow-steps") == 0) return &a->findings[i];
    return NULL;
}

#define ON_TWO_CORES "\"kprof\":{\"cores\":\"2\",\"busy_threads\":\"1\",\"python_gc\":\"1\"},"

/* A fifth of all time, at places as they come. */
static void steps_that_a_busy_machine_makes_longer_are_a_note(void **state)
{
    const struct longer all[] = {{3, 2000, 0, IN_OP},      {9, 3000, 2, IN_OP}, {17, 1500, 1, IN_OP},
                                 {21, 4000, 3, BEFORE_OP}, {30, 900, 3, IN_OP}, {0}};
    const struct kp_advice a = steps_advise(*state, all, ON_TWO_CORES);
    assert_null(slow_find(&a));
    assert_int_equal(a.waited_count, 2);
    assert_string_equal(a.waited[0].what,
                        "steps 9, 3, 17, longest first, and 1 more last up to 3.0 ms longer: the same ops, but "
                        "slower, most in aten::mm");
    assert_true(a.waited[0].count == 4 && a.waited[0].longest == 9);
    assert_float_equal(a.waited[0].some.most_ns, 3e6, 1);
    assert_float_equal(a.waited[0].some.least_ns, 0.9e6, 1);
    assert_float_equal(a.waited[0].some.all_ns, 7.4e6, 1);
    assert_string_equal(a.waited[1].what, "step 21 lasts 4.0 ms longer: no operator runs, most before aten::sum");
    assert_string_equal(a.waited_why, "possible causes: another program on the core, larger inputs (--record-shapes), "
                                      "more Python (kprof run --with-stack 1 --schedule 0-39 shows it)");
    assert_float_equal(a.waited_ns, 11.4e6 / STEPS, 1);
}

/* Of the same program, another thread had a core as long as that of the steps. */
static void a_thread_of_the_program_itself_may_have_had_the_core(void **state)
{
    const struct longer all[] = {
        {3, 2000, 0, IN_OP}, {9, 3000, 2, IN_OP}, {17, 1500, 1, IN_OP}, {21, 4000, 3, BEFORE_OP}, {0}};
    const struct kp_advice a = steps_advise(*state, all,
                                            "\"kprof\":{\"cores\":\"2\",\"busy_threads\":\"1\",\"python_gc\":\"1\","
                                            "\"core_had_us\":40000,\"core_others_us\":40000},");
    assert_non_null(strstr(a.waited_why, ": the GIL, a busy core, larger inputs"));
}

static void a_note_of_less_than_a_finding_is_not_told(void **state)
{
    const struct kp_advice a = steps_advise(*state, (struct longer[]){{9, 1000, 3, BEFORE_OP}, {0}}, ON_TWO_CORES);
    assert_null(slow_find(&a));
    assert_int_equal(a.waited_count, 0);
    assert_null(a.waited_why);
}

static void what_several_long_steps_have_at_one_small_place_is_the_programs(void **state)
{
    const struct longer all[] = {{3, 2000, 1, IN_OP},      {9, 3000, 3, BEFORE_OP}, {17, 1500, 3, BEFORE_OP},
                                 {21, 4000, 3, BEFORE_OP}, {30, 900, 3, BEFORE_OP}, {0}};
    const struct kp_advice a = steps_advise(*state, all, ON_TWO_CORES);
    assert_non_null(slow_find(&a));
    assert_non_null(strstr(slow_find(&a)->what, "(steps 9, 17, 21, 30)"));
    assert_true(a.waited_count == 1 && a.waited[0].count == 1 && a.waited[0].longest == 3);
}

static void an_op_that_the_other_steps_do_not_have_is_the_programs(void **state)
{
    const struct longer all[] = {{3, 2000, 1, NEW_OP}, {21, 2500, 3, NEW_OP}, {0}};
    const struct kp_advice a = steps_advise(*state, all, ON_TWO_CORES);
    assert_non_null(slow_find(&a));
    assert_string_equal(slow_find(&a)->where, "aten::sort");
    assert_int_equal(a.waited_count, 0);
}

/* The mean of the head line has the slow step. */
static void a_share_of_steps_that_are_not_slow_says_so(void **state)
{
    struct little *const t = *state;
    for (int step = 0, at = 0; step < STEPS; step++) {
        const int more = step == 20 ? 90000 : 0;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, STEP_US + more, "");
        op(t, "aten::mm", at, STEP_US / 2 + more);
        at += STEP_US + more;
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 2);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_string_equal(a.findings[0].share_of, "of an ordinary step of 1 ms");
    assert_null(slow_find(&a)->share_of);
}

static void a_step_of_50_ms_more_is_a_finding_whatever_it_has_more(void **state)
{
    const struct kp_advice a = steps_advise(*state, (struct longer[]){{9, 51000, 2, IN_OP}, {0}}, "");
    assert_non_null(slow_find(&a));
}

/* A step works 1 ms and waits for a core for 0.6. A `which` step works 2 ms and waits for 0.2. */
enum { WAIT_US = 600, FEW_US = 200, MORE_US = 1000 };

static struct kp_advice crowded_advise(struct little *t, bool (*which)(int step), bool is_new_op)
{
    const int used = snprintf(t->head, sizeof t->head,
                              "\"kprof\":{\"cores\":\"2\",\"busy_threads\":\"1\",\"python_gc\":\"1\","
                              "\"core_had_us\":40000,\"core_waited_us\":21000,\"core_steps\":\"");
    char *head = t->head + used;
    for (int step = 0, at = 0; step < STEPS; step++) {
        const bool is_it = which(step);
        const int works = STEP_US + (is_it ? MORE_US : 0), lasts = works + (is_it ? FEW_US : WAIT_US);
        head += sprintf(head, "%s%d:%d", step ? "," : "", step, lasts - works);
        numbered_step(t, step, at, lasts);
        for (int i = 0; i < OPS; i++) {
            const int us = is_it && !is_new_op ? OP_US + (i == 2 ? 7 : 1) * MORE_US / 10 : OP_US;
            op(t, names[i], at, us * lasts / works);
            at += (us + STEP_US / OPS - OP_US) * lasts / works;
        }
        if (is_it && is_new_op) {
            op(t, "aten::sort", at, MORE_US * lasts / works);
            at += MORE_US * lasts / works;
        }
    }
    strcpy(head, "\"},");
    return advise(t);
}

static bool is_of_some(int step)
{
    return step == 3 || step == 9 || step == 17 || step == 22 || step == 26 || step == 31 || step == 33 || step == 38;
}

static bool is_fifth(int step) { return step % 5 == 4; }

/* An op that moves much memory gets slower there than others, too often for chance. */
static void the_same_ops_that_are_slower_where_cores_lack_are_a_note(void **state)
{
    const struct kp_advice a = crowded_advise(*state, is_of_some, false);
    assert_non_null(a.crowded);
    assert_null(slow_find(&a));
    assert_int_equal(a.waited_count, 1);
    assert_non_null(strstr(a.waited[0].what, "last up to 1.0 ms longer: the same ops, but slower, most in aten::mm"));
    assert_int_equal(a.waited[0].count, 8);
}

static void a_new_op_is_a_finding_where_cores_lack(void **state)
{
    const struct kp_advice a = crowded_advise(*state, is_of_some, true);
    assert_non_null(a.crowded);
    assert_non_null(slow_find(&a));
    assert_string_equal(slow_find(&a)->where, "aten::sort");
    assert_float_equal(slow_find(&a)->step_ns, 8.0 * 1e3 * MORE_US / STEPS, 1e4);
}

/* Other programs make no fifth step slow: its inputs are larger. */
static void slower_ops_of_each_nth_step_are_a_finding_where_cores_lack(void **state)
{
    const struct kp_advice a = crowded_advise(*state, is_fifth, false);
    assert_non_null(a.crowded);
    assert_non_null(slow_find(&a));
    assert_non_null(strstr(slow_find(&a)->what, "each 5th step"));
    assert_int_equal(a.waited_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_thread_of_the_program_itself_may_have_had_the_core),
        LITTLE(steps_that_a_busy_machine_makes_longer_are_a_note),
        LITTLE(a_note_of_less_than_a_finding_is_not_told),
        LITTLE(what_several_long_steps_have_at_one_small_place_is_the_programs),
        LITTLE(an_op_that_the_other_steps_do_not_have_is_the_programs),
        LITTLE(a_share_of_steps_that_are_not_slow_says_so),
        LITTLE(the_same_ops_that_are_slower_where_cores_lack_are_a_note),
        LITTLE(a_new_op_is_a_finding_where_cores_lack),
        LITTLE(slower_ops_of_each_nth_step_are_a_finding_where_cores_lack),
        LITTLE(a_step_of_50_ms_more_is_a_finding_whatever_it_has_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_sharedsteps.c - a frequent cause beside a rare one: each has its own cost, line and period */
#include "test/unit/advise/advised.h"

enum { STEPS = 101, STEP_US = 1000, LOG_US = 1500, SAVE_US = 3000, LOGS = 10, SAVES = 50 };

/* A gap of that length before an op. Returns when the op has ended. */
static int gap_put(struct little *t, const char *name, int at, int us)
{
    op(t, name, at + us, 1);
    return at + us + 1;
}

static struct kp_advice advice_of(struct little *t, int saves)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int i = 1, at = 0; i < STEPS; i++) {
        const int from = at;
        if (i % LOGS == 0) at = gap_put(t, "aten::max", at, LOG_US);
        if (i % saves == 0) at = gap_put(t, "aten::detach", at, SAVE_US);
        op(t, "aten::mm", at, STEP_US - 10);
        at += STEP_US;
        numbered_step(t, i, from, at - from);
    }
    return advise(t);
}

static const struct kp_finding *found_before(const struct kp_advice *a, const char *op)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->findings[i].where && strcmp(a->findings[i].where, op) == 0) return &a->findings[i];
    fail_msg("no finding before %s", op);
    return NULL;
}

static void each_has_what_its_own_steps_and_the_shared_ones_cost(void **state)
{
    const struct kp_advice a = advice_of(*state, SAVES);
    assert_int_equal(a.count, 2);
    const struct kp_finding *const logs = found_before(&a, "aten::max"), *const saves =
                                                                             found_before(&a, "aten::detach");
    assert_float_equal(logs->step_ns, 1e3 * LOG_US / LOGS, 2e3);
    assert_non_null(strstr(logs->what, "each 10th step"));
    assert_int_equal(logs->steps, 10);
    assert_float_equal(saves->step_ns, 1e3 * SAVE_US / SAVES, 2e3);
    assert_int_equal(saves->steps, 2);
}

/* Its ops take so long in a step: those of all steps, and of each 10th, which logs. Returns when they have ended. */
static int ops_put(struct little *t, int at, int mm_us, int add_us, int log_us)
{
    op(t, "aten::mm", at, mm_us);
    op(t, "aten::add", at + mm_us, add_us);
    if (log_us) op(t, "aten::histc", at + mm_us + add_us, log_us);
    return at + mm_us + add_us + log_us;
}

/* Jitter makes steps 40 and 70 longer, too, in the same op: 40 by a fifth of what logging does. */
static void what_has_little_but_the_shared_cause_is_of_it(void **state)
{
    struct little *const t = *state;
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int i = 1, at = 0; i < STEPS; i++) {
        const int from = at, more = i == 70 ? STEP_US : i == 40 ? 3 * STEP_US / 10 : 0;
        at = ops_put(t, at, 600 + more, i == 40 ? 200 : 400, i % LOGS == 0 ? STEP_US / 2 : 0);
        numbered_step(t, i, from, at - from);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_non_null(strstr(a.findings[0].what, "each 10th step"));
    assert_int_equal(a.findings[0].steps, STEPS / LOGS);
}

/* Steps of the rarer cause that do not have the other one keep all of theirs. */
static void what_is_not_shared_stays(void **state)
{
    const struct kp_advice a = advice_of(*state, 33);
    assert_int_equal(a.count, 2);
    assert_float_equal(found_before(&a, "aten::max")->step_ns, 1e3 * LOG_US / LOGS, 2e3);
    assert_float_equal(found_before(&a, "aten::detach")->step_ns, 1e3 * SAVE_US * 3 / 100, 2e3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_has_what_its_own_steps_and_the_shared_ones_cost, little_setup,
                                        little_teardown),
        LITTLE(what_has_little_but_the_shared_cause_is_of_it),
        cmocka_unit_test_setup_teardown(what_is_not_shared_stays, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

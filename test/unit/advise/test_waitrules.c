// SPDX-License-Identifier: Apache-2.0
/* test_waitrules.c - the thread of the steps sleeps: in a call that has a name, in one gap, or for the GIL */
#include "test/unit/advise/advised.h"

enum { STEPS = 20, STEP_US = 20000, OP_US = 2000, OPS = 4 };

/* Of 400 ms the thread had a core for 180, wanted one for 20 more, and slept for 200. */
#define SLEPT "\"core_had_us\":180000,\"core_waited_us\":20000"

static void head(struct little *t, const char *facts)
{
    snprintf(t->head, sizeof t->head,
             "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\",\"cores\":\"2\",\"busy_threads\":"
             "\"1\",\"torch_threads\":\"1\",%s},",
             facts);
}

static void python(struct little *t, const char *name, int tid, int id, int parent, int ts, int dur)
{
    char args[80];
    snprintf(args, sizeof args, "\"Python id\":%d,\"Python parent id\":%d", id, parent);
    event(t, "python_function", name, tid, ts, dur, args);
}

/* Each step has its ops one behind the other, `gap_us` before each; the first has `first_us` before it. */
static struct kp_advice gaps_advise(struct little *t, const char *facts, int first_us, int gap_us)
{
    head(t, facts);
    for (int i = 0; i < STEPS; i++) {
        char name[16];
        numbered_step(t, i, STEP_US * i, STEP_US);
        for (int k = 0, at = STEP_US * i + first_us; k < OPS; k++, at += OP_US + gap_us) {
            snprintf(name, sizeof name, "aten::op%d", k);
            op(t, name, at, OP_US);
        }
    }
    return advise(t);
}

static void one_gap_in_which_the_thread_sleeps_is_a_wait(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SLEPT, 11000, 100);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "waits-in-step");
    assert_float_equal(a.findings[0].step_ns, 10e6, 1);
    assert_string_equal(a.findings[0].where, "aten::op0");
    assert_true(a.findings[0].is_gap && a.findings[0].is_critical);
    assert_null(strstr(a.findings[0].change, "arger batches"));
}

/* A busy thread of the program does not make one wait in one place a wait for the GIL. */
static void what_waits_for_another_thread_in_one_place_waits_not_for_the_gil(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SLEPT ",\"core_others_us\":240000", 11000, 100);
    assert_string_equal(a.findings[0].id, "waits-in-step");
}

static void many_gaps_beside_a_busy_thread_are_the_gil(void **state)
{
    const struct kp_advice a = gaps_advise(*state, SLEPT ",\"core_others_us\":240000", 3000, 2900);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "gil-wait");
    assert_float_equal(a.findings[0].step_ns, 10e6, 1);
    assert_non_null(strstr(a.findings[0].what, "compute for 12.0 ms per step"));
}

static void a_thread_that_computes_between_ops_waits_for_nothing(void **state)
{
    const struct kp_advice a =
        gaps_advise(*state, "\"core_had_us\":380000,\"core_waited_us\":10000,\"core_others_us\":240000", 11000, 100);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "no-op-runs");
}

/* Each step: 9 ms in a call of train.py's line 5, and 8 ms of an op. */
static struct kp_advice calls_advise(struct little *t, const char *facts, const char *call, const char *leaf)
{
    head(t, facts);
    python(t, "train.py(1): main", 1, 1, 0, 0, STEP_US * STEPS);
    for (int i = 0; i < STEPS; i++) {
        const int at = STEP_US * i;
        numbered_step(t, i, at, STEP_US);
        python(t, call, 1, 10 * i + 2, 1, at + 500, 9000);
        if (leaf) python(t, leaf, 1, 10 * i + 3, 10 * i + 2, at + 600, 8800);
        op(t, "aten::mm", at + 11000, 8000);
    }
    return advise(t);
}

static const struct kp_finding *found(const struct kp_advice *a, const char *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, id) == 0) return &a->findings[i];
    return NULL;
}

static void a_named_call_tells_what_it_waits_for(void **state)
{
    static const struct {
        const char *call, *leaf, *id;
    } those[] = {
        {"queue.py(154): get", "<built-in method acquire of _thread.lock object at 0x7f00>", "queue-wait"},
        {"<built-in function sleep>", NULL, "sleeps-in-step"},
        {"threading.py(288): wait", "<built-in method acquire of _thread.lock object at 0x7f00>", "lock-wait"},
        {"<built-in method recv of socket object at 0x7f00>", NULL, "network-wait"},
        {"subprocess.py(506): run", "<built-in function select>", "process-wait"},
        {"numpy/lib/_npyio_impl.py(311): load", "<built-in function fromfile>", "file-io"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) {
        struct little *const t = calloc(1, sizeof *t);
        const struct kp_advice a = calls_advise(t, SLEPT, those[i].call, those[i].leaf);
        const struct kp_finding *const f = found(&a, those[i].id);
        assert_non_null(f);
        assert_float_equal(f->step_ns, 9e6, 2e5);
        assert_true(f->is_critical);
        assert_null(found(&a, "no-op-runs"));
        assert_null(found(&a, "gil-wait"));
        little_forget(t);
        free(t);
    }
}

static void a_call_that_computes_is_no_wait(void **state)
{
    const struct kp_advice a =
        calls_advise(*state, "\"core_had_us\":390000,\"core_waited_us\":5000", "<built-in function compress>", NULL);
    assert_null(found(&a, "waits-in-step"));
    assert_non_null(found(&a, "no-op-runs"));
}

static void a_call_without_a_name_in_which_the_thread_sleeps_is_a_wait(void **state)
{
    const struct kp_advice a = calls_advise(*state, SLEPT, "<built-in method block_until_ready of Array object>", NULL);
    const struct kp_finding *const f = found(&a, "waits-in-step");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 9e6, 2e5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(one_gap_in_which_the_thread_sleeps_is_a_wait),
        LITTLE(what_waits_for_another_thread_in_one_place_waits_not_for_the_gil),
        LITTLE(many_gaps_beside_a_busy_thread_are_the_gil),
        LITTLE(a_thread_that_computes_between_ops_waits_for_nothing),
        cmocka_unit_test(a_named_call_tells_what_it_waits_for),
        LITTLE(a_call_that_computes_is_no_wait),
        LITTLE(a_call_without_a_name_in_which_the_thread_sleeps_is_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_onebyone.c - loops of Python that compute small things one by one */
#include "test/unit/advise/advised.h"

enum { STEPS = 2, STEP_US = 2000, TURNS = 20 };

static const struct kp_finding *found(const struct kp_advice *a, const char *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, id) == 0) return &a->findings[i];
    return NULL;
}

static void op_of(struct little *t, int tid, const char *name, int ts, int dur, const char *frames, const char *more)
{
    char args[160];
    snprintf(args, sizeof args, "\"Call stack\":\"%s;train.py(31): main\"%s", frames, more);
    event(t, "cpu_op", name, tid, ts, dur, args);
}

static void op_at(struct little *t, const char *name, int ts, int dur, const char *frames, const char *more)
{
    op_of(t, 1, name, ts, dur, frames, more);
}

/* 20 turns of 20 us: an op of 10, 5 of Python, and the mark of 5. */
static void loop_at(struct little *t, int tid, const char *computed, const char *mark, int ts, const char *frames)
{
    for (int i = 0; i < TURNS; i++) {
        op_of(t, tid, mark, ts + 20 * i, 5, frames, "");
        op_of(t, tid, computed, ts + 20 * i + 10, 10, frames, "");
    }
}

/* Steps of 1500 us of a product, and such a loop. */
static struct kp_advice loop_advise(struct little *t, const char *computed, const char *mark, const char *frames)
{
    for (int step = 0; step < STEPS; step++) {
        const int at = STEP_US * step;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, STEP_US, "");
        op_at(t, "aten::mm", at, 1500, "train.py(40): model", "");
        loop_at(t, 1, computed, mark, at + 1500, frames);
        op_at(t, "aten::add_", at + 1900, 90, "train.py(32): main", "");
    }
    return advise(t);
}

static void norms_that_are_read_one_by_one_are_told(void **state)
{
    const struct kp_advice a = loop_advise(*state, "aten::linalg_vector_norm", "aten::item", "train.py(8): norms");
    const struct kp_finding *const f = found(&a, "one-by-one");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 20000 * (TURNS - 1) + 5000, 1);
    assert_string_equal(f->what, "a loop in norms computes one by one: 20 times aten::linalg_vector_norm per step, and "
                                 "20 times it reads a value");
    assert_string_equal(f->line, "train.py:8 norms");
    assert_non_null(strstr(f->change, "torch._foreach_norm("));
}

/* 100 us of reads, in a loop of 385. */
static void the_reads_of_such_a_loop_are_not_told_again(void **state)
{
    const struct kp_advice a = loop_advise(*state, "aten::linalg_vector_norm", "aten::item", "train.py(8): norms");
    assert_null(found(&a, "reads-in-step"));
}

static void elements_that_are_taken_one_by_one_are_told(void **state)
{
    const struct kp_advice a = loop_advise(*state, "aten::sub", "aten::select", "train.py(8): scale");
    assert_non_null(found(&a, "one-by-one"));
    assert_non_null(strstr(found(&a, "one-by-one")->change, "tensors broadcast"));
}

/* As a layer that is called again and again has it. */
static void the_same_op_without_elements_or_reads_is_no_loop(void **state)
{
    const struct kp_advice a = loop_advise(*state, "aten::sub", "aten::mul", "train.py(8): scale");
    assert_null(found(&a, "one-by-one"));
}

static void elements_of_which_nothing_is_computed_are_not_told(void **state)
{
    const struct kp_advice a = loop_advise(*state, "aten::view", "aten::select", "train.py(8): scale");
    assert_null(found(&a, "one-by-one"));
}

static void input_is_told_once_with_its_loop(void **state)
{
    const struct kp_advice a = loop_advise(*state, "aten::sub", "aten::select", "train.py(8): augment");
    assert_null(found(&a, "one-by-one"));
    assert_non_null(strstr(found(&a, "input-in-step")->change, " Its loop goes one by one: if no iteration needs"));
}

/* Steps of 2 ms: the input's two ops take 310 us, and a loader gives 1 ms between them, alone or in a function. */
static struct kp_advice loaded_advise(struct little *t, bool has_calls)
{
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        if (has_calls) event(t, "python_function", "data.py(3): collate_fn", 1, at, 1310, "");
        op_at(t, "aten::select", at, 10, "data.py(3): collate_fn", "");
        event(t, "user_annotation", WORKERS, 1, at + 10, 1000, "");
        op_at(t, "aten::stack", at + 1010, 300, "data.py(3): collate_fn", "");
        op_at(t, "aten::mm", at + 1310, 690, "train.py(40): model", "");
    }
    return advise(t);
}

static void a_loader_between_two_ops_of_the_input_is_none_of_it(void **state)
{
    for (int has_calls = 0; has_calls < 2; has_calls++) {
        const struct kp_advice a = loaded_advise(*state, has_calls);
        assert_non_null(found(&a, "data-loading"));
        assert_non_null(found(&a, "input-in-step"));
        assert_float_equal(found(&a, "input-in-step")->step_ns, 310e3, 1e3);
        little_teardown(state);
        little_setup(state);
    }
}

/* The loop runs in another thread. The step runs a copy of `copies` us with it, and its product from `from` us on. */
static struct kp_advice beside_advise(struct little *t, const char *frames, int copies, int from)
{
    for (int step = 0; step < STEPS; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        if (copies) op_at(t, "aten::copy_", at, copies, "train.py(32): main", "");
        loop_at(t, 2, "aten::sub", "aten::select", at, frames);
        op_at(t, "aten::mm", at + from, 1900 - from, "train.py(40): model", "");
        op_at(t, "aten::add_", at + 1900, 90, "train.py(32): main", "");
    }
    return advise(t);
}

static void a_loop_beside_the_step_costs_what_the_step_waits_for(void **state)
{
    static const struct {
        int copies, from;
        double ns;
    } those[] = {{0, 0, 0}, {0, 400, 385e3}, {150, 400, 235e3}};
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) {
        const struct kp_advice a = beside_advise(*state, "train.py(8): scale", those[i].copies, those[i].from);
        const struct kp_finding *const f = found(&a, "one-by-one");
        assert_true((f != NULL) == (those[i].ns > 0));
        if (f) assert_float_equal(f->step_ns, those[i].ns, 1);
        little_teardown(state);
        little_setup(state);
    }
}

static void the_main_thread_prepares_no_input_of_another_thread(void **state)
{
    for (int from = 0; from <= 400; from += 400) {
        const struct kp_advice a = beside_advise(*state, "train.py(8): augment", 0, from);
        assert_null(found(&a, "input-in-step"));
        assert_true((found(&a, "one-by-one") != NULL) == (from > 0));
        little_teardown(state);
        little_setup(state);
    }
}

/* Each turn of a recurrence needs the one before. */
static void what_autograd_follows_is_not_told(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < STEPS; step++) {
        const int at = STEP_US * step;
        event(t, "user_annotation", step ? "ProfilerStep#1" : "ProfilerStep#0", 1, at, STEP_US, "");
        for (int i = 0; i < TURNS; i++) {
            char args[64];
            snprintf(args, sizeof args, ",\"Sequence number\":%d,\"Fwd thread id\":0", 100 * step + i);
            op_at(t, "aten::select", at + 20 * i, 5, "train.py(8): forward", "");
            op_at(t, "aten::tanh", at + 20 * i + 10, 10, "train.py(8): forward", args);
            snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", 100 * step + i);
            event(t, "cpu_op", "TanhBackward0", 1, at + 1000 + 40 * i, 40, args);
        }
    }
    const struct kp_advice a = advise(t);
    assert_null(found(&a, "one-by-one"));
}

/* Steps of 5 ms: 50 turns of 20 us; behind each `every`th the thread runs nothing for 2 ms. */
static struct kp_advice paused_advise(struct little *t, const char *facts, int every)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"cores\":\"2\"%s},", facts);
    for (int step = 0, at = 0; step < STEPS; step++) {
        const int begin = at;
        for (int i = 0; i < 50; i++) {
            op_at(t, "aten::select", at, 5, "train.py(8): corrupt", "");
            op_at(t, "aten::rand", at + 10, 10, "train.py(8): corrupt", "");
            at += (i + 1) % every ? 20 : 2020;
        }
        op_at(t, "aten::add_", at, 100, "train.py(32): main", "");
        at += 100;
        event(t, "user_annotation", step ? "ProfilerStep#1" : "ProfilerStep#0", 1, begin, at - begin, "");
    }
    return advise(t);
}

#define NO_CORE ",\"core_had_us\":4000,\"core_waited_us\":4000,\"busy_threads\":\"1\""

static void a_loop_that_waits_for_a_core_is_told_with_its_wait(void **state)
{
    const struct kp_advice a = paused_advise(*state, NO_CORE, 25);
    assert_non_null(found(&a, "one-by-one"));
    assert_float_equal(found(&a, "one-by-one")->step_ns, 20000 * 49 + 2000000 + 5000, 1);
}

static void a_pause_with_a_core_is_none_of_the_loop(void **state)
{
    const struct kp_advice a = paused_advise(*state, "", 25);
    assert_non_null(found(&a, "one-by-one"));
    assert_float_equal(found(&a, "one-by-one")->step_ns, 2 * (20000 * 24 + 5000), 1);
}

static void turns_with_a_pause_each_are_no_loop(void **state)
{
    const struct kp_advice a = paused_advise(*state, NO_CORE, 2);
    assert_null(found(&a, "one-by-one"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(norms_that_are_read_one_by_one_are_told),
        LITTLE(the_reads_of_such_a_loop_are_not_told_again),
        LITTLE(elements_that_are_taken_one_by_one_are_told),
        LITTLE(the_same_op_without_elements_or_reads_is_no_loop),
        LITTLE(elements_of_which_nothing_is_computed_are_not_told),
        LITTLE(input_is_told_once_with_its_loop),
        LITTLE(a_loader_between_two_ops_of_the_input_is_none_of_it),
        LITTLE(a_loop_beside_the_step_costs_what_the_step_waits_for),
        LITTLE(the_main_thread_prepares_no_input_of_another_thread),
        LITTLE(what_autograd_follows_is_not_told),
        LITTLE(a_loop_that_waits_for_a_core_is_told_with_its_wait),
        LITTLE(a_pause_with_a_core_is_none_of_the_loop),
        LITTLE(turns_with_a_pause_each_are_no_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

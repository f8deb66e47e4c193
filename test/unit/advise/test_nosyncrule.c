// SPDX-License-Identifier: Apache-2.0
/* test_nosyncrule.c - gradients that DistributedDataParallel sends before the last backward pass of a step */
#include "test/unit/advise/advised.h"

#define ENGINE "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
#define LOOP "\"Call stack\":\"train.py(7): main\""
#define OTHER "\"Call stack\":\"train.py(9): main\""

/* A pass of 10 ms: forward, backward, and 4 ms in which the step waits for its collective, if it sends. */
static void pass_add(struct little *t, int at, const char *stack, bool sends)
{
    event(t, "user_annotation", "DistributedDataParallel.forward", 1, at, 2000, stack);
    op(t, "aten::mm", at, 2000);
    op(t, ENGINE, at + 2000, sends ? 4000 : 8000);
    if (!sends) return;
    event(t, "cpu_op", "c10d::allreduce_", 1, at + 5000, 500, stack);
    event(t, "user_annotation", "gloo:all_reduce", 2, at + 6000, 4000, "");
}

/* Eight steps of two passes; the first sends where `first_sends`, and is called at `first_stack`. */
static struct kp_advice steps_advise(struct little *t, bool first_sends, const char *first_stack)
{
    for (int step = 0; step < 8; step++) {
        const int at = step * 22000;
        numbered_step(t, step, at, 22000);
        pass_add(t, at, first_stack, first_sends);
        pass_add(t, at + 10000, LOOP, true);
        event(t, "user_annotation", "Optimizer.step#SGD.step", 1, at + 20000, 2000, "");
        op(t, "aten::_foreach_add_", at + 20000, 2000);
    }
    return advise(t);
}

static const struct kp_finding *needless_in(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "needless-all-reduce") == 0) return &a->findings[i];
    return NULL;
}

/* Half of 9 ms a step: the op that asks for it takes a part. */
static void a_pass_before_the_last_need_not_send(void **state)
{
    const struct kp_advice a = steps_advise(*state, true, LOOP);
    const struct kp_finding *const f = needless_in(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 4.5e6, 1);
    assert_non_null(strstr(f->what, "each of the 2 backward passes"));
    assert_string_equal(f->line, "train.py:7 main");
}

static void the_last_pass_has_to_send(void **state)
{
    const struct kp_advice a = steps_advise(*state, false, LOOP);
    assert_null(needless_in(&a));
}

static void two_models_have_to_send_each(void **state)
{
    const struct kp_advice a = steps_advise(*state, true, OTHER);
    assert_null(needless_in(&a));
}

static void calls_without_stacks_may_be_of_two_models(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 8; step++) {
        const int at = step * 22000;
        numbered_step(t, step, at, 22000);
        pass_add(t, at, "", true);
        pass_add(t, at + 10000, "", true);
        event(t, "user_annotation", "Optimizer.step#SGD.step", 1, at + 20000, 2000, "");
        op(t, "aten::_foreach_add_", at + 20000, 2000);
    }
    const struct kp_advice a = advise(t);
    assert_null(needless_in(&a));
    bool is_unjudged = false;
    for (size_t i = 0; i < a.unjudged_count; i++) is_unjudged |= strncmp(a.unjudged[i], "gradients sent", 14) == 0;
    assert_true(is_unjudged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_pass_before_the_last_need_not_send),
        LITTLE(the_last_pass_has_to_send),
        LITTLE(two_models_have_to_send_each),
        LITTLE(calls_without_stacks_may_be_of_two_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

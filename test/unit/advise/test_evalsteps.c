// SPDX-License-Identifier: Apache-2.0
/* test_evalsteps.c - evaluations inside of a training: which steps hold them, and how long they last */
#include "test/unit/advise/advised.h"

static bool has_stacks; /* the model is called at two lines of main */

/* A call of the model with its linear layer, and a backward where one follows. Sequence numbers pair them. */
static void pass_make(struct little *t, int at, int sequence, bool has_backward)
{
    char args[256];
    event(t, "python_function", "nn.Module: Net_0", 1, at, 20, "");
    char *const stack =
        args + (has_backward ? snprintf(args, 64, "\"Sequence number\":%d,\"Fwd thread id\":0", sequence) : 0);
    *stack = 0;
    if (has_stacks)
        snprintf(stack, 160, "%s\"Call stack\":\"model.py(9): forward;train.py(%s): main;train.py(50): <module>;\"",
                 has_backward ? "," : "", has_backward ? "31" : "5): evaluate;train.py(41");
    event(t, "cpu_op", "aten::linear", 1, at + 1, 18, args);
    if (!has_backward) return;
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", sequence);
    event(t, "cpu_op", "AddmmBackward0", 1, at + 30, 20, args);
}

/* Of ten steps each `evaluated`th has three passes without backward; 1: each, as with a teacher. */
static struct kp_advice passes_advise(struct little *t, int evaluated)
{
    for (int step = 0; step < 10; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, 200 * step, 200, "");
        pass_make(t, 200 * step + 2, step + 1, true);
        for (int i = 0; step % evaluated == evaluated - 1 && i < 3; i++)
            pass_make(t, 200 * step + 80 + 30 * i, 0, false);
    }
    return advise(t);
}

static void steps_that_hold_an_evaluation_are_told_as_such(void **state)
{
    const struct kp_advice a = passes_advise(*state, 5);
    assert_non_null(a.evaluated);
    const char *said =
        "2 groups of gradient-free passes during the training take 214 us, 10.7 % of the time of all steps. These "
        "steps "
        "are long but not slow: steps 4, 9 hold 3 forward passes without backward, 107 us per group. To time "
        "them: kprof run --phases (Lightning, transformers, your own ranges)";
    assert_memory_equal(a.evaluated, said, strlen(said));
}

/* The loss takes longer than the model, and no evaluation has it. No call of a module tells the passes. */
static void a_long_loss_hides_no_evaluation(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 10; step++) {
        char args[80];
        const int at = 200 * step;
        numbered_step(t, step, at, 200);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", 2 * step + 1);
        event(t, "cpu_op", "aten::linear", 1, at + 2, 10, args);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", 2 * step + 2);
        event(t, "cpu_op", "aten::logsumexp", 1, at + 14, 70, args);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", 2 * step + 1);
        event(t, "cpu_op", "AddmmBackward0", 1, at + 85, 10, args);
        for (int i = 0; step % 5 == 4 && i < 3; i++) op(t, "aten::linear", at + 100 + 30 * i, 10);
    }
    const struct kp_advice a = advise(t);
    assert_non_null(a.evaluated);
    assert_non_null(strstr(a.evaluated, "steps 4, 9 hold 3 forward passes without backward"));
}

/* Both run model.py, and both lie in main. */
static void the_line_that_calls_an_evaluation_is_named(void **state)
{
    has_stacks = true;
    const struct kp_advice a = passes_advise(*state, 5);
    has_stacks = false;
    assert_non_null(a.evaluated);
    assert_non_null(strstr(a.evaluated, " without backward, 107 us per evaluation, at train.py:41 main. To time them"));
}

/*
 * Ten steps of 200 us, of which steps 4 and 9 last 800 us longer: three passes without backward, with `calls_before` us
 * of other work before each, and metrics up to where the training goes on. It does so with its pass, or with the end.
 */
static struct kp_advice evaluation_advise(struct little *t, bool is_first, int calls_before, int more_in_last)
{
    for (int step = 0, at = 0; step < 10; step++) {
        const bool evaluates = step % 5 == 4;
        const int more = evaluates ? 800 + (step == 9 ? more_in_last : 0) : 0;
        const int from = at + (is_first ? 0 : 60), training = at + 40 + (is_first ? more : 0);
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, 200 + more, "");
        pass_make(t, is_first ? training : at + 2, step + 1, true);
        for (int i = 0; evaluates && i < 3; i++)
            pass_make(t, from + 2 + i * (30 + calls_before) + calls_before, 0, false);
        /* behind no_grad: it has a number, as ops with gradients have, and is of no pass */
        if (evaluates) event(t, "cpu_op", "aten::cat", 1, from + 100 + 3 * calls_before, 10, "\"Sequence number\":900");
        if (evaluates) op(t, "aten::eq", from + 500, 200);
        at += 200 + more;
    }
    return advise(t);
}

static void told_with(const struct kp_advice *a, const char *said)
{
    assert_non_null(a->evaluated);
    if (strncmp(a->evaluated, said, strlen(said)) != 0) print_error("%s\n", a->evaluated);
    assert_memory_equal(a->evaluated, said, strlen(said));
    for (size_t i = 0; i < a->count; i++) assert_string_not_equal(a->findings[i].id, "slow-steps");
}

#define LAST_PASS "after the last pass (metrics, a checkpoint). To time them"

/* What shows that passes without gradients are an evaluation, in steps 4 and 9 of ten. */
enum sign { NO_SIGN, CALL_OF_EVAL, OWN_FUNCTION, OWN_RANGE, OTHER_LOADER, END_OF_EPOCH, TRAIN_FUNCTION };

static struct kp_advice signs_advise(struct little *t, enum sign sign)
{
    static const char *const loads = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    for (int step = 0; step < 10; step++) {
        const int at = 300 * step;
        const bool evaluates = step % 5 == 4;
        numbered_step(t, step, at, 300);
        event(t, "user_annotation", loads, 1, at, 2, "");
        pass_make(t, at + 3, step + 1, true);
        if (!evaluates) continue;
        if (sign == CALL_OF_EVAL)
            event(t, "python_function", "torch/nn/modules/module.py(2900): eval", 1, at + 80, 5, "");
        if (sign == OWN_FUNCTION) event(t, "python_function", "train.py(12): runValidation", 1, at + 80, 190, "");
        if (sign == TRAIN_FUNCTION) event(t, "python_function", "train.py(12): train_and_eval", 1, at + 80, 190, "");
        if (sign == OWN_RANGE) event(t, "user_annotation", "my_eval", 1, at + 80, 190, "");
        if (sign == OTHER_LOADER || sign == END_OF_EPOCH) event(t, "user_annotation", loads, 1, at + 86, 3, "");
        for (int i = 0; i < 3; i++) pass_make(t, at + 90 + 60 * i, 0, false);
        if (sign == OTHER_LOADER) event(t, "user_annotation", loads, 1, at + 240, 3, "");
    }
    return advise(t);
}

static void an_evaluation_is_called_so_where_something_shows_it(void **state)
{
    static const enum sign shown[] = {CALL_OF_EVAL, OWN_FUNCTION, OWN_RANGE, OTHER_LOADER};
    static const enum sign others[] = {NO_SIGN, END_OF_EPOCH, TRAIN_FUNCTION};
    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct little t = {0};
        const struct kp_advice a = signs_advise(&t, shown[i]);
        print_error("%d\n", shown[i]);
        told_with(&a, "2 evaluations during the training take");
        assert_string_equal(a.evaluated_as, "evaluations");
        little_forget(&t);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct little t = {0};
        const struct kp_advice a = signs_advise(&t, others[i]);
        told_with(&a, "2 groups of gradient-free passes during the training take");
        assert_non_null(strstr(a.evaluated, "To save time, run these passes less often"));
        assert_string_equal(a.evaluated_as, "gradient-free passes");
        little_forget(&t);
    }
}

/* So many steps, of which the second has three passes without backward, and with `is_again` the third, too. */
static struct kp_advice few_advise(struct little *t, int steps, bool is_again)
{
    for (int step = 0; step < steps; step++) {
        numbered_step(t, step + 10, 200 * step, 200);
        pass_make(t, 200 * step + 2, step + 1, true);
        for (int i = 0; (step == 1 || (step == 2 && is_again)) && i < 3; i++)
            pass_make(t, 200 * step + 80 + 30 * i, 0, false);
    }
    return advise(t);
}

static void one_of_two_or_three_steps_may_evaluate(void **state)
{
    (void)state;
    for (int steps = 2; steps <= 3; steps++) {
        struct little t = {0};
        const struct kp_advice a = few_advise(&t, steps, false);
        told_with(&a, "1 group of gradient-free passes during the training takes 107 us, ");
        assert_non_null(strstr(a.evaluated, "step 11 holds 3 forward passes without backward"));
        assert_null(a.again);
        little_forget(&t);
    }
}

static void two_of_three_steps_tell_no_evaluation(void **state)
{
    const struct kp_advice a = few_advise(*state, 3, true);
    assert_null(a.evaluated);
    assert_string_equal(a.again,
                        "steps 11, 12 hold 3 forward passes without backward, and the other none. So few steps "
                        "do not tell whether that is an evaluation or a part of the training: record some 20 "
                        "(--schedule)");
}

static void a_single_step_tells_that_it_runs_layers_without_gradients(void **state)
{
    struct little *const t = *state;
    numbered_step(t, 11, 0, 200);
    pass_make(t, 2, 1, true);
    for (int i = 0; i < 3; i++) pass_make(t, 80 + 30 * i, 0, false);
    const struct kp_advice a = advise(t);
    assert_non_null(a.again);
    assert_non_null(strstr(a.again, "the step also runs layers without gradients, at least 78.0 us (39.0 %). A single "
                                    "step does not tell whether each has them"));
}

static void an_evaluation_before_the_training_lasts_until_that_begins(void **state)
{
    const struct kp_advice a = evaluation_advise(*state, true, 0, 0);
    told_with(&a, "2 groups of gradient-free passes during the training take 1.60 ms, 44.4 % of the time of all steps. "
                  "These steps are "
                  "long but not slow: steps 4, 9 hold 3 forward passes without backward, 800 us per group, 719 us "
                  "of it " LAST_PASS);
}

static void an_evaluation_behind_the_training_lasts_until_the_step_ends(void **state)
{
    const struct kp_advice a = evaluation_advise(*state, false, 0, 0);
    told_with(&a, "2 groups of gradient-free passes during the training take 1.60 ms, 44.4 % of the time of all steps. "
                  "These steps are "
                  "long but not slow: steps 4, 9 hold 3 forward passes without backward, 800 us per group, 711 us "
                  "of it " LAST_PASS);
}

static void an_evaluation_has_what_lies_between_its_passes(void **state)
{
    const struct kp_advice a = evaluation_advise(*state, true, 220, 0);
    told_with(&a,
              "2 groups of gradient-free passes during the training take 1.60 ms, 44.4 % of the time of all steps. "
              "These steps are "
              "long but not slow: steps 4, 9 hold 3 forward passes without backward, 800 us per group. To time them");
}

/* Steps 4 and 9 of ten have a gap of so many us before an evaluation of 300 us, as a garbage collection is. */
static struct kp_advice gap_advise(struct little *t, int gap_us)
{
    for (int step = 0, at = 0; step < 10; step++) {
        const int more = step % 5 == 4 ? gap_us + 300 : 0;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, 200 + more, "");
        for (int i = 0; more && i < 3; i++) pass_make(t, at + gap_us + i * 90, 0, false);
        pass_make(t, at + 40 + more, step + 1, true);
        at += 200 + more;
    }
    return advise(t);
}

static void a_long_gap_before_an_evaluation_is_named(void **state)
{
    const struct kp_advice a = gap_advise(*state, 30000);
    assert_non_null(strstr(a.evaluated, "30.3 ms per group"));
    assert_non_null(strstr(a.evaluated, ", 30.0 ms of it before its first pass, without an operator"));
    assert_float_equal(a.evaluated_ns, 6.06e6, 1e4);
}

static void a_short_gap_before_it_is_a_part_of_it(void **state)
{
    const struct kp_advice a = gap_advise(*state, 8000);
    assert_non_null(strstr(a.evaluated, "8.30 ms per group"));
    assert_null(strstr(a.evaluated, "before its first pass"));
}

/* 100 ms behind the last pass of one of two evaluations: that is of the step, not of each evaluation. */
static void what_one_evaluation_alone_has_behind_its_last_pass_is_a_slow_step(void **state)
{
    const struct kp_advice a = evaluation_advise(*state, true, 0, 100000);
    assert_int_equal(a.count, 2);
    assert_string_equal(a.findings[0].id, "no-op-runs"); /* each step of this training is of few ops */
    assert_string_equal(a.findings[1].id, "slow-steps");
    assert_non_null(strstr(a.findings[1].what, "step 9 lasts 100.0 ms longer "));
}

static void passes_without_backward_in_each_step_are_a_part_of_the_training(void **state)
{
    assert_null(passes_advise(*state, 1).evaluated);
}

static void a_second_pass_in_each_step_is_told_with_its_line(void **state)
{
    has_stacks = true;
    const struct kp_advice a = passes_advise(*state, 1);
    has_stacks = false;
    assert_non_null(a.again);
    const char *said = "each step also runs layers without gradients, at least 78.0 us (39.0 %), at train.py:41 main. ";
    if (strncmp(a.again, said, strlen(said)) != 0) print_error("%s\n", a.again);
    assert_memory_equal(a.again, said, strlen(said));
}

static void passes_in_some_steps_are_no_second_pass(void **state) { assert_null(passes_advise(*state, 5).again); }

/* As Muon does. */
static void layers_of_an_optimizer_are_no_second_pass(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 10; step++) {
        numbered_step(t, step, 200 * step, 200);
        pass_make(t, 200 * step + 2, step + 1, true);
        event(t, "user_annotation", "Optimizer.step#Muon.step", 1, 200 * step + 80, 100, "");
        op(t, "aten::linear", 200 * step + 90, 60);
    }
    assert_null(advise(t).again);
}

/* Ten steps of 200 us from 1000 us on, with `before` passes in front of them and `behind` ones at their end. */
static struct kp_advice outside_advise(struct little *t, int before, int behind)
{
    for (int i = 0; i < before; i++) pass_make(t, 100 + 30 * i, 0, false);
    for (int step = 0; step < 10; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, 1000 + 200 * step, 200, "");
        pass_make(t, 1000 + 200 * step + 2, step + 1, true);
    }
    for (int i = 0; i < behind; i++) pass_make(t, 3050 + 50 * i, 0, false);
    return advise(t);
}

static void evaluations_outside_of_the_steps_are_told(void **state)
{
    const struct kp_advice a = outside_advise(*state, 10, 20);
    told_with(
        &a,
        "gradient-free passes outside of the steps: before the first step at least 288 us (10 passes), after the last "
        "step at least 968 us (20 passes). To time them");
    assert_int_equal((int)(a.evaluated_ns / 1000), (288 + 968) / 10);
}

/* Ten steps of 200 us from 1000 us on, each with nine passes for its rollout; `before` ones stand in front of them. */
static struct kp_advice rollouts_advise(struct little *t, int before)
{
    for (int i = 0; i < before; i++) pass_make(t, 100 + 30 * i, 0, false);
    for (int step = 0; step < 10; step++) {
        const int at = 1000 + 200 * step;
        numbered_step(t, step, at, 200);
        for (int i = 0; i < 9; i++) pass_make(t, at + 2 + 12 * i, 0, false);
        pass_make(t, at + 120, step + 1, true);
    }
    return advise(t);
}

static void the_rollout_of_a_first_step_that_is_not_whole_is_no_evaluation(void **state)
{
    const struct kp_advice a = rollouts_advise(*state, 9);
    assert_null(a.evaluated);
    assert_float_equal(a.evaluated_ns, 0, 0);
}

static void an_evaluation_before_steps_with_rollouts_is_told(void **state)
{
    const struct kp_advice a = rollouts_advise(*state, 27);
    assert_non_null(a.evaluated);
    assert_non_null(strstr(a.evaluated, "gradient-free passes outside of the steps: before the first step at least "));
}

/* A model of three ops. `sequence` 0: without gradients; else the last one's backward follows. */
static int model_run(struct little *t, int at, int sequence)
{
    static const char *const names[] = {"aten::linear", "aten::tanh", "aten::linear"};
    char args[96] = "";
    for (int i = 0; i < 3; i++) {
        if (sequence) snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", sequence * 4 + i);
        event(t, "cpu_op", names[i], 1, at + 4 * i, 3, args);
    }
    if (!sequence) return at + 12;
    for (int i = 2; i >= 0; i--) {
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", sequence * 4 + i);
        event(t, "cpu_op", "XBackward0", 1, at + 30 - 4 * i, 3, args);
    }
    return at + 40;
}

/*
 * Two models are trained in each step of 100 us, and one of them plays before each fifth: eight passes, each of which
 * draws from a softmax that is computed with gradients. Nothing goes back through that.
 */
static struct kp_advice rollout_advise(struct little *t, const char *draw)
{
    int at = 0;
    for (int step = 0; step < 20; step++) {
        char name[32];
        const int begin = at;
        at += 2;
        for (int i = 0; step % 5 == 4 && i < 8; i++) {
            at = model_run(t, at, 0);
            event(t, "cpu_op", "aten::softmax", 1, at, 3, "\"Sequence number\":900");
            op(t, draw, at + 4, 3);
            at += 388;
        }
        at = model_run(t, model_run(t, at + 8, 2 * step + 1), 2 * step + 2) + 10;
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, begin, at - begin, "");
    }
    return advise(t);
}

static void a_rollout_lasts_until_the_training_begins_and_each_pass_of_it_counts(void **state)
{
    const struct kp_advice a = rollout_advise(*state, "aten::multinomial");
    told_with(
        &a, "4 rollouts during the training take 12.8 ms, 86.5 % of the time of all steps. These steps are long but "
            "not slow: steps 4, 9, 14, 19, each 5th step, hold 8 forward passes without backward, 3.20 ms per rollout");
    assert_non_null(strstr(a.evaluated, "To save time, let one pass process many samples"));
    for (size_t i = 0; i < a.count; i++) assert_false(a.findings[i].is_critical); /* the steps are the smaller part */
    assert_true(kp_advice_is_evaluated_first(&a));
    assert_string_equal(a.evaluated_as, "rollouts");
    assert_float_equal(a.evaluated_share, 0.865, 0.0005);
}

static void what_draws_nothing_and_has_no_sign_is_called_no_evaluation(void **state)
{
    const struct kp_advice a = rollout_advise(*state, "aten::argmax");
    told_with(&a, "4 groups of gradient-free passes during the training take 12.8 ms");
    assert_non_null(strstr(a.evaluated, "To save time, run these passes less often"));
}

/* Once behind the training, however long it lasts: the answer is what each step has. */
static void an_evaluation_outside_of_the_steps_is_not_the_answer(void **state)
{
    const struct kp_advice a = outside_advise(*state, 0, 200);
    assert_true(a.evaluated_share >= KP_SHARE_CRITICAL);
    assert_in_range(a.count, 1, 9);
    assert_true(a.findings[0].step_ns < a.evaluated_ns);
    assert_non_null(strstr(a.evaluated, "gradient-free passes outside of the steps: after the last step at least "));
    assert_false(kp_advice_is_evaluated_first(&a));
}

/* Below autograd a DTensor's op runs others, and in the first step some more of them, to learn of what shape it is. */
static void ops_that_an_op_with_gradients_runs_are_no_evaluation(void **state)
{
    struct little *t = *state;
    for (int step = -2; step < 10; step++) {
        char name[32], args[96];
        const int at = 1000 + 200 * step;
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", step + 5);
        event(t, "cpu_op", "aten::mm", 1, at + 2, 90, args);
        event(t, "cpu_op", "aten::mm", 1, at + 4, 20, "");
        if (step < 0) event(t, "cpu_op", "aten::mm", 1, at + 30, 20, "");
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", step + 5);
        event(t, "cpu_op", "MmBackward0", 1, at + 110, 20, args);
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        if (step >= 0) event(t, "user_annotation", name, 1, at, 200, "");
    }
    assert_null(advise(t).evaluated);
}

/* Those inside and outside have one total, and a share of the time of both. */
static void evaluations_inside_and_outside_have_one_total(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 20; i++) pass_make(t, 10000 + 50 * i, 0, false); /* behind all steps */
    const struct kp_advice a = evaluation_advise(t, true, 0, 0);
    told_with(&a, "2 groups of gradient-free passes during the training take 1.60 ms. These steps are long but not "
                  "slow: steps 4, 9 hold 3 ");
    assert_non_null(strstr(a.evaluated, "; after the last step at least 968 us (20 passes) (in all at least 2.57 ms, "
                                        "56.2 % of the time of steps and gradient-free passes). To time them"));
}

static void one_pass_before_the_training_is_no_evaluation(void **state)
{
    assert_null(outside_advise(*state, 1, 0).evaluated);
}

static void the_dearer_note_stands_first(void **state)
{
    struct kp_advice a = {.evaluated = "e", .lines_by = "l", .evaluated_ns = 2, .steps = 1};
    struct kp_note notes[KP_NOTES_MAX];
    (void)state;
    kp_advice_waited_add(&a, &(struct kp_waited_steps){.what = "w", .some.all_ns = 1});
    assert_int_equal(kp_advice_notes(&a, notes), 3);
    assert_string_equal(notes[0].text, "e");
    kp_advice_waited_add(&a, &(struct kp_waited_steps){.what = "v", .some.all_ns = 2});
    assert_int_equal(kp_advice_notes(&a, notes), 4);
    assert_string_equal(notes[0].text, "v");
    assert_string_equal(notes[1].text, "w");
    assert_string_equal(notes[2].text, "e");
}

/* What takes least of all is left out. */
static void the_dearest_groups_of_steps_are_kept(void **state)
{
    struct kp_advice a = {.steps = 1};
    (void)state;
    for (int i = 0; i <= KP_WAITED_MAX; i++)
        kp_advice_waited_add(&a, &(struct kp_waited_steps){.what = "w", .some.all_ns = 1 + i * 3 % 7});
    assert_int_equal(a.waited_count, KP_WAITED_MAX);
    for (int i = 0; i < KP_WAITED_MAX; i++) assert_float_equal(a.waited[i].some.all_ns, 7 - i, 1e-9);
    assert_float_equal(a.waited_ns, 28, 1e-9);
}

static void a_training_without_evaluation_says_nothing_of_one(void **state)
{
    assert_null(passes_advise(*state, 20).evaluated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(the_dearest_groups_of_steps_are_kept),
        LITTLE(steps_that_hold_an_evaluation_are_told_as_such),
        LITTLE(a_long_loss_hides_no_evaluation),
        LITTLE(the_line_that_calls_an_evaluation_is_named),
        LITTLE(a_second_pass_in_each_step_is_told_with_its_line),
        LITTLE(passes_in_some_steps_are_no_second_pass),
        LITTLE(layers_of_an_optimizer_are_no_second_pass),
        cmocka_unit_test(an_evaluation_is_called_so_where_something_shows_it),
        cmocka_unit_test(one_of_two_or_three_steps_may_evaluate),
        LITTLE(two_of_three_steps_tell_no_evaluation),
        LITTLE(a_single_step_tells_that_it_runs_layers_without_gradients),
        LITTLE(an_evaluation_before_the_training_lasts_until_that_begins),
        LITTLE(an_evaluation_behind_the_training_lasts_until_the_step_ends),
        LITTLE(an_evaluation_has_what_lies_between_its_passes),
        LITTLE(an_evaluation_outside_of_the_steps_is_not_the_answer),
        LITTLE(a_long_gap_before_an_evaluation_is_named),
        LITTLE(a_short_gap_before_it_is_a_part_of_it),
        LITTLE(what_one_evaluation_alone_has_behind_its_last_pass_is_a_slow_step),
        LITTLE(passes_without_backward_in_each_step_are_a_part_of_the_training),
        LITTLE(evaluations_outside_of_the_steps_are_told),
        LITTLE(the_rollout_of_a_first_step_that_is_not_whole_is_no_evaluation),
        LITTLE(an_evaluation_before_steps_with_rollouts_is_told),
        LITTLE(evaluations_inside_and_outside_have_one_total),
        LITTLE(one_pass_before_the_training_is_no_evaluation),
        LITTLE(a_rollout_lasts_until_the_training_begins_and_each_pass_of_it_counts),
        LITTLE(what_draws_nothing_and_has_no_sign_is_called_no_evaluation),
        LITTLE(ops_that_an_op_with_gradients_runs_are_no_evaluation),
        cmocka_unit_test(the_dearer_note_stands_first),
        LITTLE(a_training_without_evaluation_says_nothing_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

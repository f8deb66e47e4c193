// SPDX-License-Identifier: Apache-2.0
/* test_step_source.c - who may count a step, and that no step counts twice */
#include "schedule/kp_schedule.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "test/support/support.h"

#define S UINT64_C(1000000000)
#define SGD "Optimizer.step#SGD.step"
#define ADAM "Optimizer.step#Adam.step"
#define LOADER "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

static const struct kp_schedule plan = {.set = true, .wait = 1, .warmup = 1, .active = 3, .repeat = 1};

static void start(const char *rule_text)
{
    struct kp_step_rule rule;
    char why[200];
    assert_int_equal(kp_step_rule_parse(rule_text, &rule, why, sizeof why), 0);
    assert_int_equal(kp_steps_init(&plan, &rule), 0);
}

static void count(bool is_step)
{
    struct kp_transition t;
    if (is_step) assert_true(kp_steps_advance(&t));
}

static void end(const char *name) { count(kp_steps_range_end(kp_steps_classify(name, true), 0)); }

static void only_the_first_optimizer_steps(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 5; i++) {
        end(ADAM);
        end(SGD);
    }
    assert_int_equal(kp_steps_seen(), 5);
    assert_int_equal(kp_steps_source(), KP_STEP_OPTIMIZER);
    assert_string_equal(kp_step_source_name(kp_steps_source()), "optimizer");
}

#define A (KP_STEP_IDENTITY | 0xa0)
#define B (KP_STEP_IDENTITY | 0xb0)
#define C (KP_STEP_IDENTITY | 0xc0)

/* Steps of optimizers of one class, `times` of each in turn. */
static void step(uint64_t who, int times)
{
    const uint32_t mark = kp_steps_classify(ADAM, true);
    assert_true(kp_steps_wants_optimizer(mark));
    for (int i = 0; i < times; i++) count(kp_steps_range_end(mark, who));
}

static void of_two_optimizers_of_one_class_the_first_steps(void **state)
{
    (void)state;
    start("auto");
    assert_int_equal(kp_steps_optimizer(), 0);
    for (int i = 0; i < 10; i++) {
        step(A, 1);
        step(B, 5);
    }
    assert_int_equal(kp_steps_seen(), 10);
    assert_true(kp_steps_optimizer() == A);
}

static void without_identities_each_optimizer_of_a_class_steps(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 10; i++) step(0, 2);
    assert_int_equal(kp_steps_seen(), 20);
    assert_int_equal(kp_steps_optimizer(), 0); /* none that could be asked whether it lives */
}

static void a_silent_optimizer_is_given_up_after_64_steps_of_others(void **state)
{
    (void)state;
    start("auto");
    step(A, 3);
    step(B, 64);
    step(A, 1); /* it was only slow */
    assert_int_equal(kp_steps_seen(), 4);
    step(B, 65);
    assert_true(kp_steps_optimizer() == B);
    assert_int_equal(kp_steps_seen(), 4); /* the step that takes over counts none: it may belong to A's last */
    step(B, 5);
    step(A, 5);
    assert_int_equal(kp_steps_seen(), 9);
}

static void trainings_that_follow_on_each_other_count_all_their_steps(void **state)
{
    (void)state;
    start("auto");
    step(A, 6); /* all three are kept */
    step(B, 6);
    step(C, 30);
    assert_true(kp_steps_optimizer() == C);
    assert_int_equal(kp_steps_seen(), 42);
    step(A, 10); /* as one that is trained on */
    assert_int_equal(kp_steps_seen(), 52);
}

static void one_that_joins_a_training_counts_one_step(void **state)
{
    (void)state;
    start("auto");
    step(A, 20); /* a discriminator that is trained before */
    for (int i = 0; i < 50; i++) {
        step(B, 1);
        step(A, 5);
    }
    assert_true(kp_steps_optimizer() == A);
    assert_int_equal(kp_steps_seen(), 20 + 1 + 250);
}

static void a_critic_of_five_steps_is_not_followed_by_its_generator(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 20; i++) {
        step(A, 5);
        step(B, 1);
        if (i == 10) step(A, 95);
    }
    assert_int_equal(kp_steps_seen(), 195);
}

/* A new one in its memory is none that returns. */
static void one_that_follows_on_a_freed_one_stays(void **state)
{
    (void)state;
    start("auto");
    step(A, 6);
    step(B, 1);
    kp_steps_optimizer_gone(A);
    step(A, 1);
    assert_true(kp_steps_optimizer() == B);
    assert_int_equal(kp_steps_seen(), 7);
}

static void an_optimizer_made_anew_goes_on_counting_at_once(void **state)
{
    (void)state;
    start("auto");
    step(A, 5);
    kp_steps_optimizer_gone(A);
    assert_int_equal(kp_steps_optimizer(), 0);
    step(B, 5);
    kp_steps_optimizer_gone(A); /* late news */
    step(B, 5);
    assert_true(kp_steps_optimizer() == B);
    assert_int_equal(kp_steps_seen(), 15);
}

static void both_optimizers_of_a_gan_made_anew_never_count_twice(void **state)
{
    (void)state;
    start("auto");
    const uint64_t pairs[][2] = {{A, B}, {C, A}, {B, C}};
    for (int epoch = 0; epoch < 3; epoch++) {
        if (epoch) kp_steps_optimizer_gone(pairs[epoch - 1][0]);
        for (int i = 0; i < 7; i++) {
            step(pairs[epoch][0], 1);
            step(pairs[epoch][1], 1);
        }
    }
    assert_int_equal(kp_steps_seen(), 21);
}

/* The second epoch has the first one's addresses the other way round; the third has its own anew. */
static void optimizers_at_the_addresses_of_others_that_were_freed_are_new(void **state)
{
    (void)state;
    start("auto");
    const uint64_t pairs[][2] = {{A, B}, {C, A}, {C, B}, {B, C}};
    for (int epoch = 0; epoch < 4; epoch++) {
        for (int i = 0; i < 5; i++) {
            step(pairs[epoch][0], 1);
            step(pairs[epoch][1], 1);
        }
        kp_steps_optimizer_gone(pairs[epoch][0]);
        kp_steps_optimizer_gone(pairs[epoch][1]);
    }
    assert_int_equal(kp_steps_seen(), 20);
}

static void one_at_the_address_of_a_freed_companion_begins_an_iteration(void **state)
{
    (void)state;
    start("auto");
    step(A, 1);
    step(B, 1);
    step(A, 1);
    kp_steps_optimizer_gone(B);
    kp_steps_optimizer_gone(A);
    step(B, 1); /* another object */
    assert_int_equal(kp_steps_seen(), 3);
    assert_true(kp_steps_optimizer() == B);
}

static void the_companion_of_one_that_is_gone_counts_from_the_next_iteration(void **state)
{
    (void)state;
    start("auto");
    step(A, 1);
    step(B, 1);
    step(A, 1); /* and then dies, in the middle of the second iteration */
    kp_steps_optimizer_gone(A);
    step(B, 1);
    assert_int_equal(kp_steps_seen(), 2);
    step(B, 3);
    assert_int_equal(kp_steps_seen(), 5);
}

static void an_identity_matters_only_where_optimizers_may_step(void **state)
{
    (void)state;
    start("range:Optimizer.step#");
    assert_false(kp_steps_wants_optimizer(kp_steps_classify(ADAM, true)));
    start("auto");
    assert_false(kp_steps_wants_optimizer(0));
    assert_false(kp_steps_wants_optimizer(kp_steps_classify(LOADER, true)));
    assert_true(kp_steps_wants_optimizer(kp_steps_classify(ADAM, true)));
    (void)kp_steps_api();
    assert_false(kp_steps_wants_optimizer(kp_steps_classify(ADAM, true)));
}

static void equal_names_get_equal_marks_and_other_names_none(void **state)
{
    (void)state;
    start("auto");
    assert_int_not_equal(kp_steps_classify(SGD, true), 0);
    assert_int_equal(kp_steps_classify(SGD, true), kp_steps_classify(SGD, true));
    assert_int_not_equal(kp_steps_classify(SGD, true), kp_steps_classify(ADAM, true));
    assert_int_equal(kp_steps_classify(SGD, false), 0);
    assert_int_equal(kp_steps_classify("Optimizer.zero_grad#SGD.zero_grad", true), 0);
    assert_int_equal(kp_steps_classify("ProfilerStep#3", true), 0);
    assert_int_equal(kp_steps_classify("enumerate(DataLoader)#X.reset", true), 0);
    assert_int_equal(kp_steps_classify("", true), 0);
    assert_false(kp_steps_range_end(0, 0));
}

static void a_dataloader_steps_after_sixteen_batches_alone(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 16; i++) end(LOADER);
    assert_int_equal(kp_steps_seen(), 0);
    end(LOADER);
    end(LOADER);
    assert_int_equal(kp_steps_seen(), 2);
    assert_int_equal(kp_steps_source(), KP_STEP_DATALOADER);
}

static void model_calls(uintptr_t module, int times)
{
    for (int i = 0; i < times; i++) count(kp_steps_module_end(module));
}

static void a_module_that_is_called_alone_counts_after_sixteen_calls(void **state)
{
    (void)state;
    start("auto");
    assert_true(kp_steps_wants_modules());
    model_calls(0x1000, 16);
    model_calls(0x2000, 40); /* another module, as a decoder beside an encoder */
    assert_int_equal(kp_steps_seen(), 0);
    model_calls(0x1000, 2);
    model_calls(0x2000, 2);
    assert_int_equal(kp_steps_seen(), 2);
    assert_int_equal(kp_steps_source(), KP_STEP_MODULE);
    assert_string_equal(kp_step_source_name(KP_STEP_MODULE), "module");
    model_calls(0x3000, 65); /* 62 in which the first might have come back */
    assert_int_equal(kp_steps_seen(), 5);
    start("range:^epoch$");
    assert_false(kp_steps_wants_modules());
    model_calls(0x1000, 100);
    assert_int_equal(kp_steps_seen(), 0);
}

static void a_module_that_was_called_once_gives_its_place(void **state)
{
    (void)state;
    start("auto");
    model_calls(0x1000, 1);
    model_calls(0x2000, 64 + 16); /* 64 in which the first might have come back, then 16 of its own */
    assert_int_equal(kp_steps_seen(), 0);
    model_calls(0x2000, 1);
    assert_int_equal(kp_steps_seen(), 1);
}

static void modules_give_way_to_what_tells_more(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 100; i++) {
        end(LOADER);
        model_calls(0x1000, 1);
    }
    assert_int_equal(kp_steps_source(), KP_STEP_DATALOADER); /* the module never counted */
    assert_int_equal(kp_steps_seen(), 84);
    assert_false(kp_steps_wants_modules());
    start("auto");
    model_calls(0x1000, 20);
    assert_int_equal(kp_steps_seen(), 4);
    end(SGD); /* takes over: the calls may have been an evaluation, so the schedule starts over */
    model_calls(0x1000, 20);
    end(SGD);
    assert_int_equal(kp_steps_seen(), 2);
    assert_int_equal(kp_steps_source(), KP_STEP_OPTIMIZER);
}

static void assert_others(const char *expected)
{
    char text[160];
    kp_steps_others(text, sizeof text);
    assert_string_equal(text, expected);
}

static void what_did_not_count_is_told(void **state)
{
    (void)state;
    start("auto");
    assert_others("");
    model_calls(0x1000, 3);
    assert_others("3 model calls");
    end(LOADER);
    count(kp_steps_call_end());
    assert_others("1 batch");
    end(SGD);
    assert_others("1 known call"); /* an optimizer's steps are of batches */
    for (int i = 0; i < 4; i++) end(LOADER);
    count(kp_steps_api());
    assert_others("1 optimizer step, 1 known call, 5 batches");
}

static void assert_explained(const char *part)
{
    char text[320];
    kp_steps_explain(text, sizeof text);
    if (!strstr(text, part)) fail_msg("no '%s' in '%s'", part, text);
    assert_true(strlen(text) < sizeof text - 1);
}

static void a_schedule_that_was_not_met_is_explained(void **state)
{
    (void)state;
    start("auto");
    assert_explained("no optimizer stepped and no DataLoader (torch::optim and torch::data of C++ mark no steps); ");
    model_calls(0x1000, 3);
    assert_explained("calls of a model count from the 17th of one on (3 came)");
    for (int i = 0; i < 3; i++) end(LOADER);
    assert_explained("batches of a DataLoader count from the 17th on (3 came)");
    end(SGD);
    assert_explained("try KPROF_SCHEDULE=active=1");
    end(SGD);
    end(SGD);
    assert_explained("try KPROF_SCHEDULE=warmup=1,active=2");
    start("optimizer");
    assert_explained("no optimizer stepped; ");
    start("range:^epoch$");
    assert_explained("no record_function range matches '^epoch$'");
    start("op:^aten::argmax$");
    assert_explained("no op matches '^aten::argmax$'");
    start("api");
    assert_explained("kprof_step() was not called");
    start("time:1s");
    assert_explained("ended before the first period");
    start("call:served:serve_one");
    assert_explained("call:served:serve_one never came, or did not end; kprof doctor --steps names what would count");
}

static void steps_at_ops_are_called_so(void **state)
{
    (void)state;
    start("op:^aten::argmax$");
    assert_string_equal(kp_step_source_name(KP_STEP_RANGE), "op");
    start("range:^epoch$");
    assert_string_equal(kp_step_source_name(KP_STEP_RANGE), "range");
}

static void an_optimizer_silences_the_dataloader(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 100; i++) {
        end(LOADER);
        end(SGD);
    }
    assert_int_equal(kp_steps_seen(), 100);
}

static void gradient_accumulation_never_counts_an_iteration_twice(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 32; i++) end(LOADER);
    assert_int_equal(kp_steps_seen(), 16);
    end(SGD); /* takes over: its first step is the first of the schedule */
    assert_int_equal(kp_steps_seen(), 1);
    assert_int_equal(kp_steps_source(), KP_STEP_OPTIMIZER);
    for (int i = 0; i < 32; i++) end(LOADER);
    end(SGD);
    assert_int_equal(kp_steps_seen(), 2);
}

static void kprof_step_takes_over_without_counting_twice(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 10; i++) {
        end(LOADER);
        end(SGD);
        count(kp_steps_api());
    }
    assert_int_equal(kp_steps_seen(), 10);
    assert_int_equal(kp_steps_source(), KP_STEP_API);
}

static void kprof_step_alone_counts_from_its_first_call(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 10; i++) {
        count(kp_steps_api());
        end(SGD);
    }
    assert_int_equal(kp_steps_seen(), 10);
}

static void a_range_rule_counts_each_end_and_nothing_else(void **state)
{
    (void)state;
    start("range:Optimizer.step#");
    assert_false(kp_steps_takes_api());
    for (int i = 0; i < 4; i++) {
        end(ADAM);
        end(SGD);
        end(LOADER);
        count(kp_steps_api());
    }
    assert_int_equal(kp_steps_seen(), 8);
    assert_int_equal(kp_steps_source(), KP_STEP_RANGE);
    start("range:^ProfilerStep#[0-9]+$");
    end("ProfilerStep#12");
    end("ProfilerStep#x");
    assert_int_equal(kp_steps_seen(), 1);
}

static void an_op_rule_looks_at_ops_only(void **state)
{
    (void)state;
    start("op:^aten::addmm$");
    assert_true(kp_steps_needs_ops());
    assert_int_equal(kp_steps_classify("aten::addmm", true), 0);
    assert_int_not_equal(kp_steps_classify("aten::addmm", false), 0);
    assert_int_equal(kp_steps_classify("aten::addmm_", false), 0);
    start("auto");
    assert_false(kp_steps_needs_ops());
}

static void rule_optimizer_and_rule_api_are_exclusive(void **state)
{
    (void)state;
    start("optimizer");
    count(kp_steps_api());
    for (int i = 0; i < 40; i++) end(LOADER);
    assert_int_equal(kp_steps_seen(), 0);
    end(SGD);
    assert_int_equal(kp_steps_seen(), 1);
    start("api");
    end(SGD);
    assert_int_equal(kp_steps_seen(), 0);
    count(kp_steps_api());
    assert_int_equal(kp_steps_seen(), 1);
}

static void time_steps_each_second_after_thirty_silent_ones(void **state)
{
    (void)state;
    start("auto");
    assert_int_equal(kp_steps_time_period_ns(), S);
    for (uint64_t second = 100; second < 130; second++) count(kp_steps_time(second * S, true));
    assert_int_equal(kp_steps_seen(), 0);
    for (uint64_t second = 130; second < 140; second++) count(kp_steps_time(second * S, true));
    assert_int_equal(kp_steps_seen(), 10);
    assert_int_equal(kp_steps_source(), KP_STEP_TIME);
    end(SGD); /* a better source comes late: its steps are counted from its first */
    assert_int_equal(kp_steps_seen(), 1);
    end(SGD);
    assert_int_equal(kp_steps_seen(), 2);
    for (uint64_t second = 140; second < 300; second++) count(kp_steps_time(second * S, true));
    assert_int_equal(kp_steps_seen(), 2);
    assert_int_equal(kp_steps_time_period_ns(), 0);
}

static void after_seconds_the_schedule_starts_over_with_the_first_real_step(void **state)
{
    struct kp_transition t;
    (void)state;
    start("auto"); /* wait=1,warmup=1,active=3,repeat=1 */
    for (uint64_t second = 100; second < 140; second++) count(kp_steps_time(second * S, true));
    assert_int_equal(kp_steps_seen(), 10); /* all of it was spent */
    assert_true(kp_steps_range_end(kp_steps_classify(SGD, true), 0));
    assert_true(kp_steps_advance(&t));
    assert_true(t.starts_over);
    assert_int_equal(t.step, 1);
    assert_int_equal(t.after, KP_ACTION_WARMUP);
    assert_int_equal(t.source, KP_STEP_OPTIMIZER);
    assert_true(kp_steps_range_end(kp_steps_classify(SGD, true), 0));
    assert_true(kp_steps_advance(&t));
    assert_false(t.starts_over);
    assert_int_equal(t.step, 2);
    assert_int_equal(t.before, KP_ACTION_WARMUP);
}

static void time_without_work_does_not_count(void **state)
{
    (void)state;
    start("auto");
    for (uint64_t second = 100; second < 110; second++) count(kp_steps_time(second * S, true));
    for (uint64_t second = 110; second < 500; second++) count(kp_steps_time(second * S, false));
    for (uint64_t second = 500; second < 520; second++) count(kp_steps_time(second * S, true));
    assert_int_equal(kp_steps_seen(), 0);
    for (uint64_t second = 520; second < 525; second++) count(kp_steps_time(second * S, true));
    assert_int_equal(kp_steps_seen(), 5);
    for (uint64_t second = 525; second < 600; second++) count(kp_steps_time(second * S, second % 3 == 0));
    assert_int_equal(kp_steps_seen(), 5 + 25);
}

static void a_time_rule_counts_without_work_too(void **state)
{
    (void)state;
    start("time:1s");
    for (uint64_t second = 0; second <= 10; second++) count(kp_steps_time((second + 1) * S, false));
    assert_int_equal(kp_steps_seen(), 10);
}

static void time_is_silent_without_a_schedule_and_under_other_rules(void **state)
{
    const struct kp_schedule none = {0};
    const struct kp_step_rule rule = {.kind = KP_RULE_AUTO};
    (void)state;
    assert_int_equal(kp_steps_init(&none, &rule), 0);
    assert_int_equal(kp_steps_time_period_ns(), 0);
    for (uint64_t second = 1; second < 100; second++) assert_false(kp_steps_time(second * S, true));
    start("optimizer");
    for (uint64_t second = 1; second < 100; second++) assert_false(kp_steps_time(second * S, true));
}

static void a_time_rule_keeps_its_period_and_does_not_catch_up(void **state)
{
    (void)state;
    start("time:250ms");
    assert_int_equal(kp_steps_time_period_ns(), S / 4);
    for (uint64_t i = 0; i <= 40; i++) count(kp_steps_time(10 * S + i * S / 4 + (i % 3) * 1000000, true));
    assert_int_equal(kp_steps_seen(), 40);
    count(kp_steps_time(100 * S, true)); /* the machine slept: one step, not 320 */
    count(kp_steps_time(100 * S + 1000000, true));
    assert_int_equal(kp_steps_seen(), 41);
    assert_int_equal(kp_steps_source(), KP_STEP_TIME);
}

static void a_transition_names_both_actions_and_the_source(void **state)
{
    const enum kp_action want[] = {KP_ACTION_NONE,   KP_ACTION_WARMUP,          KP_ACTION_RECORD,
                                   KP_ACTION_RECORD, KP_ACTION_RECORD_AND_SAVE, KP_ACTION_NONE,
                                   KP_ACTION_NONE};
    struct kp_transition t;
    (void)state;
    start("auto");
    for (uint64_t i = 0; i < 6; i++) {
        assert_true(kp_steps_api());
        assert_true(kp_steps_advance(&t));
        assert_int_equal(t.step, i + 1);
        assert_int_equal(t.before, want[i]);
        assert_int_equal(t.after, want[i + 1]);
        assert_int_equal(t.source, KP_STEP_API);
    }
}

enum { THREADS = 8, ROUNDS = 20000 };
static atomic_uint won;
static atomic_uchar taken[THREADS * ROUNDS + 1];

static void *step_a_lot(void *arg)
{
    struct kp_transition t;
    const uint32_t sgd = kp_steps_classify(SGD, true);
    for (int i = 0; i < ROUNDS; i++) {
        const bool is_step = *(int *)arg % 2 ? kp_steps_range_end(sgd, 0) : kp_steps_api();
        if (!is_step || !kp_steps_advance(&t)) continue;
        atomic_fetch_add(&won, 1);
        if (atomic_exchange(&taken[t.step], 1)) fail_msg("step %lu was counted twice", (unsigned long)t.step);
    }
    return NULL;
}

static void many_threads_never_count_one_step_twice(void **state)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    (void)state;
    start("auto");
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, step_a_lot, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(kp_steps_seen(), atomic_load(&won));
    assert_true(atomic_load(&won) > 0);
    assert_int_equal(kp_steps_source(), KP_STEP_API);
}

static void call(void) { count(kp_steps_call_end()); }

static void a_known_call_counts_until_an_optimizer_steps(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 3; i++) call();
    assert_int_equal(kp_steps_seen(), 3);
    assert_string_equal(kp_step_source_name(kp_steps_source()), "call");
    call();
    end(ADAM); /* takes over: this iteration's call counted */
    assert_int_equal(kp_steps_seen(), 4);
    call();
    end(ADAM);
    assert_int_equal(kp_steps_seen(), 5);
}

static void a_known_call_takes_over_from_the_dataloader(void **state)
{
    (void)state;
    start("auto");
    for (int i = 0; i < 17; i++) end(LOADER);
    assert_int_equal(kp_steps_seen(), 1);
    call();
    assert_int_equal(kp_steps_seen(), 1);
    end(LOADER);
    call();
    assert_int_equal(kp_steps_seen(), 2);
}

static void a_call_rule_counts_calls_and_nothing_else(void **state)
{
    (void)state;
    start("call:served:serve_*");
    assert_string_equal(kp_steps_call_glob(0), "served:serve_*");
    assert_null(kp_steps_call_glob(1));
    end(ADAM);
    assert_false(kp_steps_api());
    call();
    end(ADAM);
    call();
    assert_int_equal(kp_steps_seen(), 2);
}

static void other_rules_look_for_no_call(void **state)
{
    const char *const rules[] = {"optimizer", "api", "range:a", "op:a", "time:1s"};
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        start(rules[i]);
        assert_null(kp_steps_call_glob(0));
        assert_false(kp_steps_call_end());
    }
    start("auto");
    for (unsigned i = 0; kp_steps_call_glob(i); i++) assert_non_null(strchr(kp_steps_call_glob(i), ':'));
    assert_non_null(kp_steps_call_glob(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_first_optimizer_steps),
        cmocka_unit_test(of_two_optimizers_of_one_class_the_first_steps),
        cmocka_unit_test(without_identities_each_optimizer_of_a_class_steps),
        cmocka_unit_test(a_silent_optimizer_is_given_up_after_64_steps_of_others),
        cmocka_unit_test(trainings_that_follow_on_each_other_count_all_their_steps),
        cmocka_unit_test(one_that_joins_a_training_counts_one_step),
        cmocka_unit_test(a_critic_of_five_steps_is_not_followed_by_its_generator),
        cmocka_unit_test(one_that_follows_on_a_freed_one_stays),
        cmocka_unit_test(an_optimizer_made_anew_goes_on_counting_at_once),
        cmocka_unit_test(both_optimizers_of_a_gan_made_anew_never_count_twice),
        cmocka_unit_test(optimizers_at_the_addresses_of_others_that_were_freed_are_new),
        cmocka_unit_test(one_at_the_address_of_a_freed_companion_begins_an_iteration),
        cmocka_unit_test(the_companion_of_one_that_is_gone_counts_from_the_next_iteration),
        cmocka_unit_test(an_identity_matters_only_where_optimizers_may_step),
        cmocka_unit_test(equal_names_get_equal_marks_and_other_names_none),
        cmocka_unit_test(a_dataloader_steps_after_sixteen_batches_alone),
        cmocka_unit_test(a_module_that_is_called_alone_counts_after_sixteen_calls),
        cmocka_unit_test(a_module_that_was_called_once_gives_its_place),
        cmocka_unit_test(modules_give_way_to_what_tells_more),
        cmocka_unit_test(what_did_not_count_is_told),
        cmocka_unit_test(a_schedule_that_was_not_met_is_explained),
        cmocka_unit_test(steps_at_ops_are_called_so),
        cmocka_unit_test(an_optimizer_silences_the_dataloader),
        cmocka_unit_test(gradient_accumulation_never_counts_an_iteration_twice),
        cmocka_unit_test(kprof_step_takes_over_without_counting_twice),
        cmocka_unit_test(kprof_step_alone_counts_from_its_first_call),
        cmocka_unit_test(a_range_rule_counts_each_end_and_nothing_else),
        cmocka_unit_test(an_op_rule_looks_at_ops_only),
        cmocka_unit_test(rule_optimizer_and_rule_api_are_exclusive),
        cmocka_unit_test(time_steps_each_second_after_thirty_silent_ones),
        cmocka_unit_test(after_seconds_the_schedule_starts_over_with_the_first_real_step),
        cmocka_unit_test(time_without_work_does_not_count),
        cmocka_unit_test(a_time_rule_counts_without_work_too),
        cmocka_unit_test(time_is_silent_without_a_schedule_and_under_other_rules),
        cmocka_unit_test(a_time_rule_keeps_its_period_and_does_not_catch_up),
        cmocka_unit_test(a_transition_names_both_actions_and_the_source),
        cmocka_unit_test(a_known_call_counts_until_an_optimizer_steps),
        cmocka_unit_test(a_known_call_takes_over_from_the_dataloader),
        cmocka_unit_test(a_call_rule_counts_calls_and_nothing_else),
        cmocka_unit_test(other_rules_look_for_no_call),
        cmocka_unit_test(many_threads_never_count_one_step_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

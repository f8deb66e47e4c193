// SPDX-License-Identifier: Apache-2.0
/* test_advice.c - sick and healthy traces, and what is said of them */
#include "test/unit/advise/advised.h"

#define LOADER "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

/* Steps of 100 us: the loader for `loading` us, then an op that ends with the step. */
static void training_make(struct little *t, int steps, int loading)
{
    for (int step = 0; step < steps; step++) {
        step_event(t, step);
        event(t, "user_annotation", LOADER, 1, 100 * step, loading, "");
        op(t, "aten::stack", 100 * step + 1, loading - 1);
        op(t, "aten::mm", 100 * step + loading, 100 - loading);
    }
}

/* Four steps of compute, of a phase that goes on behind them. */
static struct kp_advice phase_advise(struct little *t, int tail)
{
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"phase\":\"validate\"},");
    for (int step = 0; step < 4; step++) {
        step_event(t, step);
        op(t, "aten::mm", 100 * step, 100);
    }
    op(t, "aten::add", 400 + tail - 1, 1);
    return advise(t);
}

static void what_of_a_phase_lies_in_no_step_is_told_and_no_health(void **state)
{
    const struct kp_advice a = phase_advise(*state, 200);
    assert_int_equal(a.count, 0);
    assert_string_equal(
        a.outside, "33.3 % of the phase (0.2 ms) is outside steps and was not checked: kprof report --phase validate");
    assert_false(a.is_well || a.is_healthy);
    struct kp_note notes[KP_NOTES_MAX];
    assert_int_equal(kp_advice_notes(&a, notes), 2);
    assert_ptr_equal(notes[0].text, a.outside);
    assert_ptr_equal(notes[1].text, a.most);
}

static void a_phase_of_steps_is_healthy(void **state)
{
    const struct kp_advice a = phase_advise(*state, 40);
    assert_null(a.outside);
    assert_true(a.is_well);
}

/* It is part of a step, though not of a whole one. */
static void a_step_that_was_cut_short_does_not_lie_outside(void **state)
{
    struct little *t = *state;
    event(t, "user_annotation", "ProfilerStep#9", 1, 400, 200, "\"partial\":\"cut short\"");
    const struct kp_advice a = phase_advise(t, 200);
    assert_int_equal(a.steps, 4);
    assert_null(a.outside);
}

static void a_slow_loader_is_found_with_its_cost(void **state)
{
    training_make(*state, 4, 40);
    const struct kp_advice a = advise(*state);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_string_equal(a.findings[0].where, LOADER);
    assert_float_equal(a.findings[0].step_ns, 40000, 1);
    assert_float_equal(a.findings[0].share, 0.4, 0.001);
    assert_false(a.findings[0].is_critical); /* two fifths of each step, but no more than a worker would cost */
    assert_non_null(strstr(a.findings[0].change, "Make items cheaper first: "));
    assert_false(a.is_healthy);
    assert_null(a.missing);
}

/* Four steps of 10 ms, of which some load for `ms`, in `by`. */
static struct kp_finding loading_advise(struct little *t, const char *by, int ms, int loading_steps)
{
    for (int step = 0; step < 4; step++) {
        const int at = 10000 * step, loading = step < loading_steps ? 1000 * ms : 0;
        char text[32];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, 10000, "");
        if (loading) event(t, "user_annotation", by, 1, at, loading, "");
        op(t, "aten::mm", at + loading, 10000 - loading);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    return a.findings[0];
}

static void loading_that_workers_would_save_is_critical(void **state)
{
    const struct kp_finding f = loading_advise(*state, LOADER, 7, 4);
    assert_true(f.is_critical);
    assert_non_null(strstr(f.change, "Let workers load: "));
    assert_non_null(
        strstr(f.change, " That saves at most 7.0 ms a step. Cheaper items (__getitem__) save up to 7.0 ms."));
}

/* Two fifths of each step: what workers save differs from run to run, what cheaper items save does not. */
static void loading_of_little_more_than_workers_cost_asks_for_cheaper_items_first(void **state)
{
    const struct kp_finding f = loading_advise(*state, LOADER, 4, 4);
    assert_true(f.is_critical);
    assert_int_equal(strncmp(f.change, "Make items cheaper first: ", 26), 0);
    assert_non_null(strstr(f.change, " That saves up to 4.0 ms a step. One worker (num_workers=1, "));
    assert_non_null(strstr(f.change, ") saves at most 4.0 ms. Taking a batch from it costs 1 to 3 ms"));
}

/* Its mean is 3.5 ms a step. */
static void loading_of_half_of_the_steps_counts_in_those(void **state)
{
    const struct kp_finding f = loading_advise(*state, LOADER, 7, 2);
    assert_true(f.is_critical);
    assert_non_null(strstr(f.change, "Let workers load: "));
}

static void loading_that_costs_no_more_than_workers_is_a_warning(void **state)
{
    const struct kp_finding f = loading_advise(*state, LOADER, 2, 4);
    assert_false(f.is_critical);
    assert_non_null(strstr(f.change, "Make items cheaper first: "));
    assert_null(strstr(f.change, "num_workers"));
}

static void a_short_wait_for_workers_is_critical(void **state)
{
    const struct kp_finding f = loading_advise(*state, WORKERS, 2, 4);
    assert_true(f.is_critical);
}

static void a_fast_loader_is_healthy(void **state)
{
    struct little *t = *state;
    training_make(t, 4, 5);
    strcpy(t->head, "\"with_stack\":1,\"profile_memory\":1,\"record_shapes\":1,\"kprof\":{\"python_gc\":\"1\"},");
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 0);
    assert_true(a.is_healthy);
}

static void what_was_not_recorded_is_not_healthy(void **state)
{
    struct little *t = *state;
    training_make(t, 4, 5);
    strcpy(t->head, "\"with_stack\":1,\"record_shapes\":1,\"kprof\":{\"python_gc\":\"1\"},");
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 0);
    assert_int_equal(a.unjudged_count, 1);
    assert_string_equal(
        a.missing,
        "healthy, as far as it was recorded; not recorded, so not checked: memory (kprof run --profile-memory)");
    assert_false(a.is_healthy);
}

static void one_step_is_incomplete_and_not_healthy(void **state)
{
    training_make(*state, 1, 5);
    const struct kp_advice a = advise(*state);
    assert_false(a.is_healthy);
    assert_non_null(a.missing);
}

static void communication_beside_compute_costs_nothing(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        event(t, "kernel", "gemm", 7, 100 * step, 60, "\"device\":0,\"stream\":7");
        event(t, "kernel", "ncclDevKernel_AllReduce", 8, 100 * step + 40, 50, "\"device\":0,\"stream\":8");
        event(t, "gpu_memcpy", "Memcpy HtoD", 9, 100 * step, 10, "\"device\":0,\"stream\":9");
    }
    const struct kp_advice a = advise(t);
    assert_true(a.has_gpu);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "exposed-communication");
    assert_float_equal(a.findings[0].step_ns, 30000, 1);
    assert_float_equal(a.mean_ns[KP_SPLIT_COPIES], 0, 1);
    assert_float_equal(a.mean_ns[KP_SPLIT_IDLE], 10000, 1);
}

static void a_step_of_few_ops_is_found_where_no_gpu_works(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        op(t, "aten::mm", 100 * step + 10, 50);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_float_equal(a.findings[0].share, 0.5, 0.001);
}

static void op_at(struct little *t, const char *name, int ts, int dur, const char *frame)
{
    char args[96];
    snprintf(args, sizeof args, "\"Call stack\":\"%s\"", frame);
    event(t, "cpu_op", name, 1, ts, dur, args);
}

/*
 * Twenty steps of 10 ms, of which each waits 5 ms: for `loader`, or for nothing that the trace has. Step 7 has a second
 * more without an op, or of one.
 */
static struct kp_advice outlier_advise(struct little *t, const char *loader, bool is_of_op)
{
    for (int step = 0, at = 0; step < 20; step++) {
        const int more = step == 7 ? 1000000 : 0;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, 10000 + more, "");
        if (loader) event(t, "user_annotation", loader, 1, at, 5000, "");
        op_at(t, "aten::mm", at + 5000, 5000, "train.py(9): main");
        if (more && is_of_op) op_at(t, "aten::sort", at + 10000, more, "train.py(30): save");
        if (more && !is_of_op) op_at(t, "aten::add", at + 9999 + more, 1, "train.py(30): save");
        at += 10000 + more;
    }
    return advise(t);
}

static void each_and_one(const struct kp_advice *a, const char *each)
{
    assert_int_equal(a->count, 2);
    assert_string_equal(a->findings[0].id, each);
    assert_float_equal(a->findings[0].step_ns, 5e6, 1e3);
    assert_float_equal(a->findings[0].share, 0.5, 0.001);
    assert_int_equal(a->findings[0].steps, strcmp(each, "no-op-runs") == 0 ? 20 : 19); /* step 7 has the wait, too */
    assert_true(a->findings[0].is_critical);
    assert_string_equal(a->findings[1].id, "slow-steps");
    assert_float_equal(a->findings[1].step_ns, 1e9 / 20, 1e3);
    assert_int_equal(a->findings[1].steps, 1);
    assert_int_equal(a->findings[1].once_step, 7);
    assert_float_equal(a->findings[1].once_ns, 1e9, 1e3);
    assert_float_equal(a->findings[1].length_ns, 1.01e9, 1e3);
    assert_float_equal(a->step_ns, 60e6, 1e3); /* the means are of all steps */
    assert_int_equal(a->steps, 20);
    assert_int_equal(a->usual.of.left_out, 1); /* but not of those that text shows */
    assert_float_equal(a->usual.of.left_out_share, 1010.0 / 1200, 1e-4);
    assert_float_equal(a->usual.step_ns, 10e6, 1e3);
}

static void a_wait_of_each_step_is_told_beside_one_slow_step(void **state)
{
    const struct kp_advice a = outlier_advise(*state, NULL, false);
    each_and_one(&a, "no-op-runs");
    assert_string_equal(a.findings[0].where, "aten::mm"); /* and not what ends the long gap */
    assert_string_equal(a.findings[0].line, "train.py:9 main");
}

static void a_loader_of_each_step_is_told_beside_one_slow_step(void **state)
{
    const struct kp_advice a = outlier_advise(*state, LOADER, true);
    each_and_one(&a, "data-loading");
}

/* Ten steps of 10 ms, of which no op runs for a fifth: in so many gaps, each before an aten::mm. */
static struct kp_advice gaps_advise(struct little *t, int gaps)
{
    for (int step = 0; step < 10; step++) {
        char text[32];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, 10000 * step, 10000, "");
        for (int i = 0; i < gaps; i++) op(t, "aten::mm", 10000 * step + 10000 * i / gaps + 2000 / gaps, 8000 / gaps);
    }
    return advise(t);
}

static void one_gap_of_each_step_is_told(void **state)
{
    const struct kp_advice a = gaps_advise(*state, 1);
    assert_int_equal(a.count, 1);
    assert_null(a.slowed_by);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_string_equal(a.findings[0].where, "aten::mm");
    assert_float_equal(a.findings[0].step_ns, 2e6, 1);
    assert_float_equal(a.findings[0].share, 0.2, 0.001);
    assert_int_equal(a.findings[0].steps, 10);
}

/* Two gaps of 400 us, each before a line of its own, and one of 100 us: no line has half of them. */
static void a_line_beside_a_cost_has_half_of_it(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 4; step++) {
        const int at = 2000 * step;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, 2000, "");
        op_at(t, "aten::mm", at, 1000, "train.py(3): main");
        op_at(t, "aten::norm", at + 1450, 10, "train.py(4): main");
        op_at(t, "aten::add", at + 1800, 10, "train.py(5): main");
        op_at(t, "aten::mul", at + 1990, 10, "train.py(6): main");
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_string_equal(a.findings[0].what,
                        "no operator runs (Python code between operators, or a wait), 0.45 ms of it "
                        "before aten::norm, between train.py:3 main and train.py:4 main");
    assert_null(a.findings[0].line);
    assert_null(a.findings[0].where);
}

static void many_short_gaps_are_the_price_of_ops(void **state)
{
    const struct kp_advice a = gaps_advise(*state, 10);
    assert_int_equal(a.count, 0);
}

/* Steps of 10 us of ops; of forty each `every`th waits 390 us for the loader first. */
static struct kp_advice bursts_advise(struct little *t, int every)
{
    for (int step = 0, at = 0; step < 40; step++) {
        const int loading = every && step % every == every - 1 ? 390 : 0;
        char text[32];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, loading + 10, "");
        if (loading) event(t, "user_annotation", WORKERS, 1, at, loading, "");
        op(t, "aten::mm", at + loading, 10);
        at += loading + 10;
    }
    return advise(t);
}

static void a_loader_that_many_steps_wait_for_is_no_matter_of_slow_steps(void **state)
{
    const struct kp_advice a = bursts_advise(*state, 4);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_int_equal(a.findings[0].steps, 10);
    assert_float_equal(a.findings[0].share, 3900.0 / 4300, 0.001);
    assert_true(a.findings[0].is_critical);
}

static void a_loader_that_two_steps_wait_for_made_them_slow(void **state)
{
    const struct kp_advice a = bursts_advise(*state, 20);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
    assert_non_null(strstr(a.findings[0].what, "the extra time of these steps is data loading"));
}

static void kernels_of_a_device_that_are_not_read_are_said(void **state)
{
    static const struct {
        const char *process, *cat, *unread;
    } of[] = {{"Ascend Hardware", "cuda_runtime",
               "kernels of an NPU (process Ascend Hardware) are in the trace, and are not judged: what is said here is "
               "of the host alone"},
              {"python", "mtia_runtime",
               "kernels of an MTIA device are in the trace, and are not judged: what is said here is of the host "
               "alone"},
              {"python", "cuda_runtime", NULL},
              {"MTIA 9", "cuda_runtime", NULL}}; /* Kineto names devices that no machine has */
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct little t = {0};
        t.used +=
            (size_t)snprintf(t.events, sizeof t.events,
                             "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":9,\"tid\":0,\"args\":{\"name\":\"%s\"}},"
                             "{\"name\":\"MatMulV2\",\"ph\":\"X\",\"pid\":9,\"tid\":3,\"ts\":\"20.5\",\"dur\":70,"
                             "\"args\":{\"Task Type\":\"AI_CORE\",\"Stream Id\":3}}",
                             of[i].process);
        for (int step = 0; step < 3; step++) {
            step_event(&t, step);
            op(&t, "aten::mm", 100 * step + 1, 97);
            event(&t, of[i].cat, "launch", 1, 100 * step + 2, 5, "");
        }
        const struct kp_advice a = advise(&t);
        if (of[i].unread) assert_string_equal(a.unread, of[i].unread);
        else assert_null(a.unread);
        assert_int_equal(a.is_well, !of[i].unread);
        little_forget(&t);
    }
    (void)state;
}

/* The program's own line that calls it goes before the frames of a package, and other threads do not count. */
static void the_call_of_python_that_fills_the_gaps_is_named(void **state)
{
    struct little *t = *state;
    event(t, "python_function", "train.py(3): main", 1, 0, 400, "");
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        event(t, "python_function", "train.py(8): fetch", 1, 100 * step + 1, 70,
              "\"Call stack\":\"train.py(4): main;\"");
        event(t, "python_function", "/usr/lib/python3/urllib/request.py(9): urlopen", 1, 100 * step + 5, 60,
              "\"Call stack\":\"train.py(11): fetch;train.py(4): main;\"");
        event(t, "python_function", "<built-in function recv>", 1, 100 * step + 6, 50,
              "\"Call stack\":\"/usr/lib/python3/urllib/request.py(12): urlopen;train.py(11): fetch;train.py(4): "
              "main;\"");
        event(t, "python_function", "train.py(20): watch", 9, 100 * step, 99, "");
        op(t, "aten::mm", 100 * step + 80, 18);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_string_equal(a.findings[0].line, "train.py:11 fetch");
    assert_string_equal(a.findings[0].where, "/usr/lib/python3/urllib/request.py(9): urlopen");
    assert_null(a.findings[0].after);
    assert_string_equal(a.findings[0].what,
                        "no operator runs, 0.06 ms of it in /usr/lib/python3/urllib/request.py(9): urlopen");
    assert_true(a.findings[0].is_at_most);
    assert_non_null(strstr(a.slowed_by, "recording every Python call")); /* its time is longer by that */
    assert_null(strstr(a.slowed_by, "3.10"));                            /* the version is not known */
}

/* Of three steps one rests for `first`, else 70 us: in count(), of which 30 us in a function that it calls. */
static struct kp_advice counts_advise(struct little *t, int first)
{
    event(t, "python_function", "train.py(3): main", 1, 0, 400, "");
    for (int step = 0; step < 3; step++) {
        const int rests = step ? 70 : first, at = 100 * step + 1;
        step_event(t, step);
        event(t, "python_function", "train.py(8): count", 1, at, rests, "");
        event(t, "python_function", "train.py(20): part", 1, at + 5, rests * 3 / 7, "");
        op(t, "aten::mm", at + rests, 98 - rests);
    }
    return advise(t);
}

static void a_function_costs_what_it_calls_too_and_no_larger_batches_are_advised(void **state)
{
    const struct kp_advice a = counts_advise(*state, 70);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].line, "train.py:8 def count");
    assert_string_equal(a.findings[0].what,
                        "no operator runs, 0.07 ms of it in train.py:8 def count and what it calls (itself 0.04 ms)");
    assert_non_null(strstr(a.findings[0].change, "Make that function cheaper"));
    assert_null(strstr(a.findings[0].change, "batches"));
}

static void a_gap_of_each_step_is_told_of_each_step(void **state)
{
    const struct kp_advice a = counts_advise(*state, 35); /* below 40 % of its step */
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_int_equal(a.findings[0].steps, 3);
}

/* Steps of 1000 us: kernels at 0 to 400 and 600 to 1000. What the host did in the gap is for the tests to say. */
static void gap_make(struct little *t, int step, int call)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
    event(t, "user_annotation", name, 1, 1000 * step, 1000, "");
    launch(t, 2 * step + 1, 1000 * step, 1000 * step, 400);
    launch(t, 2 * step + 2, 1000 * step + call, 1000 * step + 600, 395);
}

static struct kp_advice assert_cause(struct little *t, enum kp_idle_cause cause, const char *id, double ns)
{
    const struct kp_advice a = advise(t);
    double all = 0;
    for (int c = 0; c < KP_IDLE_CAUSES; c++) all += a.cause_ns[c];
    assert_float_equal(all, a.mean_ns[KP_SPLIT_IDLE], 1);
    assert_float_equal(a.cause_ns[cause], ns, 1);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, id);
    return a;
}

static void a_wait_that_empties_the_queue_is_charged_for_as_long_as_it_lasted(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        gap_make(t, step, 595);
        event(t, "cpu_op", "aten::item", 1, 1000 * step + 245, 165,
              "\"Call stack\":\"torch/x.py(3): f;train.py(7): main;\"");
        event(t, "cuda_runtime", "cudaStreamSynchronize", 1, 1000 * step + 250, 150, "\"correlation\":900");
    }
    const struct kp_advice a = assert_cause(t, KP_IDLE_SYNC, "implicit-sync", 150000);
    assert_string_equal(a.findings[0].where, "aten::item");
    assert_string_equal(a.findings[0].line, "train.py:7 main");
    assert_string_equal(a.findings[0].frame, "torch/x.py(3): f");
}

static void python_before_a_launch_starves_the_gpu(void **state)
{
    for (int step = 0; step < 3; step++) gap_make(*state, step, 590);
    assert_cause(*state, KP_IDLE_PYTHON, "python-starved", 190000);
}

static void ops_before_a_launch_are_launching(void **state)
{
    for (int step = 0; step < 3; step++) {
        gap_make(*state, step, 590);
        for (int i = 0; i < 5; i++) op(*state, "aten::view", 1000 * step + 400 + 38 * i, 38);
    }
    assert_cause(*state, KP_IDLE_LAUNCH, "launch-bound", 205000);
}

static void what_is_left_of_launching_without_recording_is_told(void **state)
{
    struct little *const t = *state;
    strcpy(t->head, "\"kprof\":{\"bare_steps\":9,\"bare_step_us\":850},");
    for (int step = 0; step < 3; step++) {
        gap_make(t, step, 590);
        for (int i = 0; i < 5; i++) op(t, "aten::view", 1000 * step + 400 + 38 * i, 38);
    }
    const struct kp_advice a = advise(t);
    assert_non_null(strstr(a.slowed_by, "a step takes 1.18 times as long as before recording (0.850 ms)"));
    assert_non_null(strstr(a.slowed_by, "waits 0.205 ms per step for launches and Python, about 0.055 ms without"));
}

/* As ResNet-50 on an H200 whose input is made on the host: not the op behind it, that launches the next kernel. */
static void a_long_op_of_the_host_has_the_gap_itself(void **state)
{
    for (int step = 0; step < 3; step++) {
        gap_make(*state, step, 590);
        op(*state, "aten::randn", 1000 * step + 405, 150);
        op(*state, "aten::to", 1000 * step + 585, 12);
    }
    const struct kp_advice a = assert_cause(*state, KP_IDLE_LAUNCH, "op-on-cpu", 205000);
    assert_true(a.findings[0].step_ns >= 150000 && a.findings[0].step_ns < 205000);
    assert_string_equal(a.findings[0].where, "aten::randn");
    assert_null(strstr(a.findings[0].change, "aunch less"));
}

/* What the host does up to the launch has the whole time before it. */
static void assert_doing(struct little *t, const char *cat, const char *name, const char *args,
                         enum kp_idle_cause cause, const char *id)
{
    for (int step = 0; step < 3; step++) {
        gap_make(t, step, 590);
        event(t, cat, name, 1, 1000 * step + 400, 190, args);
    }
    assert_cause(t, cause, id, 190000);
}

static void memory_of_the_device_asked_for_before_a_launch_is_the_allocators(void **state)
{
    assert_doing(*state, "cuda_runtime", "cudaMalloc", "\"correlation\":901", KP_IDLE_ALLOC, "device-malloc");
}

static void a_collection_of_garbage_before_a_launch_is_pythons(void **state)
{
    assert_doing(*state, "python_function", "Python GC", "", KP_IDLE_GC, "python-gc");
}

static void compiling_before_a_launch_is_told(void **state)
{
    assert_doing(*state, "user_annotation", "compile_fx_inner (dynamo_timed)", "", KP_IDLE_COMPILE, "recompilation");
}

static void what_was_launched_before_depends_on_something(void **state)
{
    for (int step = 0; step < 3; step++) gap_make(*state, step, 100);
    assert_cause(*state, KP_IDLE_DEPENDENCY, "dependency", 200000);
}

/* As a graph of many nodes on an H200: its launch takes longer than the first kernels. */
static void while_the_launch_is_not_back_the_gpu_waits_for_it(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", name, 1, 1000 * step, 1000, "");
        launch(t, 2 * step + 1, 1000 * step, 1000 * step, 400);
        launch_by(t, "cudaGraphLaunch", 2 * step + 2, 1000 * step + 100, 495, 1000 * step + 600, 395);
    }
    assert_cause(t, KP_IDLE_LAUNCH, "launch-bound", 205000);
}

static void what_is_launched_in_a_gap_and_comes_late_depends_on_something(void **state)
{
    for (int step = 0; step < 3; step++) gap_make(*state, step, 450);
    assert_cause(*state, KP_IDLE_DEPENDENCY, "dependency", 145000);
}

static void steps_and_kernels_of_2021_count(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "Operator", name, 1, 100 * step, 100, "");
        event(t, "Operator", LOADER, 1, 100 * step, 30, "");
        event(t, "Kernel", "gemm", 7, 100 * step + 30, 60, "\"device\":0,\"stream\":7");
        event(t, "Memcpy", "Memcpy HtoD", 7, 100 * step + 90, 4, "\"device\":0,\"stream\":7");
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.steps, 3);
    assert_float_equal(a.mean_ns[KP_SPLIT_COMPUTE], 60000, 1);
    assert_float_equal(a.mean_ns[KP_SPLIT_COPIES], 4000, 1);
    assert_float_equal(a.mean_ns[KP_SPLIT_LOADING], 30000, 1);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
}

/* Before 2024 a file has CUPTI's correlation as External id of device work, which may be some other op's id. */
static void a_copy_is_its_ops_where_its_id_is_another_ops(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        char args[80];
        const int at = 100 * step;
        step_event(t, step);
        snprintf(args, sizeof args, "\"External id\":%d", 20 + step);
        event(t, "cpu_op", "aten::relu", 1, at + 2, 2, args);
        snprintf(args, sizeof args, "\"External id\":%d", 50 + step);
        event(t, "cpu_op", "aten::copy_", 1, at + 5, 6, args);
        snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", 20 + step, 20 + step);
        event(t, "cuda_runtime", "cudaMemcpyAsync", 1, at + 6, 4, args);
        event(t, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, at + 12, 87, args);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "exposed-copies");
    assert_string_equal(a.findings[0].where, "aten::copy_");
}

static void one_decision_makes_the_verdict(void **state)
{
    static const struct {
        struct kp_advice advice;
        enum kp_verdict verdict;
    } rows[] = {{{.count = 1, .crowded = "no core", .missing = "steps"}, KP_VERDICT_FOUND},
                {{.missing = "steps", .crowded = "no core"}, KP_VERDICT_INCOMPLETE},
                {{.missing = "a setting", .is_unrecorded = true, .is_well = true}, KP_VERDICT_HEALTHY},
                {{.crowded = "no core"}, KP_VERDICT_NO_CORE},
                {{.met = "rank 1 had no core", .is_well = true}, KP_VERDICT_NO_CORE},
                {{.is_well = true}, KP_VERDICT_HEALTHY},
                {{.steps = 3}, KP_VERDICT_NOTHING}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kp_advice_verdict(&rows[i].advice) != rows[i].verdict) fail_msg("row %zu", i);
}

static void steps_are_listed_by_time_or_said_to_be_the_longest(void **state)
{
    static const struct {
        long numbers[5];
        size_t count;
        const char *text;
    } rows[] = {{{7}, 1, "step 7"},
                {{16, 12, 5}, 3, "steps 5, 12, 16"},
                {{16, 12, 5, 9, 2}, 5, "steps 16, 12, 5, longest first, and 2 more"},
                {{5, 12, 16, 9}, 4, "steps 5, 12, 16, longest first, and 1 more"},
                {{5, 9, 12, 16}, 4, "steps 5, 9, 12 and 1 more"}};
    char text[KP_STEPS_TEXT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(kp_finding_steps_text(text, sizeof text, rows[i].numbers, rows[i].count, 3), rows[i].text);
}

static void a_wait_for_a_core_stands_above_what_costs_less(void **state)
{
    struct kp_advice a = {.crowded = "no core", .crowded_ns = 5, .count = 1, .findings = {{.step_ns = 5}}};
    (void)state;
    assert_true(kp_advice_is_crowded_first(&a));
    a.findings[0].step_ns = 6;
    assert_false(kp_advice_is_crowded_first(&a));
    a.findings[0] = (struct kp_finding){.step_ns = 1, .is_critical = true};
    assert_false(kp_advice_is_crowded_first(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_decision_makes_the_verdict),
        cmocka_unit_test(steps_are_listed_by_time_or_said_to_be_the_longest),
        cmocka_unit_test(a_wait_for_a_core_stands_above_what_costs_less),
        LITTLE(what_of_a_phase_lies_in_no_step_is_told_and_no_health),
        LITTLE(a_phase_of_steps_is_healthy),
        LITTLE(a_step_that_was_cut_short_does_not_lie_outside),
        LITTLE(a_slow_loader_is_found_with_its_cost),
        LITTLE(loading_that_workers_would_save_is_critical),
        LITTLE(loading_of_half_of_the_steps_counts_in_those),
        LITTLE(loading_of_little_more_than_workers_cost_asks_for_cheaper_items_first),
        LITTLE(loading_that_costs_no_more_than_workers_is_a_warning),
        LITTLE(a_short_wait_for_workers_is_critical),
        LITTLE(a_fast_loader_is_healthy),
        LITTLE(what_was_not_recorded_is_not_healthy),
        LITTLE(one_step_is_incomplete_and_not_healthy),
        LITTLE(communication_beside_compute_costs_nothing),
        LITTLE(a_step_of_few_ops_is_found_where_no_gpu_works),
        LITTLE(a_wait_of_each_step_is_told_beside_one_slow_step),
        LITTLE(a_loader_of_each_step_is_told_beside_one_slow_step),
        LITTLE(one_gap_of_each_step_is_told),
        LITTLE(a_line_beside_a_cost_has_half_of_it),
        LITTLE(many_short_gaps_are_the_price_of_ops),
        LITTLE(a_loader_that_many_steps_wait_for_is_no_matter_of_slow_steps),
        LITTLE(a_loader_that_two_steps_wait_for_made_them_slow),
        cmocka_unit_test(kernels_of_a_device_that_are_not_read_are_said),
        LITTLE(the_call_of_python_that_fills_the_gaps_is_named),
        LITTLE(a_function_costs_what_it_calls_too_and_no_larger_batches_are_advised),
        LITTLE(a_gap_of_each_step_is_told_of_each_step),
        LITTLE(a_wait_that_empties_the_queue_is_charged_for_as_long_as_it_lasted),
        LITTLE(python_before_a_launch_starves_the_gpu),
        LITTLE(ops_before_a_launch_are_launching),
        LITTLE(what_is_left_of_launching_without_recording_is_told),
        LITTLE(a_long_op_of_the_host_has_the_gap_itself),
        LITTLE(memory_of_the_device_asked_for_before_a_launch_is_the_allocators),
        LITTLE(a_collection_of_garbage_before_a_launch_is_pythons),
        LITTLE(compiling_before_a_launch_is_told),
        LITTLE(what_was_launched_before_depends_on_something),
        LITTLE(while_the_launch_is_not_back_the_gpu_waits_for_it),
        LITTLE(what_is_launched_in_a_gap_and_comes_late_depends_on_something),
        LITTLE(steps_and_kernels_of_2021_count),
        LITTLE(a_copy_is_its_ops_where_its_id_is_another_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

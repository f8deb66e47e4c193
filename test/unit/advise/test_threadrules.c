// SPDX-License-Identifier: Apache-2.0
/* test_threadrules.c - threads that take the cores from one another: what they cost at least, and how many to have */
#include "test/unit/advise/advised.h"

enum { STEPS = 10, OPS = 4 };

static const char *more_facts = "";

/* Steps of four calls of one op, of so many us; of some steps one call lasts 5 ms longer. */
static const struct kp_finding *threads_advise(struct little *t, const int us[OPS], int stalled, int threads)
{
    static struct kp_advice a;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"cores\":\"2\",\"busy_threads\":\"%d\",\"python_gc\":\"1\"%s},",
             threads, more_facts);
    for (int step = 0, at = 0; step < STEPS; step++) {
        const int begin = at, lasts = us[0] + us[1] + us[2] + us[3] + (step < stalled ? 5000 : 0);
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, begin, lasts, "");
        for (int i = 0; i < OPS; i++) {
            const int more = step < stalled && i == step % OPS ? 5000 : 0;
            op(t, "aten::linear", at, us[i] + more);
            at += us[i] + more;
        }
    }
    a = advise(t);
    for (size_t i = 0; i < a.count; i++)
        if (strcmp(a.findings[i].id, "too-many-threads") == 0) return &a.findings[i];
    return NULL;
}

static void calls_that_last_far_longer_than_usual_are_what_threads_cost_at_least(void **state)
{
    const struct kp_finding *f = threads_advise(*state, (int[]){20, 20, 20, 20}, 3, 16);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 1.5e6, 1);
    assert_float_equal(f->share, 1500.0 / 1580, 0.001);
    assert_string_equal(f->what, "16 busy threads compete for 2 cores; without other programs that costs at least");
    assert_string_equal(f->change,
                        "OMP_NUM_THREADS is not set, and torch then takes no more threads than cores, so the "
                        "program sets them, or starts threads of its own: torch.set_num_threads(1): half of the ops' "
                        "time is in ops of at most 0.020 ms. One thread is as fast with them. At most 2 where ops are "
                        "larger.");
}

static void large_ops_get_as_many_threads_as_cores_and_one_where_these_are_not_free(void **state)
{
    const struct kp_finding *f = threads_advise(*state, (int[]){5000, 5000, 5000, 5000}, 0, 6);
    assert_non_null(f);
    assert_true(f->step_ns == 0 && f->share == 0);
    assert_string_equal(f->what, "6 busy threads compete for 2 cores");
    assert_string_equal(f->change,
                        "Set OMP_NUM_THREADS=2, or where the program calls it itself torch.set_num_threads(2) while "
                        "each has a core to itself, and 1 where other programs also use the cores: half of the time "
                        "of ops is in ops of at least 5.000 ms, long enough to be shared.");
}

/* Measured: ops of 10 us on one thread last 300 us on 16 threads of two cores. */
static void a_small_op_lasts_longer_on_more_threads(void **state)
{
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 16);
    assert_non_null(f);
    assert_non_null(strstr(f->change, "torch.set_num_threads(1)"));
}

static void an_op_of_that_length_on_few_threads_is_large(void **state)
{
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 4);
    assert_non_null(f);
    assert_non_null(strstr(f->change, "torch.set_num_threads(2)"));
}

/* torch itself takes no more threads than there are cores, whatever OMP_NUM_THREADS says. */
static void threads_that_do_not_wait_for_a_core_are_not_too_many(void **state)
{
    more_facts = ",\"omp_num_threads\":\"16\",\"core_had_us\":40000,\"core_waited_us\":400";
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 4);
    more_facts = "";
    assert_null(f);
}

static void layers_of_other_sizes_did_not_wait(void **state)
{
    const struct kp_finding *f = threads_advise(*state, (int[]){20, 100, 20, 1000}, 0, 16);
    assert_non_null(f);
    assert_true(f->step_ns == 0);
}

#define OTHERS_HAVE_THEM ",\"omp_num_threads\":\"16\",\"core_had_us\":4000,\"core_waited_us\":6000"

/* One of 4 calls lasts 5 ms more in 8 of 10 steps. One thread would need 40 us for each, and 100 with its own wait. */
static void threads_whose_cores_others_have_wait_for_the_slowest(void **state)
{
    more_facts = OTHERS_HAVE_THEM;
    const struct kp_finding *f = threads_advise(*state, (int[]){20, 20, 20, 20}, 8, 2);
    more_facts = "";
    assert_non_null(f);
    assert_true(f->is_critical);
    assert_float_equal(f->step_ns, 1e3 * (4 * 20 + 0.8 * 5000 - 4 * 100), 1);
    assert_string_equal(f->what, "torch uses 2 threads (OMP_NUM_THREADS=16), but other programs use the 2 cores as "
                                 "well. Each operator waits for its slowest thread");
    assert_string_equal(f->change, "Set OMP_NUM_THREADS=1, or torch.set_num_threads(1): one thread never waits for "
                                   "another. More threads (up to 2) are faster only if each has its own core. The "
                                   "real cost may be higher.");
}

/* All calls are slow: how long they would last alone is not known. */
static void calls_that_all_wait_have_no_cost(void **state)
{
    more_facts = OTHERS_HAVE_THEM;
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 2);
    more_facts = "";
    assert_non_null(f);
    assert_true(!f->is_critical && f->step_ns == 0);
    assert_non_null(strstr(f->change, "Try OMP_NUM_THREADS=1, or torch.set_num_threads(1): "));
}

static void one_thread_that_waits_for_a_core_is_not_too_many(void **state)
{
    more_facts = OTHERS_HAVE_THEM;
    const struct kp_finding *f = threads_advise(*state, (int[]){20, 20, 20, 20}, 8, 1);
    more_facts = "";
    assert_null(f);
}

static void a_little_wait_without_a_cost_is_not_told(void **state)
{
    more_facts = ",\"core_had_us\":8000,\"core_waited_us\":2000";
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 2);
    more_facts = "";
    assert_null(f);
}

/* One step of Adam takes 100 us, and 5 ms more where its threads wait. */
static void what_threads_cost_is_charged_once(void **state)
{
    struct little *t = *state;
    double all = 0;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"cores\":\"2\",\"busy_threads\":\"2\"%s},", OTHERS_HAVE_THEM);
    for (int step = 0, at = 0; step < STEPS; step++) {
        const int more = step % 5 ? 2500 : 0, begin = at;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, begin, 200 + 2 * more, "");
        op(t, "aten::mm", begin, 90);
        event(t, "user_annotation", "Optimizer.step#Adam.step", 1, begin + 100, 90 + 2 * more, "");
        op(t, "aten::mul_", begin + 101, 40 + more);
        op(t, "aten::add_", begin + 142 + more, 40 + more);
        at += 200 + 2 * more;
    }
    const struct kp_advice a = advise(t);
    assert_string_equal(a.findings[0].id, "too-many-threads");
    for (size_t i = 0; i < a.count; i++) all += a.findings[i].step_ns;
    assert_true(all <= a.step_ns);
    for (size_t i = 1; i < a.count; i++) assert_true(a.findings[i].step_ns <= 500000);
}

/* 16 threads make all calls slow alike. Of each step of 40 ms the thread of the steps had no core for 30. */
static const struct kp_finding *all_slow(struct little *t, const char *others_us, int threads)
{
    static char facts[512];
    size_t used = (size_t)snprintf(facts, sizeof facts,
                                   ",\"core_had_us\":80000,\"core_waited_us\":300000,"
                                   "\"core_others_us\":%s,\"core_steps\":\"",
                                   others_us);
    for (int i = 0; i < STEPS; i++)
        used += (size_t)snprintf(facts + used, sizeof facts - used, "%s%d:30000", i ? "," : "", i);
    snprintf(facts + used, sizeof facts - used, "\"");
    more_facts = facts;
    const struct kp_finding *f = threads_advise(t, (int[]){10000, 10000, 10000, 10000}, 0, threads);
    more_facts = "";
    return f;
}

static void where_all_calls_are_slow_the_wait_for_a_core_is_the_cost(void **state)
{
    const struct kp_finding *f = all_slow(*state, "600000", 16);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 30e6, 1);
    assert_float_equal(f->share, 0.75, 0.001);
    assert_true(f->is_critical);
    assert_string_equal(f->what, "16 busy threads compete for 2 cores; that costs about");
}

/* The program had half a core of two, and others the rest. One thread has that, so 10 ms take 20, or its turn alone. */
static void what_others_would_take_of_the_cores_is_told_as_a_bound(void **state)
{
    const struct kp_finding *f = all_slow(*state, "120000", 16);
    assert_non_null(f);
    assert_true(f->step_ns == 0 && f->share == 0);
    assert_string_equal(f->what, "16 busy threads compete for 2 cores; other programs use the cores as well, so that "
                                 "costs at most about 20.0 ms per step");
}

/* Of four threads each has 0.21 of a core, as 9.5 on two cores do. One among 5.5 others has 0.31, and takes 32.5 ms. */
static void one_thread_has_its_turn_among_few_others(void **state)
{
    const struct kp_finding *f = all_slow(*state, "520000", 4);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 7.5e6, 1);
}

/* Calls that last longer than usual are no cost where one thread would wait for the cores as long. */
static void a_program_that_one_thread_would_not_make_quicker_has_no_cost(void **state)
{
    const struct kp_finding *f = all_slow(*state, "10000", 16);
    assert_non_null(f);
    assert_true(f->step_ns == 0);
}

static void threads_of_another_library_are_not_told_to_be_torchs(void **state)
{
    more_facts = ",\"torch_threads\":\"2\"";
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 17);
    more_facts = "";
    assert_non_null(f);
    assert_string_equal(f->change, "torch computes with 2 of them: the others are the program's own, or of a library "
                                   "such as NumPy's BLAS. Start fewer, or set OMP_NUM_THREADS=2, which most read.");
}

static void threads_that_were_not_counted_are_not_told_as_none(void **state)
{
    more_facts = ",\"omp_num_threads\":\"16\"";
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 0);
    more_facts = "";
    assert_non_null(f);
    assert_string_equal(f->what, "OMP_NUM_THREADS=16 on 2 cores: the threads compete for the cores");
}

static void one_thread_among_other_programs_is_not_too_many(void **state) { assert_null(all_slow(*state, "0", 1)); }

static void threads_that_are_no_more_than_the_cores_are_not_too_many(void **state)
{
    more_facts = ",\"core_had_us\":300000,\"core_waited_us\":2000,\"core_others_us\":290000";
    const struct kp_finding *f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 2);
    more_facts = "";
    assert_null(f);
}

/* torch computes with one of 16 that ran; the others have 120 or 40 ms, and it has 80. */
static void threads_of_others_that_hardly_run_are_not_too_many(void **state)
{
    more_facts = ",\"torch_threads\":\"1\",\"core_had_us\":80000,\"core_waited_us\":70000,\"core_others_us\":120000";
    assert_non_null(threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 16));
    little_teardown(state);
    little_setup(state);
    more_facts = ",\"torch_threads\":\"1\",\"core_had_us\":80000,\"core_waited_us\":70000,\"core_others_us\":39000";
    const struct kp_finding *const f = threads_advise(*state, (int[]){300, 300, 300, 300}, 0, 16);
    more_facts = "";
    assert_null(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(calls_that_last_far_longer_than_usual_are_what_threads_cost_at_least),
        LITTLE(large_ops_get_as_many_threads_as_cores_and_one_where_these_are_not_free),
        LITTLE(a_small_op_lasts_longer_on_more_threads),
        LITTLE(an_op_of_that_length_on_few_threads_is_large),
        LITTLE(threads_that_do_not_wait_for_a_core_are_not_too_many),
        LITTLE(threads_whose_cores_others_have_wait_for_the_slowest),
        LITTLE(calls_that_all_wait_have_no_cost),
        LITTLE(one_thread_that_waits_for_a_core_is_not_too_many),
        LITTLE(a_little_wait_without_a_cost_is_not_told),
        LITTLE(what_threads_cost_is_charged_once),
        LITTLE(where_all_calls_are_slow_the_wait_for_a_core_is_the_cost),
        LITTLE(what_others_would_take_of_the_cores_is_told_as_a_bound),
        LITTLE(one_thread_has_its_turn_among_few_others),
        LITTLE(threads_of_another_library_are_not_told_to_be_torchs),
        LITTLE(a_program_that_one_thread_would_not_make_quicker_has_no_cost),
        LITTLE(threads_that_were_not_counted_are_not_told_as_none),
        LITTLE(one_thread_among_other_programs_is_not_too_many),
        LITTLE(threads_that_are_no_more_than_the_cores_are_not_too_many),
        LITTLE(threads_of_others_that_hardly_run_are_not_too_many),
        LITTLE(layers_of_other_sizes_did_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

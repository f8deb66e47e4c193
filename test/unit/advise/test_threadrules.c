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
    assert_string_equal(f->what, "16 busy threads compute on 2 cores, and take them from one another; where no other "
                                 "program has them that costs at least");
    assert_string_equal(f->change,
                        "Set OMP_NUM_THREADS=1, or torch.set_num_threads(1): half of the time of ops is in "
                        "ops of at most 0.020 ms on these threads, and one thread is as fast with such small "
                        "ones. At most 2 where ops are larger.");
}

static void large_ops_get_as_many_threads_as_cores_and_one_where_these_are_not_free(void **state)
{
    const struct kp_finding *f = threads_advise(*state, (int[]){5000, 5000, 5000, 5000}, 0, 16);
    assert_non_null(f);
    assert_true(f->step_ns == 0 && f->share == 0);
    assert_string_equal(f->what, "16 busy threads compute on 2 cores, and take them from one another");
    assert_string_equal(f->change,
                        "Set OMP_NUM_THREADS=2, or torch.set_num_threads(2) while each has a core to itself, "
                        "and 1 where other programs use the cores, too: half of the time of ops is in ops of "
                        "at least 5.000 ms, long enough to be shared.");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(calls_that_last_far_longer_than_usual_are_what_threads_cost_at_least),
        LITTLE(large_ops_get_as_many_threads_as_cores_and_one_where_these_are_not_free),
        LITTLE(a_small_op_lasts_longer_on_more_threads),
        LITTLE(an_op_of_that_length_on_few_threads_is_large),
        LITTLE(threads_that_do_not_wait_for_a_core_are_not_too_many),
        LITTLE(layers_of_other_sizes_did_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_ownthreads.c - threads of the program itself that take cores from the thread of the steps */
#include "test/unit/advise/advised.h"

enum { STEPS = 20 };
static const char *before = ""; /* members of the head */

/* Steps of 20 ms, of which 8 are an op. Thread 2 runs a loop of Python all the time. */
static struct kp_advice advice_of(struct little *t, const char *facts, bool has_calls)
{
    snprintf(t->head, sizeof t->head,
             "%s\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\",\"cores\":\"2\"%s},", before,
             facts);
    for (int i = 0; i < STEPS; i++) {
        numbered_step(t, i, 20000 * i, 20000);
        op(t, "aten::mm", 20000 * i + 12000, 8000);
    }
    if (has_calls) event(t, "python_function", "train.py(13): logger", 2, 0, 20000 * STEPS, "\"Python id\":1");
    return advise(t);
}

/* Of 400 ms it had a core for 100, wanted one for 100, and slept for 200. */
#define TIMES ",\"core_had_us\":100000,\"core_waited_us\":100000"

static void threads_of_the_program_itself_are_told_and_not_other_programs(void **state)
{
    const struct kp_advice a =
        advice_of(*state, TIMES ",\"core_others_us\":240000,\"busy_threads\":\"1\",\"omp_num_threads\":\"1\"", false);
    assert_string_equal(
        a.crowded,
        "the main thread had no CPU core for 50 % of the time in which it was ready to run. Its work took "
        "2.0 times as long as on a free core. Other threads of this program ran for 240 ms together in these "
        "steps, the main thread for 100 ms "
        "(what they run: kprof run --with-stack 1 --schedule 10-30, then kprof stacks --threads)");
}

static void their_line_is_named_where_calls_of_python_were_recorded(void **state)
{
    const struct kp_advice a =
        advice_of(*state, TIMES ",\"core_others_us\":240000,\"busy_threads\":\"2\",\"omp_num_threads\":\"1\"", true);
    assert_non_null(strstr(a.crowded, " (most of what they run is train.py:13 def logger)"));
}

static void the_recorders_own_threads_are_not_told(void **state)
{
    const struct kp_advice a =
        advice_of(*state, TIMES ",\"core_others_us\":6000,\"busy_threads\":\"1\",\"omp_num_threads\":\"1\"", false);
    assert_non_null(strstr(
        a.crowded, ". Other programs, or a container limit, used the cores: this program ran 1 thread on 2 cores"));
}

/* Busy threads are counted at the end, which a killed program has not. */
static void a_killed_program_of_one_thread_has_no_threads_to_blame(void **state)
{
    struct kp_advice a = advice_of(*state, TIMES ",\"core_others_us\":6000", false);
    assert_non_null(strstr(
        a.crowded, ". Other programs, or a container limit, used the cores: this program ran 1 thread on 2 cores"));
    little_teardown(state);
    little_setup(state);
    a = advice_of(*state, TIMES, false);
    assert_non_null(strstr(a.crowded, ". More threads than cores, other programs or a container limit used the cores"));
}

/* Where the program has processes beside this one, no trace of it alone says that these are strangers. */
static void workers_and_ranks_of_the_program_are_no_other_programs(void **state)
{
    static const struct {
        const char *head, *loader, *said;
    } rows[] = {
        {"", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
         ". Other programs, this program's DataLoader workers or a container limit used the cores: this program ran 1 "
         "thread on 2 cores"},
        {"", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
         ". Other programs, or a container limit, used the cores: this program ran 1 thread on 2 cores"},
        {"\"distributedInfo\":{\"rank\":1,\"world_size\":3},", NULL,
         ". Other programs, other ranks of the job or a container limit used the cores: this program ran 1 thread on 2 "
         "cores"},
        {"\"distributedInfo\":{\"rank\":1,\"world_size\":3},",
         "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
         ". Other programs, this program's DataLoader workers, other ranks of the job or a container limit used the "
         "cores: this program ran 1 thread on 2 cores"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        little_teardown(state);
        little_setup(state);
        struct little *const t = *state;
        if (rows[i].loader) event(t, "user_annotation", rows[i].loader, 1, 10, 10, "");
        before = rows[i].head;
        const struct kp_advice a =
            advice_of(t, TIMES ",\"core_others_us\":6000,\"busy_threads\":\"1\",\"omp_num_threads\":\"1\"", false);
        before = "";
        if (!strstr(a.crowded, rows[i].said)) fail_msg("row %zu: %s", i, a.crowded);
    }
}

/* A pool of torch's has a core as long as the thread of the steps has, and longer where it spins. */
static void a_pool_of_torch_is_not_blamed(void **state)
{
    const struct kp_advice a = advice_of(*state, TIMES ",\"core_others_us\":240000,\"busy_threads\":\"2\"", false);
    assert_non_null(a.crowded);
    assert_null(strstr(a.crowded, " together in these steps"));
}

/* It wanted a core for 200 ms, so a second thread of torch's for no more. What is left of 240 is the program's own. */
static void beside_a_pool_of_torch_at_least_what_it_cannot_have_had_is_told(void **state)
{
    const struct kp_advice a =
        advice_of(*state, TIMES ",\"core_others_us\":240000,\"busy_threads\":\"3\",\"torch_threads\":\"2\"", false);
    assert_non_null(a.crowded);
    assert_non_null(strstr(
        a.crowded,
        ". Other threads of this program besides torch's 2 ran for at least 40 ms together in these steps, the main "
        "thread for 100 ms ("));
}

static void a_pool_that_may_have_had_all_of_it_is_not_blamed(void **state)
{
    const struct kp_advice a =
        advice_of(*state, TIMES ",\"core_others_us\":210000,\"busy_threads\":\"3\",\"torch_threads\":\"2\"", false);
    assert_non_null(a.crowded);
    assert_null(strstr(a.crowded, " together in these steps"));
}

static void torch_without_a_pool_leaves_all_of_it_to_the_program(void **state)
{
    const struct kp_advice a =
        advice_of(*state, TIMES ",\"core_others_us\":240000,\"busy_threads\":\"3\",\"torch_threads\":\"1\"", false);
    assert_non_null(strstr(a.crowded, "program ran for 240 ms together in these steps"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(beside_a_pool_of_torch_at_least_what_it_cannot_have_had_is_told),
        LITTLE(a_pool_that_may_have_had_all_of_it_is_not_blamed),
        LITTLE(torch_without_a_pool_leaves_all_of_it_to_the_program),
        LITTLE(threads_of_the_program_itself_are_told_and_not_other_programs),
        LITTLE(their_line_is_named_where_calls_of_python_were_recorded),
        LITTLE(the_recorders_own_threads_are_not_told),
        LITTLE(a_killed_program_of_one_thread_has_no_threads_to_blame),
        LITTLE(workers_and_ranks_of_the_program_are_no_other_programs),
        LITTLE(a_pool_of_torch_is_not_blamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

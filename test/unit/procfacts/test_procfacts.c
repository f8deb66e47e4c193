// SPDX-License-Identifier: Apache-2.0
/* test_procfacts.c - cores, busy threads and the script out of the texts of /proc */
#include "preload/procfacts/procfacts.h"

#include "test/support/support.h"

static void cores_are_the_bits_of_the_mask(void **state)
{
    (void)state;
    assert_int_equal(kp_procfacts_cores("Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n"), 2);
    assert_int_equal(kp_procfacts_cores("Name:\tx\nCpus_allowed:\tff,0000000f\nCpus_allowed_list:\t0-3\n"), 12);
    assert_int_equal(kp_procfacts_cores("Name:\tx\nCpus_allowed_list:\t0-1\n"), 0);
    assert_int_equal(kp_procfacts_cores(""), 0);
}

#define MS UINT64_C(1000000)
#define STAT(name) "77 (" name ") R 1 77 1 0 -1 4194304 5 0 1 0 250 13 0 0 20 0 3 0 1234 5678 90\n"

static void a_task_has_its_time(void **state)
{
    (void)state;
    assert_int_equal(kp_procfacts_task_ns(STAT("python"), ""), 2630 * MS);
    assert_int_equal(kp_procfacts_task_ns(STAT("a) S 1 2 (b"), ""), 2630 * MS);
    assert_int_equal(kp_procfacts_task_ns(STAT("kprof-writer"), ""), 0);
    assert_int_equal(kp_procfacts_task_ns("77 (python", ""), 0);
    assert_int_equal(kp_procfacts_task_ns("", ""), 0);
}

static void the_time_is_exact_where_the_kernel_tells_it(void **state)
{
    (void)state;
    assert_int_equal(kp_procfacts_task_ns(STAT("python"), "4153788 1200 7\n"), 4153788);
    assert_int_equal(kp_procfacts_task_ns(STAT("kprof-writer"), "4153788 1200 7\n"), 0);
}

static void a_thread_has_a_core_or_waits_for_one(void **state)
{
    uint64_t had, waited;
    (void)state;
    assert_true(kp_procfacts_core("147305 4152592 2\n", &had, &waited));
    assert_int_equal(had, 147305);
    assert_int_equal(waited, 4152592);
    assert_true(kp_procfacts_core("0 8442 1\n", &had, &waited)); /* a child in its first tick */
    assert_int_equal(had, 0);
    assert_int_equal(waited, 8442);
    assert_false(kp_procfacts_core("0 0 0\n", &had, &waited));
    assert_false(kp_procfacts_core("", &had, &waited));
}

static void what_other_threads_had_is_the_programs_without_the_helpers(void **state)
{
    char text[72];
    (void)state;
    kp_procfacts_core_text(text, sizeof text, 100 * MS, 50 * MS, 460 * MS, 10 * MS);
    assert_string_equal(text, "100000,50000,350000");
    kp_procfacts_core_text(text, sizeof text, 100 * MS, 50 * MS, 105 * MS, 10 * MS);
    assert_string_equal(text, "100000,50000,0");
}

static void a_pool_is_busy_also_in_a_run_of_a_few_steps(void **state)
{
    /* main, then threads of a pool, in a run of 5 steps beside 2.8 s of imports; a pool that did nothing */
    static const uint64_t brief[] = {2780 * MS, 4 * MS, 5 * MS, 4 * MS, 98000, 31000}, none[1] = {0};
    static const uint64_t idle[] = {900000, 31000};
    (void)state;
    assert_int_equal(kp_procfacts_busy(brief, 6, 0), 4);
    assert_int_equal(kp_procfacts_busy(idle, 2, 0), 0);
    assert_int_equal(kp_procfacts_busy(none, 0, 0), 0);
}

static void in_a_long_run_a_twentieth_of_the_longest_is_busy(void **state)
{
    static const uint64_t pool[] = {20000 * MS, 1000 * MS, 1050 * MS, 740 * MS, 3900 * MS, 0};
    (void)state;
    assert_int_equal(kp_procfacts_busy(pool, 6, 0), 4);
}

/* Measured: 40 steps of a rank that waits for another, 1.6 s, and the threads of gloo beside it. */
static void a_thread_that_sleeps_most_of_the_time_is_not_busy(void **state)
{
    static const uint64_t rank[] = {160 * MS, 12 * MS, 11 * MS, 12 * MS}, pool[] = {1600 * MS, 1200 * MS};
    (void)state;
    assert_int_equal(kp_procfacts_busy(rank, 4, 1600 * MS), 1);
    assert_int_equal(kp_procfacts_busy(pool, 2, 1600 * MS), 2);
}

/* 16 threads on two cores, and other programs: each computes all the time, and has an eighth of it, or less. */
static void a_thread_is_busy_by_the_cores_that_it_could_have(void **state)
{
    (void)state;
    assert_int_equal(kp_procfacts_core_share(1600 * MS, 100 * MS, 700 * MS), 200 * MS);
    assert_int_equal(kp_procfacts_core_share(1600 * MS, 100 * MS, 0), 1600 * MS);
    assert_int_equal(kp_procfacts_core_share(1600 * MS, 0, 0), 1600 * MS);
}

/* Measured: a thread of NumPy's BLAS runs for 36 ms in the import, and never again. */
static void what_a_thread_ran_before_the_steps_does_not_count(void **state)
{
    const struct kp_tasks before = {.ns = {2651 * MS, 36 * MS, 127 * MS}, .tid = {10, 11, 40}, .count = 3};
    struct kp_tasks now = {.ns = {3682 * MS, 36 * MS, 1163 * MS, 136 * MS}, .tid = {10, 11, 40, 41}, .count = 4};
    (void)state;
    assert_int_equal(kp_procfacts_busy(now.ns, now.count, 0), 4);
    kp_procfacts_leave_out(&now, &before);
    assert_int_equal(now.ns[0], 1031 * MS);
    assert_int_equal(now.ns[3], 136 * MS);
    assert_int_equal(kp_procfacts_busy(now.ns, now.count, 1100 * MS), 3);
}

#define SCRIPT(line, wanted)                                          \
    do {                                                              \
        char out[32];                                                 \
        kp_procfacts_script(line, sizeof(line) - 1, out, sizeof out); \
        assert_string_equal(out, wanted);                             \
    } while (0)

static void the_script_is_what_python_runs(void **state)
{
    (void)state;
    SCRIPT("/usr/bin/python3\0-u\0-X\0dev\0src/train.py\0--lr\0", "train.py");
    SCRIPT("python\0-m\0torch.distributed.run\0", "torch.distributed.run");
    SCRIPT("python\0-c\0print()\0", "");
    SCRIPT("python\0-X\0", "");
    SCRIPT("python\0", "");
    SCRIPT("./serve\0model.pt\0", "");
}

static void instructions_are_those_of_the_first_processor(void **state)
{
    char words[128];
    (void)state;
    kp_procfacts_instructions("processor\t: 0\nflags\t\t: fpu avx2 avx512bw avx512_bf16\nbugs\t\t: x\n", words,
                              sizeof words);
    assert_string_equal(words, "avx2 avx512bw avx512_bf16");
    kp_procfacts_instructions("processor\t: 0\nflags\t\t: fpu avx avx2\nbugs : avx512bw\n", words, sizeof words);
    assert_string_equal(words, "avx2");
    kp_procfacts_instructions("processor\t: 0\nflags\t\t: fpu xavx2 avx2x avx\n", words, sizeof words);
    assert_string_equal(words, "");
    kp_procfacts_instructions("processor\t: 0\nFeatures\t: asimd bf16\n", words, sizeof words); /* not of Intel */
    assert_string_equal(words, "");
}

static void a_launcher_of_ranks_is_told_by_its_script(void **state)
{
    (void)state;
    assert_true(kp_procfacts_starts_ranks("torchrun") && kp_procfacts_starts_ranks("torch.distributed.run"));
    assert_false(kp_procfacts_starts_ranks("train.py") || kp_procfacts_starts_ranks("torchrun.py"));
    assert_false(kp_procfacts_starts_ranks(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_the_bits_of_the_mask),
        cmocka_unit_test(a_task_has_its_time),
        cmocka_unit_test(the_time_is_exact_where_the_kernel_tells_it),
        cmocka_unit_test(a_thread_has_a_core_or_waits_for_one),
        cmocka_unit_test(what_other_threads_had_is_the_programs_without_the_helpers),
        cmocka_unit_test(a_pool_is_busy_also_in_a_run_of_a_few_steps),
        cmocka_unit_test(in_a_long_run_a_twentieth_of_the_longest_is_busy),
        cmocka_unit_test(a_thread_that_sleeps_most_of_the_time_is_not_busy),
        cmocka_unit_test(a_thread_is_busy_by_the_cores_that_it_could_have),
        cmocka_unit_test(what_a_thread_ran_before_the_steps_does_not_count),
        cmocka_unit_test(the_script_is_what_python_runs),
        cmocka_unit_test(instructions_are_those_of_the_first_processor),
        cmocka_unit_test(a_launcher_of_ranks_is_told_by_its_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

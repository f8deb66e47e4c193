// SPDX-License-Identifier: Apache-2.0
/* test_stuck.c - a job that stands at the end of its traces: who is in what, since when */
#include "export/answers/ranks/stuck.h"

#include "test/unit/tree/little_trace.h"

#define SECOND 1000000
#define OPEN "\"finished\":false"

/* A trace of five steps of 10 ms, which ends after so many seconds. */
static struct little *begin(int rank, int world, int end)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    if (world)
        snprintf(t->head, sizeof t->head,
                 "\"kprof\":{\"complete\":false},\"distributedInfo\":{\"rank\":%d,"
                 "\"world_size\":%d},",
                 rank, world);
    event(t, "Trace", "PyTorch Profiler (0)", 1, 0, end * SECOND, "");
    for (int i = 0; i < 5; i++) {
        numbered_step(t, i, 10000 * i, 10000);
        op(t, "aten::mm", 10000 * i, 5000);
    }
    return t;
}

static void stood_add(struct kp_stuck *s, struct little *t, const char *stood)
{
    void *state = t;
    assert_int_equal(choose(t, &everything), 0);
    kp_stuck_add(s, &t->tree, &t->chosen, stood);
    assert_int_equal(little_teardown(&state), 0);
}

static void add(struct kp_stuck *s, struct little *t) { stood_add(s, t, NULL); }

static struct kp_stuck_told told;
#define said told.what

static bool tells(struct kp_stuck *s)
{
    const bool stands = kp_stuck_tell(&told, s);
    kp_stuck_fini(s);
    return stands;
}

static void the_rank_in_no_collective_is_told_first(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        struct little *t = begin(rank, 3, 12);
        if (rank != 1) event(t, "user_annotation", "gloo:all_reduce", 2, 50000, 12 * SECOND - 50000, OPEN);
        if (rank == 1) event(t, "python_function", "hang.py(10): stuck_here", 1, 45000, 12 * SECOND - 45000, "");
        if (rank == 1) event(t, "python_function", "<built-in function sleep>", 1, 45001, 12 * SECOND - 45001, "");
        add(&s, t);
    }
    assert_true(tells(&s));
    assert_string_equal(said,
                        "rank 1 did nothing for 12.0 s (after aten::mm), at hang.py(10): stuck_here; ranks 0, 2 have "
                        "been in gloo:all_reduce for 11.9 s, and wait for it");
}

/* Their collectives do not match, or the network stands. */
static void ranks_that_are_all_in_collectives_wait_for_none(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        struct little *t = begin(rank, 2, 12);
        event(t, "user_annotation", rank ? "gloo:broadcast" : "gloo:all_reduce", 2, 50000, 11 * SECOND, OPEN);
        add(&s, t);
    }
    assert_true(tells(&s));
    assert_string_equal(said,
                        "rank 0 has been in gloo:all_reduce for 11.9 s; rank 1 has been in gloo:broadcast for 11.9 s");
}

/* A file of KPROF_HANG tells it of traces that end before. One that was told of an earlier trace is over. */
static void what_a_file_of_a_hang_tells_is_told_in_place_of_the_traces(void **state)
{
    (void)state;
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        struct kp_stuck s = {0};
        stood_add(&s, begin(0, 2, 1), "rank 1 is at hang.py:10 here");
        if (goes_on) add(&s, begin(0, 2, 1));
        add(&s, begin(1, 2, 1));
        assert_int_equal(tells(&s), !goes_on);
        assert_string_equal(said, goes_on ? "" : "rank 1 is at hang.py:10 here");
    }
}

static void an_op_or_a_loader_of_one_process_stands_too(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct kp_stuck s = {0};
        struct little *t = begin(0, 0, 12);
        event(t, which ? "user_annotation" : "cpu_op",
              which ? "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" : "aten::item", 1, 50000,
              11 * SECOND, OPEN);
        add(&s, t);
        assert_true(tells(&s));
        assert_non_null(strstr(said, which ? "the program has been in enumerate(DataLoader)#"
                                           : "the program has been in aten::item"));
    }
}

/* Without calls of Python the stack of what is open has the line. */
static void the_line_of_what_is_open_is_told(void **state)
{
    (void)state;
    struct kp_stuck s = {0};
    struct little *t = begin(1, 2, 12);
    event(t, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 50000, 11 * SECOND,
          OPEN ",\"Call stack\":\"torch/utils/data/dataloader.py(721): __next__;train.py(46): main\"");
    add(&s, t);
    assert_true(tells(&s));
    assert_non_null(strstr(said, "DataLoaderIter.__next__ for 11.9 s, at train.py:46 main"));
}

/* Gloo works on a thread of its own: the line is that of the op which started it. */
static void ranks_in_different_collectives_are_told_by_their_lines(void **state)
{
    (void)state;
    struct kp_stuck s = {0};
    for (int rank = 0; rank < 2; rank++) {
        struct little *t = begin(rank, 2, 12);
        event(t, "cpu_op", rank ? "c10d::barrier" : "c10d::allreduce_", 1, 50000, 50,
              rank ? "\"Call stack\":\"torch/distributed/c10d_logger.py(83): wrapper;train.py(18): save\""
                   : "\"Call stack\":\"torch/_tensor.py(623): backward;train.py(51): main\"");
        event(t, "user_annotation", rank ? "gloo:barrier" : "gloo:all_reduce", 2, 50100, 12 * SECOND - 50100, OPEN);
        add(&s, t);
    }
    assert_true(tells(&s));
    assert_string_equal(said, "rank 0 has been in gloo:all_reduce for 11.9 s, at train.py:51 main; rank 1 has been in "
                              "gloo:barrier for 11.9 s, at train.py:18 save");
}

/* `more`: batches that rank 1 takes in step 3 beside the one of each step; the last step of rank 0 is one more. */
static const char *batches_said(int more)
{
    struct kp_stuck s = {0};
    for (int rank = 0; rank < 2; rank++) {
        struct little *t = begin(rank, 2, 12);
        for (int i = 0; i < 5 + (rank ? more : 0); i++)
            event(t, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1,
                  i < 5 ? 10000 * i + 6000 : 30000 + 1000 * i, 500, "");
        if (!rank) numbered_step(t, 5, 50000, 10000);
        if (!rank)
            event(t, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 51000, 500,
                  "");
        event(t, "user_annotation", "gloo:all_reduce", 2, 60000, 12 * SECOND - 60000, OPEN);
        add(&s, t);
    }
    assert_true(tells(&s));
    return said;
}

static void batches_that_one_rank_took_more_of_in_the_same_steps_are_told(void **state)
{
    (void)state;
    assert_string_equal(batches_said(2), "ranks 0, 1 have been in gloo:all_reduce for 11.9 s; rank 1 took 2 batches "
                                         "more than rank 0 in steps 0 to 4");
    assert_string_equal(batches_said(0), "ranks 0, 1 have been in gloo:all_reduce for 11.9 s");
}

/* A server waits for requests in a range of its own; a step is open when a window ends; a collective is short. */
static void what_may_last_does_not_stand(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    struct little *t = begin(0, 0, 40);
    event(t, "user_annotation", "serve", 1, 50000, 39 * SECOND, OPEN);
    event(t, "user_annotation", "ProfilerStep#5", 1, 50000, 39 * SECOND, OPEN);
    add(&s, t);
    t = begin(0, 2, 1);
    event(t, "user_annotation", "gloo:all_reduce", 2, 50000, SECOND - 50000, OPEN);
    add(&s, t);
    assert_false(tells(&s));
}

/* A program of no job that ran no op for `seconds`, after steps that this ended. */
static void silent_add(struct kp_stuck *s, int seconds, const char *source, bool is_running)
{
    struct little *t = begin(0, 0, seconds);
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"complete\":false,\"step_source\":\"%s\"},", source);
    add(s, t);
    kp_stuck_lead(s, "out/a.kprof", is_running);
}

/* Its trace does not say whether it does other work: it stands where it says so itself. */
static void a_program_without_an_op_for_long_stands_where_it_says_so(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    silent_add(&s, 40, "optimizer", true);
    const int64_t pid = kp_stuck_silent(&s);
    assert_true(pid > 0);
    assert_false(kp_stuck_tell(&told, &s));
    kp_stuck_stand(&s, pid, "feeder.py:41 next, waits for another thread (futex)");
    assert_true(tells(&s));
    assert_string_equal(
        said, "the program did nothing for 40.0 s (after aten::mm, in step 4; a step took 10 ms), at feeder.py:41 "
              "next, waits for another thread (futex)");
    assert_string_equal(told.next, "`kprof hang out` says who waits for whom, and at which line each thread is.");
}

/* One that does not listen is seen from outside, and has no place. */
static void a_program_that_rests_and_does_not_listen_stands(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    silent_add(&s, 40, "optimizer", true);
    s.of[0].pid = 42;
    assert_false(kp_stuck_tell(&told, &s));
    assert_string_equal(said, "the program (process 42) has run no operator for 40.0 s (after aten::mm, in step 4; a "
                              "step took 10 ms)");
    kp_stuck_rest(&s, 42, "waits for a lock, a queue or a thread (futex)");
    assert_true(tells(&s) && told.stands);
    assert_string_equal(said,
                        "the program did nothing for 40.0 s (after aten::mm, in step 4; a step took 10 ms); its "
                        "main thread waits for a lock, a queue or a thread (futex), and no thread of it computes");
    assert_string_equal(told.next, "It was started without --control, so `kprof hang` cannot ask it: `py-spy dump "
                                   "--pid 42` can.");
}

/* Short ones, servers, programs that are gone, and parents of processes that go on are not asked. */
static void a_program_that_may_rest_or_is_gone_is_not_asked(void **state)
{
    static const struct {
        int seconds;
        const char *source;
        bool is_running;
    } of[] = {{20, "optimizer", true},
              {40, "call", true},
              {40, "module", true},
              {40, "time", true},
              {40, "optimizer", false}};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct kp_stuck s = {0};
        silent_add(&s, of[i].seconds, of[i].source, of[i].is_running);
        assert_int_equal(kp_stuck_silent(&s), 0);
        kp_stuck_fini(&s);
    }
    struct kp_stuck s = {0};
    silent_add(&s, 40, "optimizer", true);
    s.of[0].pid++; /* another process */
    silent_add(&s, 1, "optimizer", true);
    assert_int_equal(kp_stuck_silent(&s), 0);
    kp_stuck_fini(&s);
}

static void the_command_that_tells_more_is_of_the_folder_and_of_how_the_job_is(void **state)
{
    (void)state;
    for (int running = 0; running < 2; running++) {
        struct kp_stuck s = {0};
        struct little *t = begin(0, 2, 12);
        event(t, "user_annotation", "gloo:all_reduce", 2, 50000, 11 * SECOND, OPEN);
        add(&s, t);
        kp_stuck_lead(&s, running ? "out/run/a.kprof" : "a.pt.trace.json", running);
        assert_true(tells(&s));
        assert_non_null(strstr(told.next, running ? "`kprof hang out/run`" : "`kprof why .`"));
    }
    struct kp_stuck s = {0};
    struct little *t = begin(0, 0, 12); /* torch's own trace */
    event(t, "cpu_op", "aten::item", 1, 50000, 11 * SECOND, OPEN);
    add(&s, t);
    kp_stuck_lead(&s, "a.pt.trace.json", false);
    assert_true(tells(&s));
    assert_string_equal(told.next, "");
}

/* The first window of a process ended in a long op. Its next goes on. */
static void the_latest_trace_of_a_process_tells(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    struct little *t = begin(0, 0, 12);
    event(t, "cpu_op", "aten::item", 1, 50000, 11 * SECOND, OPEN);
    add(&s, t);
    add(&s, begin(0, 0, 1));
    assert_false(tells(&s));
}

/* The first trace of a rank ends with a long collective. Its next goes on. */
static void the_latest_trace_of_a_rank_tells(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    struct little *t = begin(0, 2, 12);
    event(t, "user_annotation", "gloo:all_reduce", 2, 50000, 11 * SECOND, OPEN);
    add(&s, t);
    add(&s, begin(0, 2, 1));
    assert_false(tells(&s));
}

/* Rank 1 sleeps and is killed. Rank 0 raises, as its peer is gone: it is the first of the file, and no cause. */
static void a_rank_that_followed_is_told_last(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    struct little *t = begin(0, 2, 12);
    strcpy(t->head, "\"kprof\":{\"exception\":\"RuntimeError\",\"lost_peer\":\"1\"},"
                    "\"distributedInfo\":{\"rank\":0,\"world_size\":2},");
    add(&s, t);
    t = begin(1, 2, 12);
    event(t, "cpu_op", "aten::item", 1, 50000, 12 * SECOND - 50000, OPEN);
    add(&s, t);
    assert_true(tells(&s));
    assert_string_equal(
        said, "rank 1 has been in aten::item for 11.9 s; rank 0 ended by RuntimeError after another rank was gone");
}

/* One that raised by itself is waited for. */
static void a_rank_that_raised_by_itself_is_told_first(void **state)
{
    struct kp_stuck s = {0};
    (void)state;
    struct little *t = begin(0, 2, 12);
    event(t, "user_annotation", "gloo:all_reduce", 2, 50000, 12 * SECOND - 50000, OPEN);
    add(&s, t);
    t = begin(1, 2, 1);
    strcpy(t->head, "\"kprof\":{\"exception\":\"ValueError\"},\"distributedInfo\":{\"rank\":1,\"world_size\":2},");
    add(&s, t);
    assert_true(tells(&s));
    assert_string_equal(said,
                        "rank 1 ended by ValueError; rank 0 has been in gloo:all_reduce for 11.9 s, and waits for it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rank_in_no_collective_is_told_first),
        cmocka_unit_test(ranks_that_are_all_in_collectives_wait_for_none),
        cmocka_unit_test(what_a_file_of_a_hang_tells_is_told_in_place_of_the_traces),
        cmocka_unit_test(an_op_or_a_loader_of_one_process_stands_too),
        cmocka_unit_test(the_line_of_what_is_open_is_told),
        cmocka_unit_test(ranks_in_different_collectives_are_told_by_their_lines),
        cmocka_unit_test(batches_that_one_rank_took_more_of_in_the_same_steps_are_told),
        cmocka_unit_test(what_may_last_does_not_stand),
        cmocka_unit_test(the_latest_trace_of_a_rank_tells),
        cmocka_unit_test(the_latest_trace_of_a_process_tells),
        cmocka_unit_test(a_rank_that_followed_is_told_last),
        cmocka_unit_test(a_rank_that_raised_by_itself_is_told_first),
        cmocka_unit_test(a_program_without_an_op_for_long_stands_where_it_says_so),
        cmocka_unit_test(a_program_that_rests_and_does_not_listen_stands),
        cmocka_unit_test(a_program_that_may_rest_or_is_gone_is_not_asked),
        cmocka_unit_test(the_command_that_tells_more_is_of_the_folder_and_of_how_the_job_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

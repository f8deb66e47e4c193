// SPDX-License-Identifier: Apache-2.0
/* test_hangjudge.c - who waits for whom, by what each process wrote of its threads */
#include "export/answers/hang/hangprint.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/text/kp_jsonread.h"
#include "test/support/support.h"

static struct kp_hang hang, before;
static struct kp_hang_verdict verdict;
static char text[8192];

#define LIBRARY "{\"file\":\"/usr/lib/python3.11/queue.py\",\"line\":171,\"function\":\"get\"}"

/* A rank at a line of train.py, which has begun so many collectives of this name and ended one less where `is_open`. */
static void add(struct kp_hang *to, int rank, const char *collective, int begun, bool is_open, int line)
{
    const char *why = "";
    snprintf(
        text, sizeof text,
        "{\"where\":1,\"pid\":%d,\"host\":\"node\",\"rank\":%d,\"size\":8,\"step\":12,\"collectives\":[{\"name\":\"%"
        "s\","
        "\"begun\":%d,\"ended\":%d,\"since_ms\":7000}],\"threads\":[{\"tid\":%d,\"name\":\"python\",\"state\":\"S\","
        "\"main\":true,\"call\":\"poll\",\"words\":\"waits for a socket\",\"python\":[" LIBRARY
        ",{\"file\":\"/home/train.py\",\"line\":%d,\"function\":\"fetch\"}]}]}",
        100 + rank, rank, collective, begun, begun - is_open, 100 + rank, line);
    if (!kp_hang_add(to, text, strlen(text), &why)) fail_msg("%s", why);
}

static const char *judged(const struct kp_hang *earlier)
{
    kp_hang_sort(&hang);
    kp_hang_judge(&verdict, &hang, earlier);
    return verdict.text;
}

static int teardown(void **state)
{
    (void)state;
    kp_hang_verdict_fini(&verdict);
    kp_hang_fini(&hang);
    kp_hang_fini(&before);
    return 0;
}

static void the_rank_that_has_not_come_is_named_with_its_line(void **state)
{
    (void)state;
    for (int rank = 7; rank >= 0; rank--) add(&hang, rank, "gloo:all_reduce", rank == 5 ? 9 : 10, rank != 5, 88);
    assert_string_equal(judged(NULL),
                        "ranks 0-4,6-7 wait in gloo:all_reduce for rank 5, which is at train.py:88 fetch, waits for a "
                        "socket (poll)");
    assert_int_equal(verdict.kind, KP_HANG_ABSENT);
    for (int rank = 0; rank < 8; rank++) assert_int_equal(verdict.accused[rank], rank == 5);
}

/* One process whose main thread is in a call, with such further threads and lists. */
static const char *judged_alone(const char *function, const char *call, const char *threads, const char *lists)
{
    const char *why = "";
    snprintf(text, sizeof text,
             "{\"where\":1,\"pid\":100,\"step\":12,\"threads\":[{\"tid\":100,\"name\":\"python\",\"state\":\"S\","
             "\"main\":true,%s,"
             "\"python\":[{\"file\":\"/usr/lib/python3.11/threading.py\",\"line\":5,\"function\":\"%s\"}]}%s]%s}",
             call, function, threads, lists);
    if (!kp_hang_add(&hang, text, strlen(text), &why)) fail_msg("%s", why);
    return judged(NULL);
}

#define CHILD "waits for a child process"
#define WAITS "\"call\":\"wait4\",\"words\":\"" CHILD "\",\"on\":\"process 7\""
#define READS "\"call\":\"read\",\"words\":\"reads\",\"on\":\"/data/x.bin\""

static void a_child_that_was_killed_is_named(void **state)
{
    (void)state;
    const char *const said = judged_alone("get", READS, "",
                                          ",\"children\":[{\"pid\":7,\"name\":\"python\",\"state\":\"Z\",\"status\":9},"
                                          "{\"pid\":8,\"name\":\"python\",\"state\":\"Z\",\"status\":15}],\"lost\":[]");
    assert_string_equal(said, "process 100 is at threading.py:5 get, reads (read: /data/x.bin); its child process 7 "
                              "(python) was killed by SIGKILL");
}

static void a_child_that_was_killed_and_waited_for_is_named(void **state)
{
    (void)state;
    const char *const said = judged_alone(
        "get", READS, "",
        ",\"children\":[{\"pid\":8,\"name\":\"python\",\"state\":\"S\",\"call\":\"read\",\"words\":\"reads\"}],"
        "\"lost\":[{\"pid\":6,\"status\":139,\"ago_ms\":1000},{\"pid\":9,\"status\":15,\"ago_ms\":900}]");
    assert_string_equal(said,
                        "process 100 is at threading.py:5 get, reads (read: /data/x.bin); its child process 6 was "
                        "killed by SIGSEGV 1.0 s before");
}

static void the_child_that_is_waited_for_says_what_it_does(void **state)
{
    (void)state;
    const char *const said = judged_alone(
        "wait", WAITS, "",
        ",\"children\":[{\"pid\":8,\"name\":\"sh\",\"state\":\"Z\",\"status\":9},{\"pid\":7,\"name\":\"python\","
        "\"state\":\"S\",\"call\":\"write\",\"words\":\"writes\",\"on\":\"a pipe\"}]");
    assert_string_equal(said, "process 100 is at threading.py:5 wait, " CHILD " (wait4: process 7); "
                              "process 7 (python) writes (write: a pipe)");
}

/* As a worker that was forked while a thread held a lock; one that waits for work is in a call of the kernel's. */
static void a_child_that_waits_for_a_lock_at_a_line_of_the_program_is_named(void **state)
{
    (void)state;
    static const char children[] =
        ",\"children\":[{\"pid\":8,\"name\":\"python\",\"state\":\"S\",\"call\":\"read\",\"words\":\"reads\","
        "\"python\":[{"
        "\"file\":\"/home/a.py\",\"line\":3,\"function\":\"idle\"}]},{\"pid\":9,\"name\":\"worker\",\"state\":\"S\","
        "\"call\":\"futex\",\"words\":\"waits for another thread\",\"python\":[{\"file\":\"/home/b.py\",\"line\":4,"
        "\"function\":\"seen\"}]}]";
    assert_string_equal(judged_alone("get", READS, "", children),
                        "process 100 is at threading.py:5 get, reads (read: /data/x.bin); process 9 (worker) is at "
                        "b.py:4 seen, waits for another thread (futex). Was it forked while a thread held that lock? "
                        "Then it waits for ever");
    (void)teardown(state);
    assert_string_equal(judged_alone("wait", "\"call\":\"futex\",\"words\":\"waits for another thread\"", "", children),
                        "process 100 is at threading.py:5 wait, waits for another thread (futex); no other thread runs "
                        "code of Python that could end this wait. Did the thread that should end it end by an "
                        "exception?");
}

#define GETS(tid, main, line)                                                                                         \
    "{\"tid\":" #tid ",\"name\":\"python\",\"state\":\"S\"," main "\"call\":\"futex\",\"words\":\"waits for another " \
    "thread\",\"python\":[{\"file\":\"/usr/lib/python3.11/"                                                           \
    "threading.py\",\"line\":320,\"function\":\"wait\"},{\"file\":\"/usr/lib/"                                        \
    "python3.11/queue.py\",\"line\":171,\"function\":\"get\"},{\"file\":\"/home/tapes.py\",\"line\":" #line           \
    ",\"function\":\"fill\"}]}"

static const char *judged_gets(const char *last)
{
    const char *why = "";
    snprintf(text, sizeof text, "{\"where\":1,\"pid\":100,\"step\":12,\"threads\":[%s,%s%s]}",
             GETS(100, "\"main\":true,", 28), GETS(101, "", 19), last);
    if (!kp_hang_add(&hang, text, strlen(text), &why)) fail_msg("%s", why);
    return judged(NULL);
}

/* Another thread in put(), or in any other code, may give one what it waits for. */
static void threads_that_all_wait_for_a_queue_are_told_so(void **state)
{
#define MAIN "process 100 is at tapes.py:28 fill, waits for another thread (futex)"
    (void)state;
    assert_string_equal(judged_gets("," GETS(102, "", 20)),
                        MAIN "; the main thread and threads 101 (tapes.py:19 fill), 102 (tapes.py:20 fill) all wait in "
                             "get() of queues: no thread of Python is left that puts");
    (void)teardown(state);
    assert_string_equal(
        judged_gets(",{\"tid\":102,\"name\":\"python\",\"state\":\"S\",\"call\":\"poll\",\"words\":\"waits\","
                    "\"python\":[{\"file\":\"/home/net.py\",\"line\":3,\"function\":\"fetch\"}]}"),
        MAIN);
    (void)teardown(state);
    assert_string_equal(
        judged_gets(",{\"tid\":102,\"name\":\"python\",\"state\":\"S\",\"call\":\"poll\",\"words\":\"waits\"}"), MAIN);
}

static void at_its_exit_the_thread_that_it_waits_for_is_named(void **state)
{
    (void)state;
    const char *const said = judged_alone(
        "_shutdown", "\"call\":\"futex\",\"words\":\"waits for another thread\"",
        ",{\"tid\":101,\"name\":\"python\",\"state\":\"S\"},{\"tid\":102,\"name\":\"python\",\"state\":\"S\","
        "\"call\":\"read\",\"words\":\"reads\",\"python\":[{\"file\":\"/home/"
        "up.py\",\"line\":9,\"function\":\"send\"}]}",
        "");
    assert_string_equal(said,
                        "process 100 is at threading.py:5 _shutdown, waits for another thread (futex); it waits at "
                        "its exit for thread 102, which is at up.py:9 send, reads (read)");
}

static void the_thread_that_holds_what_is_waited_for_says_where_it_is(void **state)
{
    (void)state;
    const char *const said = judged_alone(
        "wait", "\"call\":\"futex\",\"words\":\"waits for Python's GIL\",\"on\":\"thread 102\"",
        ",{\"tid\":101,\"name\":\"python\",\"state\":\"S\"},{\"tid\":102,\"name\":\"python\",\"state\":\"S\","
        "\"words\":\"runs\",\"python\":[{\"file\":\"/home/up.py\",\"line\":9,\"function\":\"send\"}]}",
        "");
    assert_string_equal(said,
                        "process 100 is at threading.py:5 wait, waits for Python's GIL (futex: thread 102); thread "
                        "102 is at up.py:9 send, runs");
}

static char *printed(void (*print)(FILE *out, const struct kp_hang *hang, const struct kp_hang_verdict *verdict))
{
    char *out = NULL;
    size_t bytes = 0;
    FILE *const f = open_memstream(&out, &bytes);
    print(f, &hang, &verdict);
    fclose(f);
    return out;
}

/* A rank in a line of -c "..", which no file has, within init_process_group of torch, or asleep. */
static void joining_add(int rank, bool is_joining)
{
    const char *why = "";
    snprintf(text, sizeof text,
             "{\"where\":1,\"pid\":%d,\"host\":\"node\",\"rank\":%d,\"size\":3,\"threads\":[{\"tid\":1,"
             "\"main\":true,\"words\":\"sleeps\",\"python\":[%s{\"file\":\"<string>\",\"line\":5,"
             "\"function\":\"<module>\"}]}]}",
             100 + rank, rank,
             is_joining ? "{\"file\":\"/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py\","
                          "\"line\":1800,\"function\":\"init_process_group\"},"
                        : "");
    if (!kp_hang_add(&hang, text, strlen(text), &why)) fail_msg("%s", why);
}

static void ranks_that_join_wait_for_the_one_that_does_not(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) joining_add(rank, rank != 2);
    assert_string_equal(judged(NULL),
                        "ranks 0-1 wait in init_process_group for rank 2, which is at <string>:5 <module>, sleeps");
    assert_int_equal(verdict.kind, KP_HANG_ABSENT);
    char *out = printed(kp_hang_print);
    assert_non_null(strstr(out, "\nranks 0-1, in init_process_group\n"));
    free(out);
}

static void a_rank_in_another_collective_than_the_rest_is_accused_alone(void **state)
{
    (void)state;
    for (int rank = 0; rank < 4; rank++) add(&hang, rank, rank == 2 ? "gloo:broadcast" : "gloo:all_reduce", 3, true, 9);
    assert_string_equal(judged(NULL),
                        "rank 2 is in gloo:broadcast at train.py:9 fetch, waits for a socket (poll), while ranks 0-1,3 "
                        "wait in gloo:all_reduce: ranks call collectives in different orders");
    for (int rank = 0; rank < 4; rank++) assert_int_equal(verdict.accused[rank], rank == 2);
}

static void two_ranks_in_two_collectives_are_both_named(void **state)
{
    (void)state;
    add(&hang, 0, "gloo:all_reduce", 1, true, 5);
    add(&hang, 1, "gloo:broadcast", 1, true, 6);
    assert_non_null(strstr(judged(NULL), "rank 0 is in gloo:all_reduce at train.py:5"));
    assert_non_null(strstr(verdict.text, "rank 1 is in gloo:broadcast at train.py:6"));
    assert_true(verdict.kind == KP_HANG_MISMATCH && verdict.accused[0] && verdict.accused[1]);
}

#define INSIDE "all ranks are in the collective: ranks 0-%d wait in %s"
#define APART ". These calls, or their process groups, may not belong together"

/* What is said of ranks 0 to `last`, which wait in one collective; no other text is asked for before its use ends. */
static const char *inside(int last, const char *collective, const char *differ)
{
    static char said[512];
    const int used = snprintf(said, sizeof said, INSIDE, last, collective);
    if (*differ) snprintf(said + used, sizeof said - (size_t)used, "%s" APART, differ);
    return said;
}

/* Their names are one where two process groups call all_reduce; the lines tell. */
static void ranks_in_one_collective_at_different_lines_are_told_by_line(void **state)
{
    (void)state;
    for (int rank = 0; rank < 4; rank++) add(&hang, rank, "gloo:all_reduce", 3, true, 9);
    assert_string_equal(judged(NULL), inside(3, "gloo:all_reduce", ""));
    kp_hang_verdict_fini(&verdict);
    kp_hang_fini(&hang);
    for (int rank = 0; rank < 4; rank++) add(&hang, rank, "gloo:all_reduce", 3, true, rank % 2 ? 12 : 9);
    assert_string_equal(judged(NULL),
                        inside(3, "gloo:all_reduce",
                               ", at different lines: ranks 0,2 (train.py:9 fetch); ranks 1,3 (train.py:12 fetch)"));
    assert_int_equal(verdict.kind, KP_HANG_INSIDE);
    for (int rank = 0; rank < 4; rank++) assert_false(verdict.accused[rank]);
}

/* Where backward waits for a hook of DDP that waits in a thread of gloo's; a thread that writes a log is none. */
static void a_hook_that_waits_beside_a_collective_is_printed(void **state)
{
    static const char *const collectives[] = {
        "[{\"name\":\"gloo:all_reduce\",\"begun\":30,\"ended\":28,\"since_ms\":7000}]", "[]"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char lists[160];
        snprintf(lists, sizeof lists, ",\"rank\":0,\"size\":2,\"collectives\":%s", collectives[i]);
        judged_alone(
            "backward", "\"call\":\"futex\",\"words\":\"waits for another thread\"",
            ",{\"tid\":7,\"name\":\"pt_gloo_runloop\",\"words\":\"waits for another thread\",\"call\":\"futex\","
            "\"python\":[{\"file\":\"/site-packages/torch/distributed/powerSGD_hook.py\",\"line\":589,"
            "\"function\":\"compute_qs\"}]},{\"tid\":8,\"name\":\"python\",\"words\":\"sleeps\",\"python\":["
            "{\"file\":\"/site-packages/tensorboard/writer.py\",\"line\":3,\"function\":\"run\"}]}",
            lists);
        verdict.accused[0] = false;
        char *const out = printed(kp_hang_print);
        const char *const hook = strstr(out, "  thread 7 (pt_gloo_runloop): waits for another thread (futex)\n");
        assert_true((hook != NULL) == (i == 0));
        if (hook) assert_non_null(strstr(hook, "powerSGD_hook.py:589 compute_qs\n"));
        assert_null(strstr(out, "thread 8"));
        free(out);
        kp_hang_verdict_fini(&verdict);
        kp_hang_fini(&hang);
    }
}

/* Ranks of one process group call as often. Another group, or a call that was left out, makes the numbers differ. */
static void ranks_in_different_calls_of_one_collective_are_told_by_number_and_none_is_accused(void **state)
{
    (void)state;
    for (int rank = 0; rank < 4; rank++) add(&hang, rank, "gloo:all_reduce", rank == 1 ? 7 : 9, true, 9);
    assert_string_equal(
        judged(NULL), inside(3, "gloo:all_reduce", ", in different calls of it: ranks 0,2-3 (no. 9); rank 1 (no. 7)"));
    assert_int_equal(verdict.kind, KP_HANG_INSIDE);
    for (int rank = 0; rank < 4; rank++) assert_false(verdict.accused[rank]);
    char *out = printed(kp_hang_print);
    assert_non_null(strstr(out, "\nranks 0,2-3, step 12, in gloo:all_reduce no. 9 for 7.0 s\n"));
    assert_non_null(strstr(out, "\nrank 1, step 12, in gloo:all_reduce no. 7 for 7.0 s\n"));
    free(out);
    out = printed(kp_hang_json);
    assert_non_null(strstr(out, "\"in\":\"gloo:all_reduce\",\"number\":7,"));
    free(out);
    kp_hang_verdict_fini(&verdict);
    kp_hang_fini(&hang);
    for (int rank = 0; rank < 2; rank++) add(&hang, rank, "gloo:all_reduce", rank == 1 ? 7 : 9, true, rank ? 12 : 9);
    assert_non_null(strstr(judged(NULL),
                           "at different lines: rank 0 (train.py:9 fetch); rank 1 (train.py:12 fetch), in "
                           "different calls of it: rank 0 (no. 9); rank 1 (no. 7). These"));
}

/* Each rank of a pipeline sends as many messages as it has neighbours. */
static void messages_between_two_ranks_are_not_compared_by_number(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) add(&hang, rank, "gloo:recv", 3 + rank, true, 9);
    assert_string_equal(judged(NULL), inside(2, "gloo:recv", ""));
}

static void a_rank_that_is_gone_or_stopped_comes_before_all_else(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) add(&hang, rank, "gloo:all_reduce", 3, true, 9);
    kp_hang_add_silent(&hang, KP_HANG_STOPPED, 104, 3, 5);
    assert_string_equal(judged(NULL), "rank 3 is stopped by a signal; ranks 0-2 wait in gloo:all_reduce");
    kp_hang_verdict_fini(&verdict);
    kp_hang_add_silent(&hang, KP_HANG_GONE, 105, 4, 5);
    assert_string_equal(judged(NULL), "rank 4 is gone: its process is no more; ranks 0-2 wait in gloo:all_reduce");
    assert_true(verdict.accused[4] && !verdict.accused[3]);
}

static void a_job_in_which_something_ended_between_two_looks_goes_on(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++) add(&before, rank, "gloo:all_reduce", 3, rank == 0, 9);
    for (int rank = 0; rank < 2; rank++) add(&hang, rank, "gloo:all_reduce", 4, rank == 0, 9);
    assert_string_equal(judged(&before), "the job goes on: step 12");
}

static void a_program_without_ranks_stands_at_its_own_line(void **state)
{
    (void)state;
    add(&hang, -1, "gloo:none", 0, false, 41);
    assert_string_equal(judged(NULL), "process 99 is at train.py:41 fetch, waits for a socket (poll)");
}

static void ranks_that_stand_at_one_place_are_told_together(void **state)
{
    (void)state;
    for (int rank = 0; rank < 8; rank++) add(&hang, rank, "gloo:all_reduce", rank == 5 ? 9 : 10, rank != 5, 88);
    (void)judged(NULL);
    char *out = printed(kp_hang_print);
    assert_non_null(strstr(out, "\nrank 5, process 105 on node, step 12\n"));
    assert_non_null(strstr(out, "\nranks 0-4,6-7, step 12, in gloo:all_reduce no. 10 for 7.0 s\n"));
    free(out);
    out = printed(kp_hang_json);
    size_t offset;
    const char *why = "";
    if (kp_jsonread_check_object(out, strlen(out) - 1, &offset, &why) != 0) fail_msg("%s at %zu", why, offset);
    assert_non_null(strstr(out, "\"verdict\":\"absent\""));
    free(out);
}

static void other_texts_are_refused_with_a_reason(void **state)
{
    static const char *const bad[] = {"", "[]", "{", "{}", "{\"where\":\"x\"}", "{\"where\":1"};
    const char *why = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++, why = NULL) {
        assert_false(kp_hang_add(&hang, bad[i], strlen(bad[i]), &why));
        assert_non_null(why);
    }
    assert_int_equal(hang.count, 0);
    static const char odd[] = "{\"where\":1,\"rank\":1e300,\"threads\":[1,{\"python\":[[]]},null],\"collectives\":{}}";
    assert_true(kp_hang_add(&hang, odd, sizeof odd - 1, &why));
    assert_true(hang.of[0].rank == -1 && hang.of[0].thread_count == 3);
    assert_int_equal(judged(NULL) == NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_child_that_was_killed_is_named, teardown),
        cmocka_unit_test_teardown(threads_that_all_wait_for_a_queue_are_told_so, teardown),
        cmocka_unit_test_teardown(a_child_that_was_killed_and_waited_for_is_named, teardown),
        cmocka_unit_test_teardown(the_child_that_is_waited_for_says_what_it_does, teardown),
        cmocka_unit_test_teardown(a_child_that_waits_for_a_lock_at_a_line_of_the_program_is_named, teardown),
        cmocka_unit_test_teardown(at_its_exit_the_thread_that_it_waits_for_is_named, teardown),
        cmocka_unit_test_teardown(the_thread_that_holds_what_is_waited_for_says_where_it_is, teardown),
        cmocka_unit_test_teardown(the_rank_that_has_not_come_is_named_with_its_line, teardown),
        cmocka_unit_test_teardown(ranks_that_join_wait_for_the_one_that_does_not, teardown),
        cmocka_unit_test_teardown(a_rank_in_another_collective_than_the_rest_is_accused_alone, teardown),
        cmocka_unit_test_teardown(two_ranks_in_two_collectives_are_both_named, teardown),
        cmocka_unit_test_teardown(ranks_in_one_collective_at_different_lines_are_told_by_line, teardown),
        cmocka_unit_test_teardown(a_hook_that_waits_beside_a_collective_is_printed, teardown),
        cmocka_unit_test_teardown(ranks_in_different_calls_of_one_collective_are_told_by_number_and_none_is_accused,
                                  teardown),
        cmocka_unit_test_teardown(messages_between_two_ranks_are_not_compared_by_number, teardown),
        cmocka_unit_test_teardown(a_rank_that_is_gone_or_stopped_comes_before_all_else, teardown),
        cmocka_unit_test_teardown(a_job_in_which_something_ended_between_two_looks_goes_on, teardown),
        cmocka_unit_test_teardown(a_program_without_ranks_stands_at_its_own_line, teardown),
        cmocka_unit_test_teardown(ranks_that_stand_at_one_place_are_told_together, teardown),
        cmocka_unit_test_teardown(other_texts_are_refused_with_a_reason, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

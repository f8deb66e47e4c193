// SPDX-License-Identifier: Apache-2.0
/* test_hangrests.c - a program of no job: whether anything of it could end its wait, and whether it rests */
#include "export/answers/hang/hangrests.h"

#include <stdlib.h>
#include <string.h>

#include "export/answers/hang/hangprint.h"
#include "test/support/support.h"

static struct kp_hang hang;
static struct kp_hang_verdict verdict;
static char text[8192];

static int teardown(void **state)
{
    (void)state;
    kp_hang_verdict_fini(&verdict);
    kp_hang_fini(&hang);
    return 0;
}

#define IN(file, line, function) \
    "{\"file\":\"/usr/lib/python3.11/" file "\",\"line\":" line ",\"function\":\"" function "\"}"
#define SLEEPING "\"name\":\"python\",\"state\":\"S\""
#define LOCK "\"call\":\"futex\",\"words\":\"waits for another thread\""
#define CHILD "\"call\":\"wait4\",\"words\":\"waits for a child process\",\"on\":\"process 7\""
#define POLL "\"call\":\"poll\",\"words\":\"waits for a socket or a pipe\""
#define POOL(tid) \
    ",{\"tid\":" tid "," SLEEPING "," LOCK ",\"python\":[" IN("concurrent/futures/thread.py", "81", "_worker") "]}"
#define OPENMP ",{\"tid\":103,\"state\":\"S\"," LOCK "}"
#define CHILDREN(call) ",\"children\":[{\"pid\":7," SLEEPING "," call "}]"

/* A process whose main thread is in a function of threading.py, with such further threads and lists. */
static const char *judged(const char *function, const char *call, const char *threads, const char *lists)
{
    const char *why = "";
    (void)teardown(NULL);
    snprintf(text, sizeof text,
             "{\"where\":1,\"pid\":100,\"threads\":[{\"tid\":100,\"main\":true," SLEEPING ",%s,\"python\":[{\"file\":"
             "\"/usr/lib/python3.11/threading.py\",\"line\":5,\"function\":\"%s\"}]}%s]%s}",
             call, function, threads, lists);
    if (!kp_hang_add(&hang, text, strlen(text), &why)) fail_msg("%s", why);
    kp_hang_judge(&verdict, &hang, NULL);
    return verdict.text;
}

/* A forked child at its exit, where it waits for the thread of its queue, which is in such a call. */
static const char *judged_joining(const char *call)
{
    char children[2048];
    snprintf(children, sizeof children,
             ",\"children\":[{\"pid\":7," SLEEPING "," LOCK ",\"python\":[" IN("threading.py", "1112", "join") "," IN(
                 "multiprocessing/queues.py", "199",
                 "_finalize_join") ",{\"file\":\"/home/"
                                   "v.py\",\"line\":4,\"function\":\"check\"}],\"threads\":[{\"tid\":8," SLEEPING
                                   ",%s,\"python\":[" IN("multiprocessing/queues.py", "270", "_feed") "]}]}]",
             call);
    return judged("wait", CHILD, "", children);
}

/* Its parent waits for its end before it reads the queue. A thread that the child has is no lost holder of a lock. */
static void a_child_that_is_joined_before_its_queue_is_read_says_so(void **state)
{
    static const char head[] = "process 100 is at threading.py:5 wait, waits for a child process (wait4: process 7); "
                               "process 7 (python) is at v.py:4 check, waits for another thread (futex)";
    const size_t bytes = sizeof head - 1;
    char *out = NULL;
    (void)state;
    const char *said = judged_joining("\"call\":\"write\",\"words\":\"writes\",\"on\":\"a pipe\"");
    assert_memory_equal(said, head, bytes);
    assert_string_equal(said + bytes,
                        ". At its exit it waits for its thread 8, which puts into a queue: writes (write: a pipe). The "
                        "pipe is full until another process reads that queue: call get() before join()");
    FILE *const f = open_memstream(&out, &(size_t){0});
    kp_hang_print(f, &hang, &verdict);
    fclose(f);
    assert_non_null(strstr(out, "    its thread 8 (python): writes (write: a pipe)\n"));
    free(out);
    assert_string_equal(judged_joining(LOCK), head);
}

#define AT_WAIT "process 100 is at threading.py:5 wait, waits for another thread (futex)"
#define NO_OTHER "; no other thread runs code of Python that could end this wait"

static void a_wait_that_no_thread_can_end_says_so(void **state)
{
    (void)state;
    assert_string_equal(judged("wait", LOCK, POOL("101") OPENMP, ""),
                        AT_WAIT NO_OTHER ": thread 101 of a ThreadPoolExecutor waits for work. Did what it ran end by "
                                         "an exception that nobody read (Future.exception())?");
    assert_string_equal(judged("wait", LOCK, POOL("101") POOL("102"), ""),
                        AT_WAIT NO_OTHER ": threads 101, 102 of a ThreadPoolExecutor wait for work. Did what they ran "
                                         "end by an exception that nobody read (Future.exception())?");
    assert_string_equal(judged("wait", LOCK, "", ""),
                        AT_WAIT NO_OTHER ". Did the thread that should end it end by an exception?");
}

/* A thread in code of Python, or one of C++ that works or reads a socket, may end it. A join waits for one thread. */
static void a_wait_that_a_thread_may_end_does_not_say_so(void **state)
{
    static const char *const others[] = {",{\"tid\":102," SLEEPING "," LOCK ",\"python\":[{\"file\":\"/home/a.py\","
                                         "\"line\":3,\"function\":\"fill\"}]}",
                                         ",{\"tid\":102," SLEEPING "," POLL "}", ",{\"tid\":102,\"state\":\"R\"}"};
    char threads[1024];
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(threads, sizeof threads, "%s%s", POOL("101"), others[i]);
        assert_string_equal(judged("wait", LOCK, threads, ""), AT_WAIT);
    }
    assert_string_equal(judged("join", LOCK, POOL("101"), ""),
                        "process 100 is at threading.py:5 join, waits for another thread (futex)");
}

static bool rests(const char *call, const char *threads, const char *lists)
{
    char where[160];
    (void)judged("wait", call, threads, lists);
    const bool is = kp_hang_rests(&hang.of[0], &hang.of[0], where, sizeof where);
    if (is) assert_memory_equal(where, "threading.py:5 wait, waits for ", 31);
    return is;
}

static void a_program_rests_where_nothing_of_it_works_or_waits_for_something_outside(void **state)
{
    (void)state;
    assert_true(rests(LOCK, POOL("101") OPENMP, ""));
    assert_true(rests(CHILD, "", CHILDREN(LOCK)));
    assert_true(rests(CHILD, "", CHILDREN("\"call\":\"write\",\"words\":\"writes\",\"on\":\"a pipe\"")));
    assert_true(rests(LOCK, "", ",\"children\":[{\"pid\":7,\"name\":\"pt_data_worker\",\"state\":\"S\"," POLL "}]"));
    assert_false(rests(POLL, "", ""));
    assert_false(rests("\"call\":\"futex\",\"words\":\"waits for Python's GIL\"", "", ""));
    assert_false(rests(LOCK, ",{\"tid\":102,\"state\":\"R\"}", ""));
    assert_false(rests(LOCK, ",{\"tid\":102,\"state\":\"D\"}", ""));
    assert_false(rests(LOCK, ",{\"tid\":102," SLEEPING "," POLL ",\"python\":[" IN("a.py", "3", "recv") "]}", ""));
    assert_false(rests(CHILD, "", ",\"children\":[{\"pid\":7,\"name\":\"cc1plus\",\"state\":\"R\"}]"));
    assert_false(rests(CHILD, "", CHILDREN(POLL)));
    assert_false(rests(CHILD, "", CHILDREN(LOCK ",\"threads\":[{\"tid\":8,\"state\":\"R\"}]")));
}

/* The main thread went on between the looks. */
static void a_program_whose_main_thread_goes_on_does_not_rest(void **state)
{
    struct kp_hang before = {0};
    char where[160];
    const char *why = "";
    (void)state;
    (void)judged("wait", LOCK, "", "");
    if (!kp_hang_add(&before, text, strlen(text), &why)) fail_msg("%s", why);
    assert_true(kp_hang_rests(&hang.of[0], &before.of[0], where, sizeof where));
    (void)judged("acquire", LOCK, "", "");
    assert_false(kp_hang_rests(&hang.of[0], &before.of[0], where, sizeof where));
    kp_hang_fini(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_child_that_is_joined_before_its_queue_is_read_says_so, teardown),
        cmocka_unit_test_teardown(a_wait_that_no_thread_can_end_says_so, teardown),
        cmocka_unit_test_teardown(a_wait_that_a_thread_may_end_does_not_say_so, teardown),
        cmocka_unit_test_teardown(a_program_rests_where_nothing_of_it_works_or_waits_for_something_outside, teardown),
        cmocka_unit_test_teardown(a_program_whose_main_thread_goes_on_does_not_rest, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

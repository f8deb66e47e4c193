// SPDX-License-Identifier: Apache-2.0
/* test_in_child.c - what ends, hangs or eats memory in a process of its own ends nothing else; how it ended is told */
#include "export/read/files/in_child.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/support.h"

static const struct kp_apart_limits wide = {.memory_bytes = UINT64_C(1) << 40, .cpu_s = 600};
static char why[256];

static void tell(void *context) { *(int *)context = 42; }

static void what_it_found_out_is_seen_outside(void **state)
{
    int *const seen = kp_apart_memory(sizeof *seen);
    (void)state;
    assert_non_null(seen);
    assert_int_equal(*seen, 0);
    assert_int_equal(kp_apart_run(tell, seen, &wide, why, sizeof why), 0);
    assert_int_equal(*seen, 42);
    kp_apart_free(seen, sizeof *seen);
}

static void crash(void *context)
{
    (void)context;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
    raise(SIGSEGV);
}

static void leave(void *context)
{
    (void)context;
    _exit(3);
}

static void how_it_ended_is_told(void **state)
{
    (void)state;
    assert_int_equal(kp_apart_run(crash, NULL, &wide, why, sizeof why), -1);
    assert_non_null(strstr(why, "signal 11"));
    assert_int_equal(kp_apart_run(leave, NULL, &wide, why, sizeof why), -1);
    assert_non_null(strstr(why, "status 3"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

static volatile bool goes_on = true;

static void hang(void *context)
{
    (void)context;
    while (goes_on) continue;
}

/* The limit that SIGKILL comes at is told outside. It is then lowered: to wait for it would take five more seconds. */
static void deaf(void *context)
{
    struct rlimit limit;
    signal(SIGXCPU, SIG_IGN);
    if (getrlimit(RLIMIT_CPU, &limit)) _exit(99);
    *(struct rlimit *)context = limit;
    limit.rlim_max = limit.rlim_cur;
    if (setrlimit(RLIMIT_CPU, &limit)) _exit(99);
    hang(NULL);
}

static void time_has_an_end(void **state)
{
    const struct kp_apart_limits short_one = {.memory_bytes = wide.memory_bytes, .cpu_s = 1};
    struct rlimit *const limit = kp_apart_memory(sizeof *limit);
    (void)state;
    assert_int_equal(kp_apart_run(hang, NULL, &short_one, why, sizeof why), -1);
    assert_non_null(strstr(why, "more than 1 s of processor time"));
    assert_int_equal(kp_apart_run(deaf, limit, &short_one, why, sizeof why), -1);
    assert_non_null(strstr(why, "signal 9"));
    assert_int_equal(limit->rlim_cur, 1);
    assert_in_range(limit->rlim_max, 2, 10);
    kp_apart_free(limit, sizeof *limit);
}

/* How many MB it gets before there is no more. */
static void eat(void *context)
{
    unsigned *const eaten = context;
    for (char *p; *eaten < 1024 && (p = malloc(1 << 20)) != NULL; ++*eaten) memset(p, 1, 1 << 20);
}

static void memory_has_an_end(void **state)
{
    const struct kp_apart_limits little = {.memory_bytes = 64 << 20, .cpu_s = 600};
    unsigned *const eaten = kp_apart_memory(sizeof *eaten);
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    KP_SKIP("a sanitizer's shadow counts as memory, so there is no limit with one");
#endif
    assert_int_equal(kp_apart_run(eat, eaten, &little, why, sizeof why), 0);
    assert_in_range(*eaten, 16, 64);
    kp_apart_free(eaten, sizeof *eaten);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_found_out_is_seen_outside),
        cmocka_unit_test(how_it_ended_is_told),
        cmocka_unit_test(time_has_an_end),
        cmocka_unit_test(memory_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

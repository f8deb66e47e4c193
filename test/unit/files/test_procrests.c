// SPDX-License-Identifier: Apache-2.0
/* test_procrests.c - a process whose threads all wait for each other, and those that may go on */
#include "export/read/files/procrests.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/support/support.h"

enum how { LOCKS, COMPUTES, READS, CHILD, CHILD_COMPUTES };
static sem_t never;

static void *other(void *how)
{
    struct pollfd none = {.fd = -1};
    if (*(enum how *)how == COMPUTES)
        for (volatile long i = 0;; i++) continue;
    if (*(enum how *)how == READS) poll(&none, 1, -1);
    sem_wait(&never);
    return NULL;
}

/* Its main thread waits for a semaphore, or for a child; another thread does what `how` says. */
static pid_t process_start(enum how how)
{
    const pid_t pid = fork();
    pthread_t thread;
    (void)setpgid(pid, pid); /* both do, so that it is done whoever comes first */
    if (pid) return pid;
    sem_init(&never, 0, 0);
    if (how >= CHILD) {
        const pid_t child = fork(); /* of the same group */
        if (child == 0 && how == CHILD_COMPUTES)
            for (volatile long i = 0;; i++) continue;
        if (child == 0) sem_wait(&never);
        waitpid(child, NULL, 0);
    }
    pthread_create(&thread, NULL, other, &how);
    sem_wait(&never);
    _exit(0);
}

static const char *word_of(enum how how)
{
    static const struct timespec pause = {.tv_nsec = 200000000};
    struct kp_procrests before, now;
    const pid_t pid = process_start(how);
    assert_true(pid > 0);
    nanosleep(&pause, NULL);
    kp_procrests_look(&before, pid);
    nanosleep(&pause, NULL);
    kp_procrests_look(&now, pid);
    assert_int_equal(kill(-pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return before.is_known ? kp_procrests_word(&now, &before) : "not known";
}

/* A kernel that shows neither system calls nor the children of a process tells nothing. */
static void says(enum how how, const char *word)
{
    const char *const said = word_of(how);
    if (said && strcmp(said, "not known") == 0) skip();
    if (word) assert_string_equal(said, word);
    else assert_null(said);
}

static void threads_that_all_wait_rest(void **state)
{
    (void)state;
    says(LOCKS, "waits for a lock, a queue or a thread (futex)");
}

static void a_thread_that_computes_goes_on(void **state)
{
    (void)state;
    says(COMPUTES, NULL);
}

static void a_thread_that_may_read_goes_on(void **state)
{
    (void)state;
    says(READS, NULL);
}

static void a_child_that_waits_rests(void **state)
{
    (void)state;
    says(CHILD, "waits for a child process (wait)");
}

static void a_child_that_computes_goes_on(void **state)
{
    (void)state;
    says(CHILD_COMPUTES, NULL);
}

static void of_no_process_nothing_is_known(void **state)
{
    struct kp_procrests none;
    (void)state;
    kp_procrests_look(&none, 0x7fffffff);
    assert_false(none.is_known);
    assert_null(kp_procrests_word(&none, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_all_wait_rest),     cmocka_unit_test(a_thread_that_computes_goes_on),
        cmocka_unit_test(a_thread_that_may_read_goes_on), cmocka_unit_test(a_child_that_waits_rests),
        cmocka_unit_test(a_child_that_computes_goes_on),  cmocka_unit_test(of_no_process_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

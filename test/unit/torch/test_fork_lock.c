// SPDX-License-Identifier: Apache-2.0
/* test_fork_lock.c - the mutex of torch's list of callbacks is found by watching, and held where the host forks; torch
 * is played by this file */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/torch/torch.h"
#include "test/support/support.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER, other_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned added, removed;
static bool takes_another;

static void touch(unsigned *count)
{
    pthread_mutex_lock(&list_lock);
    if (takes_another) pthread_mutex_lock(&other_lock);
    ++*count;
    if (takes_another) pthread_mutex_unlock(&other_lock);
    pthread_mutex_unlock(&list_lock);
}

static uint64_t add(struct kp_torch_callback callback)
{
    for (int i = 0; i < KP_TORCH_SCOPES; i++) assert_int_equal(callback.scopes[i], 0); /* torch never calls it */
    touch(&added);
    return 7;
}

static void remove_callback(uint64_t handle)
{
    assert_int_equal(handle, 7);
    touch(&removed);
}

static const struct kp_torch_api api = {.add = add, .remove = remove_callback};

static int child_status(void)
{
    const pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        kp_torch_lock_give();
        _exit(pthread_mutex_trylock(&list_lock));
    }
    waitpid(pid, &status, 0);
    return status;
}

static void the_mutex_is_found_held_at_a_fork_and_free_in_the_child(void **state)
{
    (void)state;
    assert_true(kp_torch_lock_take()); /* not attached: there is nothing to hold */
    kp_torch_lock_give();
    kp_torch_lock_find(&api);
    assert_int_equal(added, 1);
    assert_int_equal(removed, 1);
    assert_true(kp_torch_lock_take());
    assert_int_equal(pthread_mutex_trylock(&list_lock), EBUSY);
    assert_int_equal(child_status(), 0);
    kp_torch_lock_give();
    assert_int_equal(pthread_mutex_trylock(&list_lock), 0);
    pthread_mutex_unlock(&list_lock);
}

static void *holds(void *until)
{
    char byte;
    pthread_mutex_lock(&list_lock);
    assert_int_equal(write(((int *)until)[3], "", 1), 1);
    assert_int_equal(read(((int *)until)[0], &byte, 1), 1);
    pthread_mutex_unlock(&list_lock);
    return NULL;
}

static void a_thread_that_has_it_is_waited_for(void **state)
{
    int pipes[4];
    char byte;
    pthread_t thread;
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pipe(pipes + 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, holds, pipes), 0);
    assert_int_equal(read(pipes[2], &byte, 1), 1);
    assert_int_equal(write(pipes[1], "", 1), 1);
    assert_true(kp_torch_lock_take());
    kp_torch_lock_give();
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++) close(pipes[i]);
}

/* In a child: what it finds is forgotten with it. */
static void which_of_two_it_is_is_not_guessed(void **state)
{
    (void)state;
    const pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        takes_another = true;
        kp_torch_lock_find(&api);
        _exit(kp_torch_lock_take());
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mutex_is_found_held_at_a_fork_and_free_in_the_child),
        cmocka_unit_test(a_thread_that_has_it_is_waited_for),
        cmocka_unit_test(which_of_two_it_is_is_not_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

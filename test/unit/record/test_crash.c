// SPDX-License-Identifier: Apache-2.0
/* test_crash.c - a process killed at any instant leaves a spool whose committed records are whole and in order */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "test/unit/record/walk.h"

enum { WORKERS = 3, ROUNDS = 25 };

static void *record_for_ever(void *arg)
{
    struct kp_thread *t = kp_thread_get();
    char name[32];
    (void)arg;
    for (uint64_t number = 0;; number++) {
        kp_store_relaxed(&t->inside, 1);
        struct test_rec *r = kp_put_reserve(t, kp_gate_get(), sizeof *r, KP_KIND_OP);
        if (r) {
            r->head = (struct kp_rec){.kind = KP_KIND_OP, .size = sizeof *r};
            r->head.name = kp_name_intern(
                t, name, (uint32_t)snprintf(name, sizeof name, "name %u", (unsigned)(number % TEST_NAMES)));
            r->number = number;
            r->thread_no = t->thread_no;
            r->check = TEST_CHECK(number, t->thread_no);
            kp_put_commit(t, sizeof *r);
        } else {
            number--; /* dropped: the same number comes again */
        }
        kp_store_release(&t->inside, 0);
    }
    return NULL;
}

static void *come_and_go(void *arg) { return (void *)(uintptr_t)hook_put(0, 3 + (uint32_t)(uintptr_t)arg % 5); }

static void child(int told)
{
    pthread_t t;
    open_spool(64, NULL);
    gate_record(1);
    if (write(told, kp_record_path(), strlen(kp_record_path()) + 1) < 0) _exit(1);
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&t, NULL, record_for_ever, NULL) != 0) _exit(1);
    for (uintptr_t i = 0;; i++)
        if (pthread_create(&t, NULL, come_and_go, (void *)i) == 0) pthread_join(t, NULL);
}

static void a_killed_process_leaves_whole_records(void **state)
{
    uint64_t sum = 0;
    char path[1024];
    (void)state;
    srandom(4242);
    assert_non_null(kp_test_tmpdir()); /* one folder, made before there are children */
    for (int round = 0; round < ROUNDS || (sum <= 1000 && round < 8 * ROUNDS); round++) { /* an emulator needs longer */
        int ends[2], status;
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) child(ends[1]);
        assert_true(pid > 0);
        assert_true(read(ends[0], path, sizeof path) > 0);
        close(ends[0]);
        close(ends[1]);
        usleep((useconds_t)(random() % 40000) << round / ROUNDS);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        sum += spool_check(path, 1);
        struct walk w;
        walk_open(&w, path);
        assert_int_equal(w.head->closed, 0);
        walk_close(&w);
        unlink(path);
    }
    assert_true(sum > 1000);
    print_message("           %llu records in %d or more killed processes\n", (unsigned long long)sum, ROUNDS);
}

static void a_torn_record_would_be_seen(void **state)
{
    struct walk w;
    (void)state;
    open_spool(16, NULL);
    gate_record(1);
    assert_int_equal(hook_put(0, 10), 10);
    struct test_rec *r = (struct test_rec *)(kp_thread_get()->at - sizeof *r);
    r->check ^= 1;
    walk_open(&w, kp_record_path());
    walk_all(&w);
    bool is_whole = true;
    for (size_t i = 0; i < w.piece_count; i++) is_whole = is_whole && w.pieces[i].is_whole;
    assert_false(is_whole);
    walk_close(&w);
    (void)kp_record_close(true, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_process_leaves_whole_records),
        cmocka_unit_test(a_torn_record_would_be_seen),
    };
    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_thread.c - many threads: each record is kept once, in order, with its thread; cycles never mix */
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "collector/format/kp_device.h"
#include "test/unit/record/walk.h"

#if defined __SANITIZE_THREAD__ || defined __aarch64__ /* an emulator takes ten times as long */
enum { SHORT_THREADS = 1600, CYCLES = 15 };
#else
enum { SHORT_THREADS = 10000, CYCLES = 60 };
#endif
enum { WORKERS = 6, AT_ONCE = 8 };

static void *short_life(void *arg)
{
    (void)arg;
    return (void *)(uintptr_t)hook_put(0, 7);
}

static void short_threads_share_chunks_and_structs(void **state)
{
    uint64_t kept = 0, structs = 0;
    uint64_t taken = kp_chunk_taken();
    (void)state;
    gate_record(1);
    for (int i = 0; i < SHORT_THREADS; i += AT_ONCE) {
        pthread_t t[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) assert_int_equal(pthread_create(&t[k], NULL, short_life, NULL), 0);
        for (int k = 0; k < AT_ONCE; k++) {
            void *n;
            pthread_join(t[k], &n);
            kept += (uintptr_t)n;
        }
    }
    for (struct kp_thread *t = kp_thread_first(); t; t = t->next) structs++;
    assert_int_equal(kept, 7 * (uint64_t)SHORT_THREADS);
    assert_int_equal(kp_record_events(1), kept);
    assert_int_equal(spool_check(kp_record_path(), 1), kept);
    assert_in_range(structs, 1, AT_ONCE + 2);
    assert_in_range(kp_chunk_taken() - taken, 1, (uint64_t)SHORT_THREADS * 400 / KP_CHUNK_BYTES + 2 * AT_ONCE);
}

/* ---- a key of the host whose destructor runs after ours ---- */

static pthread_key_t late_key;
static _Atomic uint32_t late_kept, late_ran;

static void late_hook(void *arg)
{
    if ((uintptr_t)arg < 3) {
        pthread_setspecific(late_key, (void *)((uintptr_t)arg + 1)); /* libc runs destructors again */
        return;
    }
    atomic_fetch_add(&late_ran, 1);
    atomic_fetch_add(&late_kept, hook_put(0, 1));
}

static void *late_life(void *arg)
{
    pthread_setspecific(late_key, (void *)1);
    (void)arg;
    return (void *)(uintptr_t)hook_put(0, 1);
}

static void hooks_of_a_dying_thread_pass_through(void **state)
{
    pthread_t t;
    void *kept;
    (void)state;
    assert_int_equal(pthread_key_create(&late_key, late_hook), 0);
    pthread_create(&t, NULL, late_life, NULL);
    pthread_join(t, &kept);
    assert_int_equal((uintptr_t)kept, 1);
    assert_int_equal(late_ran, 1);
    assert_int_equal(late_kept, 0);
}

/* ---- cycles change under threads that never stop ---- */

static atomic_bool stop;
static _Atomic uint64_t kept_of[CYCLES + 3];
enum { MANY = 20000 }; /* records of a cycle from which on the workers write slowly */

static uint64_t hook_put_counted(uint64_t number)
{
    struct kp_thread *t = kp_thread_get();
    kp_store_relaxed(&t->inside, 1);
    kp_signal_fence();
    uint64_t gate = kp_gate_get();
    if (gate & KP_GATE_RECORD) {
        char name[32];
        struct test_rec *r = kp_put_reserve(t, gate, sizeof *r, KP_KIND_OP);
        if (r) {
            r->head = (struct kp_rec){.kind = KP_KIND_OP, .size = sizeof *r};
            r->head.name = kp_name_intern(
                t, name, (uint32_t)snprintf(name, sizeof name, "name %u", (unsigned)(number % TEST_NAMES)));
            r->number = number++;
            r->thread_no = t->thread_no;
            r->check = TEST_CHECK(r->number, r->thread_no);
            kp_put_commit(t, sizeof *r);
            atomic_fetch_add_explicit(&kept_of[kp_gate_cycle(gate)], 1, memory_order_relaxed);
        }
    }
    kp_signal_fence();
    kp_store_release(&t->inside, 0);
    return number;
}

static void *worker(void *arg)
{
    uint64_t number = 0;
    (void)arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        number = hook_put_counted(number);
        if (number % 512 == 0) sched_yield();
        /* Where checking a cycle takes longer than writing the next one did, they would grow without end. */
        if (kp_load_relaxed(&kept_of[kp_gate_cycle(kp_gate_get())]) > MANY) usleep(100);
    }
    return NULL;
}

/* Threads come and go beside the steady ones: their chunks change hands while cycles end. */
static void *churn(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        pthread_t t;
        if (pthread_create(&t, NULL, short_life, NULL) != 0) break;
        void *n;
        pthread_join(t, &n);
    }
    return NULL;
}

static void cycles_are_quiet_whole_and_separate(void **state)
{
    pthread_t t[WORKERS];
    (void)state;
    kp_gate_set(kp_gate_make(1, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(1, 2000), 0);
    kp_record_recycle(1);
    for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_create(&t[i], NULL, worker, NULL), 0);
    for (uint32_t cycle = 2; cycle < CYCLES + 2; cycle++) {
        gate_record(cycle);
        usleep(2000);
        /* every third: straight into the next cycle, as a schedule without wait does */
        kp_gate_set(kp_gate_make(cycle + 1, KP_GATE_ON | (cycle % 3 ? 0 : KP_GATE_RECORD)));
        assert_int_equal(kp_record_quiesce(cycle, 5000), 0);
        uint64_t kept = kp_load_relaxed(&kept_of[cycle]);
        assert_int_equal(kp_record_events(cycle), kept);
        assert_int_equal(spool_check(kp_record_path(), cycle), kept);
        kp_record_recycle(cycle);
        assert_int_equal(kp_record_events(cycle), 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < WORKERS; i++) pthread_join(t[i], NULL);
}

static void orphans_of_an_old_cycle_become_free(void **state)
{
    pthread_t t[2];
    (void)state;
    kp_gate_set(kp_gate_make(CYCLES + 10, KP_GATE_ON));
    for (uint32_t c = 1; c < CYCLES + 10; c++) {
        assert_int_equal(kp_record_quiesce(c, 2000), 0);
        kp_record_recycle(c);
    }
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&t[0], NULL, churn, NULL), 0);
    assert_int_equal(pthread_create(&t[1], NULL, churn, NULL), 0);
    for (uint32_t cycle = CYCLES + 10; cycle < 2 * CYCLES + 10; cycle++) {
        gate_record(cycle);
        usleep(1000);
        kp_gate_set(kp_gate_make(cycle + 1, KP_GATE_ON));
        assert_int_equal(kp_record_quiesce(cycle, 5000), 0);
        assert_int_equal(spool_check(kp_record_path(), cycle), kp_record_events(cycle));
        kp_record_recycle(cycle);
    }
    atomic_store(&stop, true);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    struct walk w;
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_int_equal(w.by_kind[KP_CHUNK_DATA], 0); /* every chunk of every cycle came back */
    assert_int_equal(w.by_kind[KP_CHUNK_FREE], kp_chunk_ready());
    walk_close(&w);
}

static void lanes_write_chunks_of_their_own(void **state)
{
    enum { CYCLE = 900, RECORDS = 3000 };
    uint64_t gate = kp_gate_make(CYCLE, KP_GATE_ON | KP_GATE_RECORD);
    struct kp_thread *lane = kp_lane_open("lane");
    (void)state;
    gate_record(CYCLE);
    assert_int_equal(hook_put(0, 10), 10);
    kp_gate_set(kp_gate_make(CYCLE + 1, KP_GATE_ON));
    for (uint32_t i = 0; i < RECORDS; i++) { /* the window is closed: what comes late is kept with it all the same */
        struct kp_rec_sync *r = kp_put_reserve(lane, gate, sizeof *r, KP_KIND_SYNC);
        assert_non_null(r);
        *r = (struct kp_rec_sync){.head = {.kind = KP_KIND_SYNC, .size = sizeof *r}, .correlation = i};
        kp_put_commit(lane, sizeof *r);
    }
    struct walk w;
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_in_range(w.by_kind[KP_CHUNK_DEVICE], RECORDS * sizeof(struct kp_rec_sync) / KP_CHUNK_BYTES, 4);
    assert_int_equal(w.by_kind[KP_CHUNK_DATA], 1);
    walk_close(&w);
    assert_false(kp_thread_is_gone(lane));
    kp_record_recycle(CYCLE);
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_int_equal(w.by_kind[KP_CHUNK_DEVICE] + w.by_kind[KP_CHUNK_DATA], 0);
    walk_close(&w);
}

static void *stay_inside(void *arg)
{
    struct kp_thread *t = kp_thread_get();
    hook_put(0, 1);
    kp_store_relaxed(&t->inside, 1);
    atomic_store((atomic_int *)arg, 1);
    while (atomic_load((atomic_int *)arg) == 1) usleep(500);
    kp_store_release(&t->inside, 0);
    return NULL;
}

static void a_thread_that_stays_inside_keeps_its_chunk(void **state)
{
    atomic_int step = 0;
    pthread_t t;
    (void)state;
    gate_record(1000);
    assert_int_equal(pthread_create(&t, NULL, stay_inside, &step), 0);
    while (atomic_load(&step) == 0) usleep(100);
    kp_gate_set(kp_gate_make(1001, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(1000, 20), -ETIMEDOUT);
    kp_record_recycle(1000);
    assert_int_equal(kp_record_events(1000), 1); /* not taken away under it */
    atomic_store(&step, 2);
    pthread_join(t, NULL);
    kp_record_recycle(1000);
    assert_int_equal(kp_record_events(1000), 0);
}

/* It stays through three windows: the chunk it has is one of the first, and the later waits must not make it
 * forgotten. */
static void a_thread_that_stays_inside_for_long_keeps_its_chunk_and_all_come_back(void **state)
{
    atomic_int step = 0;
    pthread_t t;
    (void)state;
    gate_record(1100);
    assert_int_equal(pthread_create(&t, NULL, stay_inside, &step), 0);
    while (atomic_load(&step) == 0) usleep(100);
    for (uint32_t cycle = 1101; cycle < 1104; cycle++) {
        gate_record(cycle);
        assert_int_equal(kp_record_quiesce(cycle - 1, 20), -ETIMEDOUT);
        assert_int_equal(hook_put(0, 1), 1);
    }
    for (uint32_t cycle = 1100; cycle < 1103; cycle++) kp_record_recycle(cycle);
    for (uint32_t cycle = 1100; cycle < 1103; cycle++) assert_int_equal(kp_record_events(cycle), 1);
    atomic_store(&step, 2);
    pthread_join(t, NULL);
    kp_gate_set(kp_gate_make(1104, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(1103, 1000), 0);
    kp_record_recycle(1103); /* takes back what had to wait, too */
    for (uint32_t cycle = 1100; cycle < 1104; cycle++) assert_int_equal(kp_record_events(cycle), 0);
}

static void *vanish_inside(void *arg)
{
    hook_put(0, 1);
    kp_store_relaxed(&kp_thread_get()->inside, 1);
    return arg; /* as a cancelled thread does: nobody clears the mark */
}

static void a_thread_that_ended_inside_does_not_hold_up_a_cycle(void **state)
{
    pthread_t t;
    (void)state;
    gate_record(2000);
    assert_int_equal(pthread_create(&t, NULL, vanish_inside, NULL), 0);
    pthread_join(t, NULL);
    kp_gate_set(kp_gate_make(2001, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(2000, 20), 0);
}

static volatile sig_atomic_t handled;
static void handler(int number)
{
    (void)number;
    handled += 1 + (int)hook_put(0, 1);
}

static void a_hook_in_a_signal_handler_inside_a_hook_passes_through(void **state)
{
    struct kp_thread *t = kp_thread_get();
    (void)state;
    gate_record(3000);
    signal(SIGUSR1, handler);
    kp_store_relaxed(&t->inside, 1);
    pthread_kill(pthread_self(), SIGUSR1);
    kp_store_release(&t->inside, 0);
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(handled, 1);
}

static int setup(void **state)
{
    (void)state;
    open_spool(256, NULL);
    stock_wait(100);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kp_gate_set(0);
    (void)kp_record_close(true, 10000);
    return 0;
}

/* ---- a hook that a handler left ---- */

static atomic_bool is_left, may_end;

static void *leaves_a_hook(void *frame)
{
    struct kp_thread *t = kp_thread_get();
    kp_store_relaxed(&t->inside, kp_inside_tag(frame));
    kp_store_release(&is_left, true);
    while (!kp_load_acquire(&may_end)) usleep(1000);
    return NULL;
}

static void a_wait_is_over_for_a_hook_whose_frame_is_gone(void **state)
{
    (void)state;
    uintptr_t frame[2] = {0, 0x1234};
    pthread_t thread;
    kp_store_relaxed(&is_left, false);
    kp_store_relaxed(&may_end, false);
    pthread_create(&thread, NULL, leaves_a_hook, frame);
    while (!kp_load_acquire(&is_left)) usleep(1000);
    assert_int_equal(kp_record_quiesce(9, 20), -ETIMEDOUT);
    frame[1] = 0x4321;
    assert_int_equal(kp_record_quiesce(9, 20), 0);
    kp_store_release(&may_end, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_threads_share_chunks_and_structs),
        cmocka_unit_test(hooks_of_a_dying_thread_pass_through),
        cmocka_unit_test(cycles_are_quiet_whole_and_separate),
        cmocka_unit_test(lanes_write_chunks_of_their_own),
        cmocka_unit_test(orphans_of_an_old_cycle_become_free),
        cmocka_unit_test(a_thread_that_stays_inside_keeps_its_chunk),
        cmocka_unit_test(a_thread_that_stays_inside_for_long_keeps_its_chunk_and_all_come_back),
        cmocka_unit_test(a_thread_that_ended_inside_does_not_hold_up_a_cycle),
        cmocka_unit_test(a_hook_in_a_signal_handler_inside_a_hook_passes_through),
        cmocka_unit_test(a_wait_is_over_for_a_hook_whose_frame_is_gone),
    };
    return cmocka_run_group_tests_name("thread", tests, setup, teardown);
}

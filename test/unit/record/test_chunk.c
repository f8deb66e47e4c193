// SPDX-License-Identifier: Apache-2.0
/* test_chunk.c - a chunk has one owner at any time, and an orphan is adopted within its cycle only */
#include <pthread.h>
#include <sys/mman.h>

#include "test/unit/record/walk.h"

enum { THREADS = 4, HELD = 3 };
static atomic_bool stop, doubled;

/* Pops some, gives them back in another order: what makes a stack without tags hand one chunk to two threads. */
static void *take_and_give(void *arg)
{
    struct kp_chunk_head *held[HELD];
    uint32_t me = (uint32_t)(uintptr_t)arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        int n = 0;
        for (; n < HELD && (held[n] = kp_chunk_take_kept(KP_CHUNK_META)) != NULL; n++) {
            _Atomic uint64_t *owner = (_Atomic uint64_t *)(&held[n]->reserved);
            if (atomic_exchange(owner, me) != 0) atomic_store(&doubled, true);
        }
        for (int i = 0; i < n; i++) {
            _Atomic uint64_t *owner = (_Atomic uint64_t *)(&held[i]->reserved);
            if (atomic_exchange(owner, 0) != me) atomic_store(&doubled, true);
            held[i]->order = 0; /* as fresh: nothing to wipe */
            kp_chunk_give_kept(held[i]);
        }
    }
    return NULL;
}

static void two_threads_never_hold_one_chunk(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    open_spool(1, NULL); /* 16 chunks: the top of the stack is fought for */
    usleep(50000);
    uint32_t ready = kp_chunk_ready();
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, take_and_give, (void *)(i + 1)), 0);
    for (int i = 0; i < 100 && !atomic_load(&doubled); i++) usleep(10000);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    assert_false(atomic_load(&doubled));
    assert_int_equal(kp_chunk_ready(), ready);
    for (uint32_t i = 0; i < ready; i++) assert_non_null(kp_chunk_take_kept(KP_CHUNK_META)); /* none was lost either */
    assert_null(kp_chunk_take_kept(KP_CHUNK_META));
    spool_forget(true);
}

static void an_orphan_is_adopted_within_its_cycle_only(void **state)
{
    (void)state;
    open_spool(16, NULL);
    struct kp_thread *t = kp_thread_get();
    struct kp_chunk_head *one = kp_chunk_take(t, 1), *two = kp_chunk_take(t, 2);
    kp_chunk_orphan(one, 1);
    kp_chunk_orphan(two, 2);
    assert_null(kp_chunk_adopt(3));
    kp_chunk_orphan(two, 2); /* the search for cycle 3 laid them back */
    assert_ptr_equal(kp_chunk_adopt(2), two);
    assert_null(kp_chunk_adopt(2));
    assert_int_equal(one->cycle, 1);
    kp_chunk_orphan(one, 1);
    kp_chunk_recycle(1);
    assert_int_equal(one->kind, KP_CHUNK_FREE);
    assert_null(kp_chunk_adopt(1));
    kp_chunk_orphan(one, 1); /* a thread of cycle 1 that dies late: its chunk is not its own any more */
    assert_null(kp_chunk_adopt(1));
    assert_int_equal(two->kind, KP_CHUNK_DATA);
    spool_forget(true);
}

static void *look_for_orphans(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) assert_null(kp_chunk_adopt(UINT32_MAX));
    return NULL;
}

#ifdef __SANITIZE_THREAD__
enum { CYCLES = 40000 }; /* it sees what is not ordered the first time */
#else
enum { CYCLES = 300000 };
#endif

/* A thread that looks for an orphan of its own cycle holds others for a moment: none may get lost when theirs is
 * recycled then. */
static void an_orphan_looked_at_while_its_cycle_is_recycled_comes_back(void **state)
{
    pthread_t t[2];
    (void)state;
    open_spool(16, NULL);
    atomic_store(&stop, false);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, look_for_orphans, NULL), 0);
    struct kp_thread *me = kp_thread_get();
    for (uint32_t cycle = 1; cycle < CYCLES; cycle++) {
        struct kp_chunk_head *chunk = kp_chunk_take(me, cycle);
        assert_non_null(chunk); /* 255 chunks would be gone long ago */
        kp_chunk_orphan(chunk, cycle);
        kp_chunk_recycle(cycle);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    struct walk w;
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_int_equal(w.by_kind[KP_CHUNK_DATA], 0);
    walk_close(&w);
    spool_forget(true);
}

/* Pages of these chunks that are in the process. Of the whole spool it would be the writer's, too, which prepares
 * chunks meanwhile. */
static int pages_here(struct kp_chunk_head *const *chunks, int n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int fd = open("/proc/self/pagemap", O_RDONLY);
    int here = 0;
    assert_true(fd >= 0);
    for (int i = 0; i < n; i++)
        for (size_t at = 0; at < KP_CHUNK_BYTES; at += page) {
            uint64_t entry = 0;
            assert_int_equal(
                pread(fd, &entry, sizeof entry, (off_t)(((uintptr_t)chunks[i] + at) / page * sizeof entry)),
                sizeof entry);
            here += entry >> 63 != 0;
        }
    close(fd);
    return here;
}

/* Emulators of other processors may take the advice and do nothing. */
static bool pages_can_leave(void)
{
    char *page = mmap(NULL, KP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    *page = 1;
    const bool can = madvise(page, KP_PAGE, MADV_DONTNEED) == 0 && *(volatile char *)page == 0;
    munmap(page, KP_PAGE);
    return can;
}

static void pages_of_records_leave_and_records_stay(void **state)
{
    enum { MANY = 100 };
    struct kp_chunk_head *chunks[MANY];
    (void)state;
    open_spool(16, NULL);
    struct kp_thread *me = kp_thread_get();
    for (int i = 0; i < MANY; i++) {
        while (!(chunks[i] = kp_chunk_take(me, 1))) sched_yield();
        memset(chunks[i] + 1, i + 1, KP_CHUNK_BYTES - sizeof *chunks[i]);
    }
    kp_chunk_orphan(chunks[50], 1);
    const int before = pages_here(chunks, MANY);
    kp_record_drop_pages();
    const int after = pages_here(chunks, MANY);
    /* the first of each may be looked at again */
    if (pages_can_leave() && (before < MANY || after > before / 8))
        fail_msg("%d pages before, %d after", before, after);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(chunks[i]->kind, KP_CHUNK_DATA);
        for (size_t at = sizeof *chunks[i]; at < KP_CHUNK_BYTES; at++)
            assert_int_equal(((const uint8_t *)chunks[i])[at], i + 1);
    }
    spool_forget(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_never_hold_one_chunk),
        cmocka_unit_test(an_orphan_is_adopted_within_its_cycle_only),
        cmocka_unit_test(an_orphan_looked_at_while_its_cycle_is_recycled_comes_back),
        cmocka_unit_test(pages_of_records_leave_and_records_stay),
    };
    return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}

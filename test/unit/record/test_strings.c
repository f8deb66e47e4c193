// SPDX-License-Identifier: Apache-2.0
/* test_strings.c - one id for one text, from any thread, with the text in the file */
#include <pthread.h>
#include <sched.h>

#include "collector/base/sys/kp_fail.h"
#include "test/unit/record/walk.h"

static void the_same_text_has_the_same_id(void **state)
{
    struct kp_thread *t = kp_thread_get();
    (void)state;
    uint32_t a = kp_name_intern(t, "aten::add", 9), b = kp_name_intern(t, "aten::mul", 9);
    assert_int_equal(a, 1);
    assert_int_equal(b, 2);
    assert_int_equal(kp_name_intern(t, "aten::add", 9), a);
    uint32_t overload = kp_name_intern(t, "aten::add\0Tensor", 16);
    assert_int_equal(overload, 3);
    assert_int_equal(kp_name_intern(t, "aten::add\0Scalar", 16), 4);
    assert_int_equal(kp_name_intern(t, "", 0), 5);
    assert_int_equal(kp_name_intern(t, "", 0), 5);
}

static void the_text_is_in_the_file(void **state)
{
    struct walk w;
    (void)state;
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_int_equal(w.strings, 5);
    assert_int_equal(w.texts[3]->len, 16);
    assert_memory_equal(w.texts[3]->bytes, "aten::add\0Tensor", 16);
    walk_close(&w);
}

static void a_long_text_is_cut_and_found_again(void **state)
{
    static char big[70000];
    struct kp_thread *t = kp_thread_get();
    (void)state;
    memset(big, 'x', sizeof big);
    uint32_t a = kp_name_intern(t, big, sizeof big);
    assert_true(a != 0);
    assert_int_equal(kp_name_intern(t, big, sizeof big), a);
    assert_int_equal(kp_name_intern(t, big, sizeof big - 1), a); /* what is cut off does not count */
    for (char c = 'a'; c < 'f'; c++) {                           /* more than one chunk of them */
        big[0] = c;
        assert_true(kp_name_intern(t, big, sizeof big) > a);
    }
}

static void the_cache_answers_by_address(void **state)
{
    static int schema[4000];
    struct kp_thread *t = kp_thread_get();
    (void)state;
    assert_int_equal(kp_name_cached(t, &schema[0]), 0);
    for (uint32_t i = 0; i < 4000; i++) {
        kp_name_cache(t, &schema[i], i + 1);
        assert_int_equal(kp_name_cached(t, &schema[i]), i + 1);
    }
    for (uint32_t i = 0; i < 4000; i++) { /* some were pushed out; what answers is right */
        uint32_t id = kp_name_cached(t, &schema[i]);
        assert_true(id == 0 || id == i + 1);
    }
}

enum { THREADS = 6, NAMES = 5000 };
static uint32_t ids[THREADS][NAMES];
static pthread_barrier_t together;

static void *intern_all(void *arg)
{
    uintptr_t me = (uintptr_t)arg;
    struct kp_thread *t = kp_thread_get();
    char name[64];
    pthread_barrier_wait(&together);
    for (uint32_t i = 0; i < NAMES; i++) {
        int n = snprintf(name, sizeof name, "shared name number %u with some length", i);
        ids[me][i] = kp_name_intern(t, name, (uint32_t)n);
    }
    return NULL;
}

static void threads_agree_on_every_id(void **state)
{
    pthread_t t[THREADS];
    struct walk w;
    char name[64];
    (void)state;
    pthread_barrier_init(&together, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, intern_all, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    walk_open(&w, kp_record_path());
    walk_all(&w);
    for (uint32_t i = 0; i < NAMES; i++) {
        int n = snprintf(name, sizeof name, "shared name number %u with some length", i);
        for (int k = 0; k < THREADS; k++) assert_int_equal(ids[k][i], ids[0][i]);
        assert_non_null(w.texts[ids[0][i]]);
        assert_int_equal(w.texts[ids[0][i]]->len, n);
        assert_memory_equal(w.texts[ids[0][i]]->bytes, name, (size_t)n);
    }
    assert_int_equal(w.strings_torn, 0);
    assert_int_equal(w.ids_doubled, 0);
    walk_close(&w);
}

enum { ROUNDS = 20000, ROUNDS_LEAST = 500, ROUNDS_S = 10 };
static _Atomic uint32_t arrived,
    rounds = ROUNDS; /* on a busy machine each meeting costs a turn of the scheduler: fewer do */
static uint32_t round_ids[2][ROUNDS];

/* Both threads reach each name at the same instant: one of them loses the swap. */
static void *intern_in_step(void *arg)
{
    uintptr_t me = (uintptr_t)arg;
    struct kp_thread *t = kp_thread_get();
    char name[32];
    const uint64_t end_ns = kp_clock_ns(CLOCK_MONOTONIC) + ROUNDS_S * UINT64_C(1000000000);
    for (uint32_t i = 0; i < atomic_load(&rounds); i++) {
        int n = snprintf(name, sizeof name, "step %u", i);
        if (me == 0 && i >= ROUNDS_LEAST && kp_clock_ns(CLOCK_MONOTONIC) > end_ns)
            atomic_store(&rounds, i + 1); /* the other one comes here, too */
        atomic_fetch_add(&arrived, 1);
        for (int spin = 0; atomic_load(&arrived) < 2 * (i + 1); spin++)
            if (spin > 1000) sched_yield();
        round_ids[me][i] = kp_name_intern(t, name, (uint32_t)n);
    }
    return NULL;
}

static void who_loses_the_race_takes_the_winners_id(void **state)
{
    pthread_t t[2];
    struct walk w;
    (void)state;
    stock_wait(200);
    for (uintptr_t i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, intern_in_step, (void *)i), 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    const uint32_t met = atomic_load(&rounds);
    for (uint32_t i = 0; i < met; i++) assert_int_equal(round_ids[0][i], round_ids[1][i]);
    walk_open(&w, kp_record_path());
    walk_all(&w);
    uint32_t top = 0;
    for (uint32_t i = 0; i < met; i++) top = round_ids[0][i] > top ? round_ids[0][i] : top;
    print_message("           %u of %u races were lost\n", w.strings - 5 - 6 - NAMES - met, met);
    assert_true(top <= w.strings);
    walk_close(&w);
}

enum { MANY = 300000, FIRST_TABLE = 262144 / 4 * 3 };
static uint32_t many_ids[MANY];

static uint32_t numbered(uint32_t i)
{
    char name[32];
    int n = snprintf(name, sizeof name, "n%u", i);
    return kp_name_intern(kp_thread_get(), name, (uint32_t)n);
}

/* A start-up with its imports fills a table, and what comes after has its names all the same. */
static void names_beyond_the_first_table_are_kept(void **state)
{
    uint64_t before = kp_loss_total();
    (void)state;
    const uint32_t first = kp_name_intern(kp_thread_get(), "aten::add", 9);
    uint32_t kept = 0;
    for (; kept < FIRST_TABLE - 30000; kept++) { /* other tests took some 25,000 */
        many_ids[kept] = numbered(kept);
        if (kept % 10000 == 0) stock_wait(20);
    }
    stock_wait(200);
    kp_fail_set("mmap:1+:12"); /* no memory for the second table */
    while (kept < MANY && (many_ids[kept] = numbered(kept))) kept++;
    kp_fail_set(NULL);
    assert_in_range(kept, FIRST_TABLE - 30000, FIRST_TABLE);
    assert_int_equal(kp_loss_total() - before, 1);
    assert_int_equal(kp_spool_head()->loss[0][KP_LOSS_NAME], 1);
    for (uint32_t i = kept; i < MANY; i++) {
        many_ids[i] = numbered(i);
        if (i % 10000 == 0) stock_wait(20);
    }
    assert_int_equal(kp_loss_total() - before, 1);
    for (uint32_t i = 0; i < MANY; i++) assert_int_equal(numbered(i), many_ids[i]); /* of both tables */
    assert_int_equal(kp_name_intern(kp_thread_get(), "aten::add", 9), first);
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(kp_name_intern(kp_thread_get(), "early", 5), 0); /* no file, no id, no harm */
    open_spool(256, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)kp_record_close(true, 10000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_text_has_the_same_id),
        cmocka_unit_test(the_text_is_in_the_file),
        cmocka_unit_test(a_long_text_is_cut_and_found_again),
        cmocka_unit_test(the_cache_answers_by_address),
        cmocka_unit_test(threads_agree_on_every_id),
        cmocka_unit_test(who_loses_the_race_takes_the_winners_id),
        cmocka_unit_test(names_beyond_the_first_table_are_kept),
    };
    return cmocka_run_group_tests_name("strings", tests, setup, teardown);
}

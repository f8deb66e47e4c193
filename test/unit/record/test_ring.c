// SPDX-License-Identifier: Apache-2.0
/* test_ring.c - KPROF_RING: old chunks serve again, those with an open range stay, clock samples do not pile up */
#include "test/unit/record/walk.h"

enum { RING_MS = 100, CAP_MB = 16 };

static void ring_open(uint64_t max_mb)
{
    const struct kp_record_options o = {
        .dir = kp_test_tmpdir(), .max_bytes = max_mb << 20, .text = "test=1\n", .ring_ms = RING_MS};
    kp_clock_init();
    assert_int_equal(kp_gate_init(), 0);
    assert_int_equal(kp_record_open(&o), 0);
}

/* Puts a record whose range is open. */
static struct test_rec *open_put(uint64_t number)
{
    struct kp_thread *t = kp_thread_get();
    assert_int_equal(hook_put(number, 1), 1);
    struct test_rec *r = (struct test_rec *)(void *)(t->at - sizeof(struct test_rec));
    assert_int_equal(r->number, number);
    kp_store_release((_Atomic uint64_t *)&r->check, 0);
    return r;
}

/* Records so much, and waits for the writer where there is no room. */
static void put_bytes(uint64_t bytes)
{
    uint64_t left = bytes / sizeof(struct test_rec);
    for (int naps = 0; left && naps < 60000;) {
        const uint32_t kept = hook_put(left, 1);
        left -= kept;
        if (kept) continue;
        usleep(1000);
        naps++;
    }
    assert_int_equal(left, 0);
}

static void four_times_the_limit_fits_and_the_open_range_stays(void **state)
{
    struct stat st;
    (void)state;
    ring_open(CAP_MB);
    gate_record(1);
    struct test_rec *const open = open_put(7);
    const struct test_rec before = *open;
    put_bytes(UINT64_C(4) * CAP_MB << 20);
    assert_memory_equal(open, &before, sizeof before);
    assert_int_equal(stat(kp_record_path(), &st), 0);
    assert_true(st.st_size <= CAP_MB << 20);
    assert_true(kp_load_relaxed(&kp_spool.chunks) <= (CAP_MB << 20) / KP_CHUNK_BYTES);
    spool_forget(true);
}

static uint32_t descriptors(void)
{
    uint32_t n = 0;
    for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Each takes a sixteenth of the room: `make ring` runs 5,000. */
static void laps_take_no_more_room_than_the_limit(void **state)
{
    const char *const wanted = getenv("RING_LAPS");
    const uint64_t laps = wanted ? strtoull(wanted, NULL, 10) : 100;
    struct stat late;
    (void)state;
    ring_open(CAP_MB);
    gate_record(1);
    put_bytes(1 << 20);
    const uint32_t open = descriptors();
    put_bytes(laps << 20);
    assert_int_equal(stat(kp_record_path(), &late), 0);
    assert_true(kp_load_relaxed(&kp_spool.chunks) <= (CAP_MB << 20) / KP_CHUNK_BYTES);
    assert_true(descriptors() <= open + 4); /* kprof-disk opens its file for a moment */
    assert_true(late.st_blocks <= (CAP_MB << 20) / 512);
    spool_forget(true);
}

/* Nothing stands in the way of freeing them, but that the window is over and is exported. */
static void nothing_goes_once_the_window_is_over(void **state)
{
    (void)state;
    ring_open(CAP_MB);
    gate_record(1);
    put_bytes(4 << 20);
    kp_gate_set(kp_gate_make(1, KP_GATE_ON));
    assert_int_equal(kp_record_quiesce(1, 1000), 0);
    const uint64_t events = kp_record_events(1);
    usleep(3 * RING_MS * 1000);
    const uint64_t of_a_chunk = KP_CHUNK_BYTES / sizeof(struct test_rec); /* the writer may be about to free one */
    assert_true(kp_record_events(1) + of_a_chunk >= events);
    spool_forget(true);
}

/* One record, and the time of a round. */
static void rest_put(void)
{
    assert_int_equal(hook_put(1, 1), 1);
    usleep(10000);
}

/* Longer than the ring, and longer than a round of the writer. */
static void rounds_wait(void) { usleep(5 * RING_MS * 1000); }

static void what_a_reader_holds_stays_until_it_lets_go(void **state)
{
    (void)state;
    ring_open(CAP_MB);
    gate_record(1);
    kp_ring_hold();
    put_bytes(2 << 20);
    const uint64_t events = (2 << 20) / sizeof(struct test_rec);
    rounds_wait();
    assert_int_equal(kp_record_events(1), events);
    assert_true(kp_ring_release());
    for (int i = 0; i < 6000 && kp_record_events(1) >= events; i++) rest_put();
    assert_true(kp_record_events(1) < events);
    spool_forget(true);
}

/* As where the program is stuck, or takes long to exit. */
static void while_no_thread_records_nothing_goes(void **state)
{
    (void)state;
    ring_open(CAP_MB);
    gate_record(1);
    put_bytes(2 << 20);
    rounds_wait(); /* the writer has seen the last of them */
    const uint64_t events = kp_record_events(1);
    assert_true(events > 0);
    usleep(10 * RING_MS * 1000);
    assert_int_equal(kp_record_events(1), events);
    for (int i = 0; i < 6000 && kp_record_events(1) >= events; i++) rest_put();
    assert_true(kp_record_events(1) < events);
    spool_forget(true);
}

static void where_room_is_short_the_newest_go_on_and_the_reader_is_told(void **state)
{
    (void)state;
    ring_open(CAP_MB);
    gate_record(1);
    kp_ring_hold();
    put_bytes(UINT64_C(4) * CAP_MB << 20);
    assert_false(kp_ring_release());
    assert_non_null(strstr(kp_spool_head()->text, "\nring_short=1\n")); /* the rest of the header is zeroes */
    spool_forget(true);
}

static void no_clock_sample_changes_while_a_reader_looks(void **state)
{
    struct walk w;
    (void)state;
    ring_open(CAP_MB);
    kp_gate_set(kp_gate_make(1, KP_GATE_ON));
    for (int i = 0; i < 3; i++) kp_meta_clock_try();
    kp_ring_hold();
    for (int i = 0; i < 3; i++) kp_meta_clock_try();
    walk_open(&w, kp_record_path());
    walk_all(&w);
    assert_int_equal(w.records[KP_KIND_CLOCK], 5); /* of the start, the newest until then, and three */
    walk_close(&w);
    (void)kp_ring_release();
    spool_forget(true);
}

static uint64_t samples(void)
{
    struct walk w;
    kp_gate_set(kp_gate_make(1, KP_GATE_ON)); /* the writer takes no sample */
    for (int i = 0; i < 20; i++) kp_meta_clock_try();
    walk_open(&w, kp_record_path());
    walk_all(&w);
    const uint64_t n = w.records[KP_KIND_CLOCK];
    walk_close(&w);
    spool_forget(true);
    return n;
}

static void of_the_samples_of_a_minute_one_stays(void **state)
{
    (void)state;
    ring_open(CAP_MB);
    assert_int_equal(samples(), 2); /* that of the start does not change */
    open_spool(CAP_MB, NULL);
    assert_int_equal(samples(), 21);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_times_the_limit_fits_and_the_open_range_stays),
        cmocka_unit_test(laps_take_no_more_room_than_the_limit),
        cmocka_unit_test(nothing_goes_once_the_window_is_over),
        cmocka_unit_test(what_a_reader_holds_stays_until_it_lets_go),
        cmocka_unit_test(while_no_thread_records_nothing_goes),
        cmocka_unit_test(where_room_is_short_the_newest_go_on_and_the_reader_is_told),
        cmocka_unit_test(no_clock_sample_changes_while_a_reader_looks),
        cmocka_unit_test(of_the_samples_of_a_minute_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

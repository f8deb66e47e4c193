// SPDX-License-Identifier: Apache-2.0
/* test_device.c - what a spool says of GPUs is read: clocks, calls in order, threads, late records */
#include "collector/read/devclock.h"
#include "collector/read/kp_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

#define WALL 1790857026000000000u
#define SECOND 1000000000u

static struct test_spool spool;
static uint32_t meta, main_chunk, lane;

/* Ticks are ns from 1 s on, a window from 2 s to 8 s; wall time is ticks + WALL. */
static void spool_begin(void)
{
    test_spool_init(&spool);
    test_spool_head(&spool)->clock_kind = KP_CLOCK_MONO;
    meta = test_spool_chunk(&spool, KP_CHUNK_META, 0, 4242, 1, "python");
    test_spool_clock(&spool, meta, SECOND, WALL + SECOND, SECOND);
    test_spool_clock(&spool, meta, 10u * SECOND, WALL + 10 * (uint64_t)SECOND, 10 * (uint64_t)SECOND);
    test_spool_cycle(&spool, meta, 1, 2 * (uint64_t)SECOND, 8 * (uint64_t)SECOND, 0);
    main_chunk = test_spool_chunk(&spool, KP_CHUNK_DATA, 1, 4242, 1, "python");
    lane = test_spool_chunk(&spool, KP_CHUNK_DEVICE, 1, 0, 9, "lane");
}

static struct kp_reader *spool_open(void)
{
    struct kp_reader *r;
    char path[512], why[256] = "";
    snprintf(path, sizeof path, "%s/t.kprof", kp_test_tmpdir());
    test_spool_save(&spool, path, 0);
    test_spool_free(&spool);
    if (test_reader_open(&r, path, why, sizeof why)) fail_msg("%s", why);
    return r;
}

static void devclock(uint64_t ticks, uint64_t device, uint32_t domain, uint64_t width)
{
    struct kp_rec_devclock r = {.head = {.kind = KP_KIND_DEVCLOCK, .size = sizeof r},
                                .ticks = ticks,
                                .device = device,
                                .width = width,
                                .domain = domain};
    assert_true(test_spool_put(&spool, meta, &r, sizeof r));
}

static void kernel(uint32_t chunk, uint64_t start, uint64_t end, uint32_t correlation, uint8_t flags)
{
    struct kp_rec_kernel r = {.head = {.kind = KP_KIND_KERNEL, .flags = flags, .size = sizeof r},
                              .start = start,
                              .end = end,
                              .correlation = correlation};
    assert_true(test_spool_put(&spool, chunk, &r, sizeof r));
}

static void api(uint32_t chunk, uint64_t start, uint64_t end, uint32_t correlation, uint32_t tid, uint32_t thread_id)
{
    struct kp_rec_api r = {.head = {.kind = KP_KIND_API, .flags = KP_DEV_TICKS, .size = sizeof r},
                           .start = start,
                           .end = end,
                           .correlation = correlation,
                           .tid = tid,
                           .thread_id = thread_id,
                           .stream = KP_DEV_NONE};
    assert_true(test_spool_put(&spool, chunk, &r, sizeof r));
}

/* --- what was seen --- */

static struct kp_device_event work[64];
static struct kp_event events[4096];
static size_t work_n, events_n;
static uint64_t invalid;

static int work_keep(void *context, const struct kp_device_event *e)
{
    (void)context;
    assert_true(work_n < sizeof work / sizeof *work);
    work[work_n++] = *e;
    return 0;
}

static int event_keep(void *context, const struct kp_event *e)
{
    (void)context;
    assert_true(events_n < sizeof events / sizeof *events);
    events[events_n++] = *e;
    return 0;
}

static void walk(void)
{
    struct kp_reader *r = spool_open();
    work_n = events_n = 0;
    assert_int_equal(kp_reader_timeline(r, 1, event_keep, NULL, &invalid), 0);
    assert_int_equal(kp_reader_device(r, 1, work_keep, NULL), 0);
    kp_reader_close(r);
}

/* --- the device's clock --- */

static void a_clock_of_ns_keeps_durations_as_measured_while_it_drifts(void **state)
{
    (void)state;
    spool_begin();
    for (uint64_t s = 1; s < 10; s++)
        devclock(s * SECOND, 77 * (uint64_t)SECOND + s * SECOND + s * 20000, 0, 50); /* 20 us a second too fast */
    kernel(lane, 77 * (uint64_t)SECOND + 4 * (uint64_t)SECOND + 4 * 20000 + 500,
           77 * (uint64_t)SECOND + 4 * (uint64_t)SECOND + 4 * 20000 + 500 + 123456789, 1, 0);
    walk();
    assert_int_equal(work_n, 1);
    assert_in_range(work[0].start_ns, WALL + 4 * (uint64_t)SECOND + 498, WALL + 4 * (uint64_t)SECOND + 502);
    assert_int_equal(work[0].end_ns - work[0].start_ns, 123456789);
}

static void a_clock_of_other_ticks_is_converted_at_both_ends(void **state)
{
    (void)state;
    spool_begin();
    for (uint64_t s = 1; s < 10; s++) devclock(s * SECOND, s * 2500000000u, 0, 50); /* 2.5 GHz */
    kernel(lane, 3 * (uint64_t)2500000000u, 3 * (uint64_t)2500000000u + 2500, 1, 0);
    walk();
    assert_in_range(work[0].start_ns, WALL + 3 * (uint64_t)SECOND - 2, WALL + 3 * (uint64_t)SECOND + 2);
    assert_in_range(work[0].end_ns - work[0].start_ns, 998, 1002);
}

static void a_changed_clock_is_another_domain(void **state)
{
    (void)state;
    spool_begin();
    for (uint64_t s = 1; s < 5; s++) devclock(s * SECOND, WALL + s * SECOND, 0, 50);
    for (uint64_t s = 5; s < 10; s++) devclock(s * SECOND, s * 3 * (uint64_t)SECOND, 1, 50);
    kernel(lane, WALL + 3 * (uint64_t)SECOND, WALL + 3 * (uint64_t)SECOND + 10, 1, 0);
    kernel(lane, 18 * (uint64_t)SECOND, 18 * (uint64_t)SECOND + 3000, 2, KP_DEV_DOMAIN);
    walk();
    assert_in_range(work[0].start_ns, WALL + 3 * (uint64_t)SECOND - 2, WALL + 3 * (uint64_t)SECOND + 2);
    assert_in_range(work[1].start_ns, WALL + 6 * (uint64_t)SECOND - 2, WALL + 6 * (uint64_t)SECOND + 2);
    assert_in_range(work[1].end_ns - work[1].start_ns, 998, 1002);
}

static void samples_of_domains_that_fall_are_damage(void **state)
{
    struct kp_devclock d = {0};
    struct kp_rec_devclock sample = {.head = {.kind = KP_KIND_DEVCLOCK, .size = sizeof sample}};
    (void)state;
    for (uint32_t left = 5000; left; left--) {
        sample.domain = left;
        assert_int_equal(kp_devclock_add(&d, &sample), 0);
    }
    assert_int_equal(d.n, 1024);
    assert_int_equal(d.rejected, 5000 - 1024);
    kp_devclock_fini(&d);
}

/* The smallest width of a domain is the measure of all: near 2^64 it must not wrap round, and the best sample always
 * stays. */
static void samples_of_any_width_leave_one(void **state)
{
    static const uint64_t widths[] = {UINT64_MAX,        UINT64_MAX - 1, UINT64_MAX - 500,
                                      UINT64_MAX - 1000, UINT64_MAX / 4, 0};
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        spool_begin();
        for (uint64_t s = 1; s < 4; s++) devclock(s * SECOND, WALL + s * SECOND, 0, widths[w]);
        devclock(5 * (uint64_t)SECOND, WALL + 5 * (uint64_t)SECOND, 1, widths[w]);
        kernel(lane, WALL + 3 * (uint64_t)SECOND, WALL + 3 * (uint64_t)SECOND + 10, 1, 0);
        kernel(lane, WALL + 3 * (uint64_t)SECOND, WALL + 3 * (uint64_t)SECOND + 10, 2, KP_DEV_DOMAIN);
        walk();
        assert_int_equal(work_n, 2);
        assert_in_range(work[0].start_ns, WALL + 3 * (uint64_t)SECOND - 2, WALL + 3 * (uint64_t)SECOND + 2);
        assert_int_equal(work[1].end_ns - work[1].start_ns, 10);
    }
}

static void a_sample_that_was_measured_badly_does_not_count(void **state)
{
    (void)state;
    spool_begin();
    for (uint64_t s = 1; s < 10; s++)
        devclock(s * SECOND, 7 * (uint64_t)SECOND + s * SECOND + (s == 4 ? 3000000 : 0), 0, s == 4 ? 5000000 : 50);
    kernel(lane, 7 * (uint64_t)SECOND + 4 * (uint64_t)SECOND, 7 * (uint64_t)SECOND + 4 * (uint64_t)SECOND + 10, 1, 0);
    walk();
    assert_in_range(work[0].start_ns, WALL + 4 * (uint64_t)SECOND - 2, WALL + 4 * (uint64_t)SECOND + 2);
}

static void a_clock_that_was_set_bends_no_line_but_the_one_across_the_jump(void **state)
{
    (void)state;
    spool_begin();
    for (uint64_t s = 1; s < 10; s++)
        devclock(s * SECOND, WALL + s * SECOND + (s > 5 ? 30 * (uint64_t)SECOND : 0), 0, 50);
    kernel(lane, WALL + 3 * (uint64_t)SECOND + 7, WALL + 3 * (uint64_t)SECOND + 17, 1, 0);
    kernel(lane, WALL + 37 * (uint64_t)SECOND + 7, WALL + 37 * (uint64_t)SECOND + 17, 2, 0);
    walk();
    assert_in_range(work[0].start_ns, WALL + 3 * (uint64_t)SECOND + 5, WALL + 3 * (uint64_t)SECOND + 9);
    assert_in_range(work[1].start_ns, WALL + 7 * (uint64_t)SECOND + 5, WALL + 7 * (uint64_t)SECOND + 9);
}

static void without_a_sample_times_are_taken_for_wall_time(void **state)
{
    (void)state;
    spool_begin();
    kernel(lane, WALL + 3 * (uint64_t)SECOND, WALL + 3 * (uint64_t)SECOND + 10, 1, 0);
    kernel(lane, 5000, 6000, 2, 0);
    walk();
    assert_int_equal(work[0].start_ns, WALL + 3 * (uint64_t)SECOND);
    assert_int_equal(work[1].time_status, KP_TIME_INVALID);
}

static void work_without_times_is_told_from_work_with_bad_ones(void **state)
{
    (void)state;
    spool_begin();
    kernel(lane, 3 * (uint64_t)SECOND, 0, 1, KP_DEV_TICKS);
    kernel(lane, 3 * (uint64_t)SECOND, 2 * (uint64_t)SECOND, 2, KP_DEV_TICKS);
    kernel(lane, 3 * (uint64_t)SECOND, 4 * (uint64_t)SECOND, 3, KP_DEV_TICKS | KP_DEV_NO_TIME);
    kernel(lane, 3 * (uint64_t)SECOND, 4 * (uint64_t)SECOND, 4, KP_DEV_TICKS);
    walk();
    assert_int_equal(work[0].time_status, KP_TIME_NONE);
    assert_int_equal(work[1].time_status, KP_TIME_INVALID);
    assert_int_equal(work[2].time_status, KP_TIME_NONE);
    assert_int_equal(work[3].time_status, KP_TIME_OK);
}

/* --- calls --- */

static void calls_come_behind_the_op_their_middle_lies_in(void **state)
{
    (void)state;
    spool_begin();
    test_spool_op(&spool, main_chunk,
                  &(struct test_op){.start = 2 * (uint64_t)SECOND + 100, .ticks = 1000, .rt_tid = 1, .seq = -1});
    test_spool_op(&spool, main_chunk,
                  &(struct test_op){.start = 2 * (uint64_t)SECOND + 500, .ticks = 100, .rt_tid = 1, .seq = -1});
    api(lane, 2 * (uint64_t)SECOND + 490, 2 * (uint64_t)SECOND + 590, 7, 4242,
        0); /* begins 10 ns before its op, says its clock */
    walk();
    assert_int_equal(events_n, 3);
    assert_int_equal(events[2].kind, KP_KIND_API);
    assert_int_equal(events[2].correlation, 7);
    assert_int_equal(events[2].middle_ns, WALL + 2 * (uint64_t)SECOND + 540);
}

/* Every third call is delivered late, chunks overlap, a nested call is written before the one around it. */
static void calls_of_many_chunks_come_in_order_of_time(void **state)
{
    uint32_t n = 0, chunks[3];
    (void)state;
    spool_begin();
    for (int i = 0; i < 3; i++) chunks[i] = test_spool_chunk(&spool, KP_CHUNK_DEVICE, 1, 0, 9, "lane");
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t at = 3 * (uint64_t)SECOND + (i ^ 5) * 1000;
        api(chunks[i % 3], at, at + 400, ++n, 4242, 0);
    }
    walk();
    assert_int_equal(events_n, 3000);
    for (size_t i = 1; i < events_n; i++) assert_true(events[i].middle_ns > events[i - 1].middle_ns);
    assert_int_equal(invalid, 0);
}

static void calls_outside_the_window_are_left_out_and_bad_ones_counted(void **state)
{
    (void)state;
    spool_begin();
    api(lane, 1999999999u, 2 * (uint64_t)SECOND + 10, 1, 4242, 0);
    api(lane, 2 * (uint64_t)SECOND, 2 * (uint64_t)SECOND + 10, 2, 4242, 0);
    api(lane, 8 * (uint64_t)SECOND - 1, 9 * (uint64_t)SECOND, 3, 4242, 0);
    api(lane, 8 * (uint64_t)SECOND, 9 * (uint64_t)SECOND, 4, 4242, 0);
    api(lane, 3 * (uint64_t)SECOND, 2 * (uint64_t)SECOND, 5, 4242, 0);
    walk();
    assert_int_equal(events_n, 2);
    assert_int_equal(events[0].correlation, 2);
    assert_int_equal(events[1].correlation, 3);
    assert_int_equal(invalid, 1);
}

static void threads_are_known_by_chunks_and_by_records_of_their_names(void **state)
{
    struct kp_rec_threadid named = {
        .head = {.kind = KP_KIND_THREADID, .size = sizeof named}, .thread_id = 0x1234, .tid = 4250};
    (void)state;
    spool_begin();
    test_spool_at(&spool, main_chunk)->pthread_id = 0x7f00deadbeefu;
    test_spool_put(&spool, meta, &named, sizeof named);
    api(lane, 3 * (uint64_t)SECOND, 3 * (uint64_t)SECOND + 10, 1, 0, 0xdeadbeef);
    api(lane, 3 * (uint64_t)SECOND + 20, 3 * (uint64_t)SECOND + 30, 2, 0, 0x1234);
    api(lane, 3 * (uint64_t)SECOND + 40, 3 * (uint64_t)SECOND + 50, 3, 0, 999);
    api(lane, 3 * (uint64_t)SECOND + 60, 3 * (uint64_t)SECOND + 70, 4, 77, 0xdeadbeef);
    walk();
    assert_int_equal(events_n, 4);
    assert_int_equal(events[0].tid, 4242);
    assert_int_equal(events[1].tid, 4250);
    assert_int_equal(events[2].tid, 999);
    assert_int_equal(events[3].tid, 77);
}

/* --- late records --- */

static void a_window_takes_what_lies_in_chunks_of_the_next_but_not_of_one_long_after(void **state)
{
    (void)state;
    spool_begin();
    test_spool_cycle(&spool, meta, 2, 9 * (uint64_t)SECOND, 10 * (uint64_t)SECOND, 0);
    test_spool_cycle(&spool, meta, 3, 2000 * (uint64_t)SECOND, 2001 * (uint64_t)SECOND, 0);
    kernel(test_spool_chunk(&spool, KP_CHUNK_DEVICE, 2, 0, 9, "lane"), 3 * (uint64_t)SECOND, 4 * (uint64_t)SECOND, 2,
           KP_DEV_TICKS);
    kernel(test_spool_chunk(&spool, KP_CHUNK_DEVICE, 3, 0, 9, "lane"), 3 * (uint64_t)SECOND, 4 * (uint64_t)SECOND, 3,
           KP_DEV_TICKS);
    walk();
    assert_int_equal(work_n, 1);
    assert_int_equal(work[0].of.kernel.correlation, 2);
}

/* As read from inside the program: a cycle is announced when it records, and only warms up yet. */
static void a_window_takes_what_lies_in_chunks_of_one_that_warms_up(void **state)
{
    (void)state;
    spool_begin();
    kernel(test_spool_chunk(&spool, KP_CHUNK_DEVICE, 2, 0, 9, "lane"), 3 * (uint64_t)SECOND, 4 * (uint64_t)SECOND, 2,
           KP_DEV_TICKS);
    walk();
    assert_int_equal(work_n, 1);
    assert_int_equal(work[0].of.kernel.correlation, 2);
    spool_begin();
    test_spool_cycle(&spool, meta, 2, 2000 * (uint64_t)SECOND, 2001 * (uint64_t)SECOND, 0);
    kernel(test_spool_chunk(&spool, KP_CHUNK_DEVICE, 3, 0, 9, "lane"), 3 * (uint64_t)SECOND, 4 * (uint64_t)SECOND, 3,
           KP_DEV_TICKS);
    walk();
    assert_int_equal(work_n, 0); /* behind one long after */
}

static void a_record_cut_short_is_skipped_and_counted(void **state)
{
    struct kp_rec_kernel r = {.head = {.kind = KP_KIND_KERNEL, .size = 64}, .start = 3, .end = 4};
    struct kp_reader *reader;
    (void)state;
    spool_begin();
    test_spool_put(&spool, lane, &r, 64);
    kernel(lane, 3 * (uint64_t)SECOND, 4 * (uint64_t)SECOND, 1, KP_DEV_TICKS);
    reader = spool_open();
    work_n = 0;
    assert_int_equal(kp_reader_device(reader, 1, work_keep, NULL), 0);
    assert_int_equal(work_n, 1);
    assert_int_equal(kp_reader_skipped(reader), 1);
    kp_reader_close(reader);
}

/* --- NVTX --- */

static void ranges_of_nvtx_come_with_their_domain_and_only_in_a_timeline(void **state)
{
    struct kp_rec_nvtx n = {
        .head = {.kind = KP_KIND_NVTX, .size = sizeof n}, .start = 3 * (uint64_t)SECOND, .ticks = 50, .id = 5};
    struct kp_reader *r;
    (void)state;
    spool_begin();
    n.head.name = test_spool_name(&spool, "load", 4);
    n.domain = test_spool_name(&spool, "NCCL", 4);
    test_spool_put(&spool, main_chunk, &n, sizeof n);
    n.head.size = 24; /* too short for its kind */
    test_spool_put(&spool, main_chunk, &n, 24);
    r = spool_open();
    events_n = 0;
    assert_int_equal(kp_reader_events(r, 1, event_keep, NULL), 0);
    assert_int_equal(kp_reader_skipped(r), 0);
    assert_int_equal(events_n, 0);
    assert_int_equal(kp_reader_timeline(r, 1, event_keep, NULL, NULL), 0);
    assert_int_equal(events_n, 1);
    assert_int_equal(events[0].kind, KP_KIND_NVTX);
    assert_string_equal(events[0].name, "load");
    assert_string_equal(events[0].domain, "NCCL");
    assert_int_equal(events[0].end_ns - events[0].start_ns, 50);
    assert_int_equal(kp_reader_skipped(r), 1);
    kp_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_of_ns_keeps_durations_as_measured_while_it_drifts),
        cmocka_unit_test(a_clock_of_other_ticks_is_converted_at_both_ends),
        cmocka_unit_test(a_changed_clock_is_another_domain),
        cmocka_unit_test(samples_of_domains_that_fall_are_damage),
        cmocka_unit_test(samples_of_any_width_leave_one),
        cmocka_unit_test(a_sample_that_was_measured_badly_does_not_count),
        cmocka_unit_test(a_clock_that_was_set_bends_no_line_but_the_one_across_the_jump),
        cmocka_unit_test(without_a_sample_times_are_taken_for_wall_time),
        cmocka_unit_test(work_without_times_is_told_from_work_with_bad_ones),
        cmocka_unit_test(calls_come_behind_the_op_their_middle_lies_in),
        cmocka_unit_test(calls_of_many_chunks_come_in_order_of_time),
        cmocka_unit_test(calls_outside_the_window_are_left_out_and_bad_ones_counted),
        cmocka_unit_test(threads_are_known_by_chunks_and_by_records_of_their_names),
        cmocka_unit_test(a_window_takes_what_lies_in_chunks_of_the_next_but_not_of_one_long_after),
        cmocka_unit_test(a_window_takes_what_lies_in_chunks_of_one_that_warms_up),
        cmocka_unit_test(a_record_cut_short_is_skipped_and_counted),
        cmocka_unit_test(ranges_of_nvtx_come_with_their_domain_and_only_in_a_timeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

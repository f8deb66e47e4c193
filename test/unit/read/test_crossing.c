// SPDX-License-Identifier: Apache-2.0
/* test_crossing.c - calls of Python that ranges and steps cross nest with them in a timeline */
#include "collector/read/crossing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "collector/format/kp_python.h"
#include "collector/format/kp_symbol.h"
#include "collector/read/kp_read.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

static struct kp_crossings x;
static struct kp_rec recs[64]; /* only their addresses count */

static void takes(uint32_t rec, uint64_t start, uint64_t end, bool is_frame)
{
    const struct kp_crossing_part event = {&recs[rec], 0, 0, start, end, false};
    assert_int_equal(kp_crossings_take(&x, &event, is_frame), 0);
}

static void frame(uint32_t rec, uint64_t start, uint64_t end) { takes(rec, start, end, true); }
static void range(uint64_t start, uint64_t end) { takes(0, start, end, false); }

static void first_part_ends(uint32_t rec, uint64_t end)
{
    assert_int_equal(kp_crossings_end(&x, &recs[rec], UINT64_MAX), end);
}

static void part_is(uint32_t part, uint32_t rec, uint64_t start, uint64_t end)
{
    assert_true(part < x.parts_n);
    assert_ptr_equal(x.parts[part].rec, &recs[rec]);
    assert_int_equal(x.parts[part].start, start);
    assert_int_equal(x.parts[part].end, end);
}

static int begin(void **state)
{
    (void)state;
    kp_crossings_fini(&x);
    x.long_ticks = 1000; /* near: 0 */
    assert_int_equal(kp_crossings_thread(&x), 0);
    return 0;
}

static void calls_and_ranges_that_nest_stay_whole(void **state)
{
    (void)state;
    frame(1, 10, 1000);
    range(20, 900);
    frame(2, 30, 100);
    range(40, 90);
    frame(3, 100, 200); /* begins where the one before it ends */
    range(1000, 1100);
    kp_crossings_sort(&x);
    assert_int_equal(x.cuts_n + x.parts_n, 0);
}

static void the_calls_that_open_a_range_end_where_it_begins_and_those_that_close_it_where_it_ends(void **state)
{
    (void)state;
    frame(1, 10, 1000); /* the program */
    frame(2, 100, 200); /* __enter__ */
    frame(3, 120, 190);
    range(150, 500);
    frame(4, 195, 198); /* in __enter__, behind the range's begin */
    range(300, 310);    /* an op */
    frame(5, 450, 520); /* __exit__ */
    frame(6, 460, 515);
    frame(7, 516, 517);
    range(600, 700);
    kp_crossings_sort(&x);
    first_part_ends(1, UINT64_MAX);
    first_part_ends(2, 150);
    first_part_ends(3, 150);
    first_part_ends(4, UINT64_MAX);
    first_part_ends(5, 500);
    first_part_ends(6, 500);
    assert_int_equal(x.parts_n, 0);
}

static void a_call_in_which_a_step_ends_goes_on_in_the_next_one(void **state)
{
    (void)state;
    range(10, 500);     /* a step */
    frame(1, 100, 800); /* has the optimizer in it */
    frame(2, 400, 510);
    range(502, 1000); /* the next step */
    range(600, 650);  /* an op behind the optimizer */
    range(900, 910);
    kp_crossings_sort(&x);
    first_part_ends(1, 500);
    first_part_ends(2, 500);
    assert_int_equal(x.parts_n, 1);
    part_is(0, 1, 503, 800);
}

static void a_call_of_many_steps_is_around_those_that_follow(void **state)
{
    (void)state;
    range(10, 500);
    frame(1, 100, 3000); /* an epoch */
    range(502, 1000);
    range(1002, 1500);
    kp_crossings_sort(&x);
    first_part_ends(1, 500);
    assert_int_equal(x.parts_n, 1);
    part_is(0, 1, 501, 3000);
}

static void what_is_left_of_a_call_is_a_part_if_it_has_many_calls_or_lasts_long(void **state)
{
    (void)state;
    frame(1, 10, 700);
    range(50, 5000);
    for (uint32_t i = 0; i < 6; i++) frame(2 + i, 100 + i * 20, 110 + i * 20);
    frame(20, 1000, 3000);
    range(1100, 4000);
    frame(21, 1500, 1600);
    kp_crossings_sort(&x);
    first_part_ends(1, 50);
    first_part_ends(20, 1100);
    assert_int_equal(x.parts_n, 2);
    part_is(0, 1, 180, 700); /* from its fifth call on */
    part_is(1, 20, 1101, 3000);
}

/* A handler waits for a lock, and another thread ends the step meanwhile: nothing begins in the rest of the wait. */
static void what_is_left_of_a_long_wait_is_a_part_though_nothing_runs_in_it(void **state)
{
    (void)state;
    range(10, 500);      /* a step */
    frame(1, 100, 5000); /* the request */
    frame(2, 110, 4000); /* acquires the lock */
    frame(3, 4100, 4200);
    assert_int_equal(kp_crossings_thread(&x), 0);
    kp_crossings_sort(&x);
    first_part_ends(1, 500);
    first_part_ends(2, 500);
    assert_int_equal(x.parts_n, 2);
    part_is(0, 1, 501, 5000);
    part_is(1, 2, 501, 4000);
}

static void a_long_wait_that_a_thread_ends_with_is_shown_and_cut_at_the_ends_of_ranges(void **state)
{
    (void)state;
    range(10, 4000);
    range(20, 500);
    frame(1, 100, 8000);
    assert_int_equal(kp_crossings_thread(&x), 0);
    kp_crossings_sort(&x);
    first_part_ends(1, 500);
    assert_int_equal(x.parts_n, 2);
    part_is(0, 1, 501, 4000);
    part_is(1, 1, 4001, 8000);
}

static void a_short_rest_in_which_nothing_begins_stays_hidden(void **state)
{
    (void)state;
    range(10, 500);
    frame(1, 100, 1400);
    assert_int_equal(kp_crossings_thread(&x), 0);
    kp_crossings_sort(&x);
    first_part_ends(1, 500);
    assert_int_equal(x.parts_n, 0);
}

static void calls_that_were_open_as_the_window_began_are_in_its_first_step(void **state)
{
    (void)state;
    frame(1, 10, 3000); /* the program */
    frame(2, 10, 400);  /* the optimizer */
    frame(3, 10, 300);
    range(10, 2000); /* the step */
    frame(4, 100, 200);
    range(1999, 2500);
    kp_crossings_sort(&x);
    first_part_ends(1, UINT64_MAX);
    first_part_ends(2, 0);
    assert_int_equal(x.parts_n, 2);
    part_is(0, 2, 11, 400);
    part_is(1, 3, 11, 300);
    assert_true(x.parts[0].is_first && x.parts[1].is_first);
}

/* The calls that stood in the range itself may be open still. */
static void a_part_begins_in_no_call_that_stands_in_the_range(void **state)
{
    (void)state;
    frame(1, 10, 700);
    range(50, 5000);
    frame(2, 100, 200);
    range(110, 120); /* an op in the call: the part around both would cross the call */
    range(300, 310);
    kp_crossings_sort(&x);
    assert_int_equal(x.parts_n, 1);
    part_is(0, 1, 300, 700);
}

/* ---- the whole timeline ---- */

enum { MOST = 32 };
static struct kp_event all[MOST];
static uint32_t all_n;

static int keep(void *context, const struct kp_event *e)
{
    (void)context;
    assert_true(all_n < MOST && (!all_n || e->start_ns >= all[all_n - 1].start_ns));
    all[all_n++] = *e;
    return 0;
}

static void call_put(struct test_spool *s, uint32_t chunk, uint64_t start, uint64_t ticks)
{
    struct kp_rec_pycall rec = {.head = {.kind = KP_KIND_PYCALL, .size = sizeof rec}, .start = start, .ticks = ticks};
    assert_true(test_spool_put(s, chunk, &rec, sizeof rec));
}

static void op_put(struct test_spool *s, uint32_t chunk, uint64_t start, uint64_t ticks)
{
    test_spool_op(s, chunk, &(struct test_op){.start = start, .ticks = ticks, .seq = -1});
}

static bool do_overlap(const struct kp_event *a, const struct kp_event *b)
{
    return a->start_ns <= b->start_ns && b->start_ns <= a->end_ns && b->end_ns > a->end_ns;
}

/* Makes a thread of two ranges, opened and closed inside calls, and reads it. */
static void timeline_read(const char *with_stack)
{
    struct test_spool s;
    struct kp_reader *r;
    char path[512], why[256];
    test_spool_init(&s);
    test_spool_text(&s, with_stack);
    const uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 2000000, 1000);
    test_spool_clock(&s, meta, 9000, 2008000, 9000);
    test_spool_cycle(&s, meta, 1, 1000, 8000, 0);
    const uint32_t a = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    call_put(&s, a, 1100, 6000);
    call_put(&s, a, 1200, 800);
    op_put(&s, a, 1500, 2500);
    call_put(&s, a, 1550, 10); /* in what is left of the second call, as what follows */
    const struct kp_rec_symbol symbol = {
        .head = {.kind = KP_KIND_SYMBOL, .size = sizeof symbol}, .start = 1590, .ticks = 130};
    assert_true(test_spool_put(&s, a, &symbol, sizeof symbol));
    op_put(&s, a, 1600, 100);
    call_put(&s, a, 3500, 700);
    op_put(&s, a, 4100, 50);
    snprintf(path, sizeof path, "%s/crossing.kprof", kp_test_tmpdir());
    test_spool_save(&s, path, 0);
    assert_int_equal(test_reader_open(&r, path, why, sizeof why), 0);
    all_n = 0;
    assert_int_equal(kp_reader_timeline(r, 1, keep, NULL, NULL), 0);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void all_events_of_a_timeline_with_calls_nest(void **state)
{
    uint32_t further = 0;
    (void)state;
    timeline_read("KPROF_WITH_STACK=1,native\n");
    assert_int_equal(all_n, 10);
    for (uint32_t i = 0; i < all_n; i++) {
        further += all[i].kind == KP_KIND_PYCALL && all[i].flags & KP_PY_FURTHER;
        for (uint32_t k = i + 1; k < all_n; k++) assert_false(do_overlap(&all[i], &all[k]));
    }
    assert_int_equal(further, 2);
    assert_int_equal(all[1].call_end_ns - all[1].start_ns, 800); /* the call's own end, which is its further part's */
    assert_true(all[1].end_ns < all[1].call_end_ns);
}

static void without_calls_nothing_is_looked_for(void **state)
{
    (void)state;
    timeline_read("KPROF_WITH_STACK=ops\n");
    assert_int_equal(all_n, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(calls_and_ranges_that_nest_stay_whole, begin),
        cmocka_unit_test_setup(the_calls_that_open_a_range_end_where_it_begins_and_those_that_close_it_where_it_ends,
                               begin),
        cmocka_unit_test_setup(a_call_in_which_a_step_ends_goes_on_in_the_next_one, begin),
        cmocka_unit_test_setup(a_call_of_many_steps_is_around_those_that_follow, begin),
        cmocka_unit_test_setup(what_is_left_of_a_call_is_a_part_if_it_has_many_calls_or_lasts_long, begin),
        cmocka_unit_test_setup(what_is_left_of_a_long_wait_is_a_part_though_nothing_runs_in_it, begin),
        cmocka_unit_test_setup(a_long_wait_that_a_thread_ends_with_is_shown_and_cut_at_the_ends_of_ranges, begin),
        cmocka_unit_test_setup(a_short_rest_in_which_nothing_begins_stays_hidden, begin),
        cmocka_unit_test_setup(calls_that_were_open_as_the_window_began_are_in_its_first_step, begin),
        cmocka_unit_test_setup(a_part_begins_in_no_call_that_stands_in_the_range, begin),
        cmocka_unit_test_setup(all_events_of_a_timeline_with_calls_nest, begin),
        cmocka_unit_test_setup(without_calls_nothing_is_looked_for, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_heapsites.c - blocks by site against a plain model: live, the peak and what was live then, lost and restored
 * blocks */
#include "collector/base/sys/kp_fail.h"
#include "collector/format/kp_heap.h"
#include "export/write/heap/allocations.h"

#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

enum { PLACES = 3000, SITES = 200, MOVES = 300000 };

static struct kp_sites s;
static struct kp_scratch scratch;

static int taken(uint64_t address, uint64_t bytes, uint32_t stack, uint64_t now)
{
    return kp_sites_take(
        &s,
        &(struct kp_heap_event){
            .address = address, .bytes = bytes, .stack = stack, .start_ns = now, .thread_no = 1, .taken = 1},
        stack);
}

static int given(uint64_t address, uint32_t flags, uint32_t thread_no)
{
    return kp_sites_take(
        &s,
        &(struct kp_heap_event){
            .address = address, .flags = (uint8_t)(KP_HEAP_FREE | flags), .thread_no = thread_no, .given = 1},
        0);
}

static int begin(void **state)
{
    (void)state;
    memset(&s, 0, sizeof s);
    kp_scratch_init(&scratch, kp_test_tmpdir(), 0);
    return kp_sites_open(&s, &scratch);
}

static int end(void **state)
{
    (void)state;
    kp_sites_close(&s);
    kp_scratch_fini(&scratch);
    return 0;
}

static const struct kp_site *site(uint32_t stack)
{
    for (uint32_t i = 0; i < s.n; i++)
        if (s.of[i].stack == stack) return &s.of[i];
    return NULL;
}

static void all_is_as_in_plain_arrays(void **state)
{
    static struct {
        uint64_t bytes;
        uint32_t stack;
    } model[PLACES];
    static uint64_t live[SITES + 1], at_peak[SITES + 1], takes[SITES + 1];
    uint64_t total = 0, peak = 0, blocks = 0;
    (void)state;
    srand(11);
    for (int i = 0; i < MOVES; i++) {
        const int at = rand() % PLACES;
        const uint64_t address = 0x7f0000000000u + (uint64_t)at * 16;
        if (model[at].bytes) {
            assert_int_equal(given(address, 0, 1), 0);
            live[model[at].stack] -= model[at].bytes;
            total -= model[at].bytes;
            blocks--;
            model[at].bytes = 0;
            continue;
        }
        model[at].bytes = 1 + (uint64_t)rand() % 100000;
        model[at].stack = 1 + (uint32_t)rand() % SITES;
        assert_int_equal(taken(address, model[at].bytes, model[at].stack, (uint64_t)i), 0);
        takes[model[at].stack]++;
        live[model[at].stack] += model[at].bytes;
        total += model[at].bytes;
        blocks++;
        if (total <= peak) continue;
        peak = total;
        memcpy(at_peak, live, sizeof live);
    }
    kp_sites_settle(&s);
    assert_int_equal(s.live_bytes, total);
    assert_int_equal(s.live_blocks, blocks);
    assert_int_equal(s.peak_bytes, peak);
    for (uint32_t i = 1; i <= SITES; i++) {
        assert_int_equal(site(i)->live_bytes, live[i]);
        assert_int_equal(site(i)->peak_bytes, at_peak[i]);
        assert_int_equal(site(i)->taken, takes[i]);
    }
}

static void a_block_nobody_saw_taken_is_counted_apart(void **state)
{
    (void)state;
    assert_int_equal(given(0x1000, 0, 1), 0);
    assert_int_equal(given(0, 0, 1), 0);
    assert_int_equal(s.unknown, 2);
    assert_int_equal(s.live_blocks, 0);
}

static void a_free_that_was_lost_is_made_up_for_when_the_block_is_taken_again(void **state)
{
    (void)state;
    assert_int_equal(taken(0x1000, 100, 1, 1), 0);
    assert_int_equal(taken(0x1000, 30, 2, 2), 0);
    assert_int_equal(s.live_bytes, 30);
    assert_int_equal(site(1)->live_blocks, 0);
    assert_int_equal(site(2)->live_bytes, 30);
}

static void a_block_whose_realloc_failed_is_still_there(void **state)
{
    struct kp_heap_event back = {
        .address = 0x1000, .bytes = 77, .flags = KP_HEAP_RESTORED | KP_HEAP_REALLOC, .thread_no = 3};
    (void)state;
    assert_int_equal(taken(0x1000, 100, 1, 1), 0);
    assert_int_equal(given(0x1000, KP_HEAP_REALLOC, 3), 0);
    assert_int_equal(s.live_bytes, 0);
    back.thread_no = 4; /* not this thread's */
    assert_int_equal(kp_sites_take(&s, &back, 0), 0);
    assert_int_equal(s.live_bytes, 0);
    back.thread_no = 3;
    assert_int_equal(kp_sites_take(&s, &back, 0), 0);
    assert_int_equal(s.live_bytes, 100);
    assert_int_equal(site(1)->live_blocks, 1);
    assert_int_equal(site(1)->taken, 1);
}

static void a_call_tells_the_marks_of_what_came_and_went(void **state)
{
    (void)state;
    assert_int_equal(taken(0x1000, 100, 7, 1), 0); /* its mark is its stack */
    assert_int_equal(s.came, 7);
    assert_int_equal(s.gone, 0);
    assert_int_equal(taken(0x1000, 30, 8, 2), 0); /* the free was lost */
    assert_int_equal(s.came, 8);
    assert_int_equal(s.gone, 7);
    assert_int_equal(given(0x1000, 0, 1), 0);
    assert_int_equal(s.came, 0);
    assert_int_equal(s.gone, 8);
    assert_int_equal(given(0x1000, 0, 1), 0);
    assert_int_equal(s.gone, 0);
}

static void the_largest_come_once_each_by_three_orders_in_turn(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 5; i++) assert_int_equal(taken(0x1000 * i, 10 * i, 1, i), 0); /* most allocations */
    assert_int_equal(taken(0x10000, 5000, 2, 6), 0);                                        /* most at the peak */
    assert_int_equal(given(0x10000, 0, 1), 0);
    assert_int_equal(taken(0x20000, 400, 3, 7), 0); /* most left */
    kp_sites_settle(&s);
    assert_int_equal(kp_sites_largest(&s, 0)->stack, 3);
    assert_int_equal(kp_sites_largest(&s, 1)->stack, 2);
    assert_int_equal(kp_sites_largest(&s, 2)->stack, 1);
    assert_null(kp_sites_largest(&s, 3));
}

/* Decision 017: what grows with the window lies in the scratch's file, here in several of its segments. */
static void many_live_blocks_lie_in_the_scratch(void **state)
{
    enum { MANY = 200000 };
    (void)state;
    for (uint64_t i = 1; i <= MANY; i++) assert_int_equal(taken(i * 16, i, 1 + i % 3, i), 0);
    assert_int_equal(s.live_blocks, MANY);
    assert_true(scratch.n >= 2 && !scratch.anonymous && scratch.fd >= 0);
    for (uint64_t i = 1; i <= MANY; i++) assert_int_equal(given(i * 16, 0, 2), 0);
    assert_int_equal(s.live_bytes, 0);
    assert_int_equal(s.unknown, 0);
    assert_int_equal(s.used, 0);
}

/* Without a file the table stops growing: every block is counted, and none of the others is lost by it. */
static void without_room_blocks_are_counted_all_the_same(void **state)
{
    enum { MANY = 1500000 };
    (void)state;
    kp_fail_set("fallocate:1+");
    for (uint64_t i = 0; i < MANY; i++) assert_int_equal(taken(0x7f0000000000u + i * 16, 8, 1, i), 0);
    kp_fail_set(NULL);
    assert_int_equal(site(1)->taken, MANY);
    assert_true(s.unkept > 0 && s.live_blocks > 300000);
    assert_int_equal(s.live_blocks + s.unkept, MANY);
    for (uint64_t i = 0; i < MANY; i++) assert_int_equal(given(0x7f0000000000u + i * 16, 0, 1), 0);
    assert_int_equal(s.live_blocks, 0);
    assert_int_equal(s.unknown, 0);
    assert_int_equal(given(0x1000, 0, 1), 0); /* of before */
    assert_int_equal(s.unknown, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_as_in_plain_arrays, begin, end),
        cmocka_unit_test_setup_teardown(a_block_nobody_saw_taken_is_counted_apart, begin, end),
        cmocka_unit_test_setup_teardown(a_free_that_was_lost_is_made_up_for_when_the_block_is_taken_again, begin, end),
        cmocka_unit_test_setup_teardown(a_block_whose_realloc_failed_is_still_there, begin, end),
        cmocka_unit_test_setup_teardown(a_call_tells_the_marks_of_what_came_and_went, begin, end),
        cmocka_unit_test_setup_teardown(the_largest_come_once_each_by_three_orders_in_turn, begin, end),
        cmocka_unit_test_setup_teardown(many_live_blocks_lie_in_the_scratch, begin, end),
        cmocka_unit_test_setup_teardown(without_room_blocks_are_counted_all_the_same, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

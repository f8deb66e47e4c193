// SPDX-License-Identifier: Apache-2.0
/* test_named_calls.c - records of calls of functions by name (kind 26): given in a timeline, ended, refused when
 * damaged */
#include "collector/read/kp_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/format/kp_symbol.h"
#include "test/support/reader_open.h"
#include "test/support/spool.h"
#include "test/support/support.h"

enum { MOST = 64, BEGIN = 1000, END = 9000 }; /* ticks are ns since the Unix epoch */

static struct test_spool s;
static uint32_t meta, one, two;
static struct kp_reader *r;
static struct kp_event seen[MOST];
static char names[MOST][64], objects[MOST][64];
static uint32_t seen_n;
static uint64_t given, last_start;
static bool is_damaged; /* starts may go back */

static void begin(uint64_t window_end)
{
    test_spool_init(&s);
    test_spool_head(&s)->clock_kind = KP_CLOCK_MONO;
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, BEGIN, BEGIN, BEGIN);
    test_spool_cycle(&s, meta, 1, BEGIN, window_end, 0);
    one = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "one");
    two = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 20, 2, "two");
}

static void put(uint32_t chunk, uint32_t name, uint64_t start, uint64_t ticks)
{
    struct kp_rec_symbol rec = {
        .head = {.kind = KP_KIND_SYMBOL, .size = sizeof rec, .name = name}, .start = start, .ticks = ticks};
    assert_true(test_spool_put(&s, chunk, &rec, sizeof rec));
}

static int see(void *context, const struct kp_event *e)
{
    (void)context;
    assert_true(e->start_ns <= e->end_ns && (is_damaged || e->start_ns >= last_start));
    last_start = e->start_ns;
    given++;
    if (seen_n == MOST) return 0;
    snprintf(names[seen_n], sizeof *names, "%s", e->name);
    snprintf(objects[seen_n], sizeof *objects, "%s", e->overload);
    seen[seen_n] = *e;
    seen[seen_n].name = names[seen_n], seen[seen_n].overload = objects[seen_n];
    seen_n++;
    return 0;
}

static void open_spool(void)
{
    static char path[512], why[256];
    snprintf(path, sizeof path, "%s/n.kprof", kp_test_tmpdir());
    test_spool_save(&s, path, 0);
    test_spool_free(&s);
    if (test_reader_open(&r, path, why, sizeof why)) fail_msg("%s", why);
    seen_n = 0, given = 0, last_start = 0;
}

static void read_all(void)
{
    open_spool();
    assert_int_equal(kp_reader_timeline(r, 1, see, NULL, NULL), 0);
}

static int thread_see(void *context, uint32_t tid, uint32_t thread_no, const char *name)
{
    (void)thread_no, (void)name;
    *(uint64_t *)context = *(uint64_t *)context * 100 + tid;
    return 0;
}

static void a_call_comes_back_as_it_was_put(void **state)
{
    (void)state;
    begin(END);
    const uint32_t id = test_spool_name(&s, "SSL_read\0libssl.so.3", 20);
    put(one, id, 2000, 500);
    read_all();
    assert_int_equal(given, 1);
    assert_int_equal(seen[0].kind, KP_KIND_SYMBOL);
    assert_string_equal(names[0], "SSL_read");
    assert_string_equal(objects[0], "libssl.so.3");
    assert_true(seen[0].start_ns == 2000 && seen[0].end_ns == 2500);
    assert_true(seen[0].tid == 10 && seen[0].thread_no == 1 && seen[0].flags == 0 && seen[0].seq == -1 &&
                seen[0].scope == 0);
    assert_true(!seen[0].inputs && !seen[0].stack && !seen[0].domain && !seen[0].correlation);
    assert_int_equal(kp_reader_skipped(r), 0);
    kp_reader_close(r);
}

static void calls_of_two_threads_come_by_their_start(void **state)
{
    (void)state;
    begin(END);
    const uint32_t a = test_spool_name(&s, "a\0x", 3), b = test_spool_name(&s, "b\0x", 3);
    put(one, a, 2000, 900), put(one, a, 2200, 100), put(one, a, 3000, 0);
    put(two, b, 2100, 2000), put(two, b, 2150, 10), put(two, b, 2900, 10);
    test_spool_op(&s, one, &(struct test_op){.name = a, .start = 3100, .ticks = 5, .seq = -1});
    read_all();
    static const char expected[] = "abbabaa";
    assert_int_equal(given, 7);
    for (uint32_t i = 0; i < 7; i++)
        assert_true(names[i][0] == expected[i] && seen[i].tid == (expected[i] == 'a' ? 10 : 20));
    assert_int_equal(seen[6].kind, KP_KIND_OP);
    kp_reader_close(r);
}

/* Who asks for ops alone does not get them: a viewer of ops that knows nothing of them goes on as before. */
static void they_are_in_a_timeline_only(void **state)
{
    uint64_t threads = 0;
    (void)state;
    begin(END);
    put(one, test_spool_name(&s, "f\0x", 3), 2000, 500);
    put(two, test_spool_name(&s, "f\0x", 3), END, 500); /* begins behind the window: its thread is not shown */
    open_spool();
    assert_int_equal(kp_reader_events(r, 1, see, NULL), 0);
    assert_int_equal(given, 0);
    assert_int_equal(kp_reader_skipped(r), 0);
    assert_int_equal(kp_reader_threads(r, 1, thread_see, &threads), 0);
    assert_int_equal(threads, 10);
    kp_reader_close(r);
}

static void what_has_no_end_ends_with_the_window_the_inner_one_first(void **state)
{
    (void)state;
    begin(END);
    const uint32_t id = test_spool_name(&s, "f\0x", 3);
    put(one, id, 2000, 0), put(one, id, 3000, 0), put(one, id, 4000, END), put(one, id, END - 1, 1);
    read_all();
    assert_int_equal(given, 4);
    assert_int_equal(seen[0].flags, KP_OP_UNFINISHED);
    assert_int_equal(seen[1].flags, KP_OP_UNFINISHED);
    assert_int_equal(seen[2].flags, 0); /* its end came behind the window's */
    assert_int_equal(seen[3].end_ns, END);
    assert_true(seen[0].end_ns > seen[1].end_ns && seen[1].end_ns > seen[2].end_ns && seen[2].end_ns >= END);
    kp_reader_close(r);
}

static void an_end_before_the_beginning_is_none(void **state)
{
    (void)state;
    begin(END);
    put(one, test_spool_name(&s, "f\0x", 3), 2000, UINT64_MAX - 1999); /* at 0 */
    put(one, test_spool_name(&s, "f\0x", 3), 3000, UINT64_MAX);        /* one before */
    read_all();
    assert_int_equal(given, 2);
    assert_true(seen[0].end_ns >= END && seen[1].end_ns >= END);
    kp_reader_close(r);
}

static void only_what_begins_in_the_window_is_given(void **state)
{
    (void)state;
    begin(END);
    const uint32_t id = test_spool_name(&s, "f\0x", 3);
    put(one, id, BEGIN - 1, 5000), put(one, id, BEGIN, 10), put(one, id, END - 1, 10), put(one, id, END, 10),
        put(one, id, END + 5000, 0);
    read_all();
    assert_int_equal(given, 2);
    assert_true(seen[0].start_ns == BEGIN && seen[1].start_ns == END - 1);
    kp_reader_close(r);
}

/* A program that was killed never closed its window: it ends with the last call that ended. */
static void a_window_nobody_closed_ends_with_its_last_call(void **state)
{
    struct kp_cycle c;
    (void)state;
    begin(0);
    const uint32_t id = test_spool_name(&s, "f\0x", 3);
    put(one, id, 2000, 0), put(one, id, 2100, 400), put(two, id, 2200, 1300);
    read_all();
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_false(c.complete);
    assert_int_equal(c.end_ns, 3501);
    assert_int_equal(given, 3);
    assert_int_equal(seen[0].flags, KP_OP_UNFINISHED);
    assert_true(seen[0].end_ns >= 3501 && seen[0].end_ns <= 3501 + 256);
    kp_reader_close(r);
}

static void names_that_are_not_there_are_lost(void **state)
{
    (void)state;
    begin(END);
    put(one, 0, 2000, 10), put(one, 77, 2100, 10), put(one, UINT32_MAX, 2200, 10);
    read_all();
    assert_int_equal(given, 3);
    for (int i = 0; i < 3; i++) assert_string_equal(names[i], "name lost"), assert_string_equal(objects[i], "");
    kp_reader_close(r);
}

/* ---- damage ---- */

static void sizes_that_cannot_be_are_counted(void **state)
{
    struct {
        struct kp_rec_symbol rec;
        uint64_t more;
    } longer = {.rec.head = {.kind = KP_KIND_SYMBOL, .size = sizeof longer}, .rec.start = 2000, .rec.ticks = 10};
    struct kp_rec_symbol rec = {.head = {.kind = KP_KIND_SYMBOL, .size = 16}, .start = 2100, .ticks = 10};
    (void)state;
    begin(END);
    assert_true(test_spool_put(&s, one, &longer, sizeof longer)); /* of a later version */
    assert_true(test_spool_put(&s, one, &rec, 16));               /* too short: no call */
    put(one, 0, 2200, 10);
    rec.head.size = KP_MAX_RECORD - 8;
    assert_true(test_spool_put(&s, two, &rec, sizeof rec)); /* beyond what was written: nothing behind it counts */
    read_all();
    assert_int_equal(given, 2);
    assert_true(seen[0].start_ns == 2000 && seen[0].end_ns == 2010 && seen[1].start_ns == 2200);
    assert_int_equal(kp_reader_skipped(r), 2);
    kp_reader_close(r);
}

static void whatever_the_bytes_are_the_walk_ends(void **state)
{
    (void)state;
    is_damaged = true;
    for (unsigned turn = 0; turn < 300; turn++) {
        begin(turn % 3 ? END : 0);
        const uint32_t id = test_spool_name(&s, "f\0x", 3);
        for (uint64_t i = 0; i < 40; i++) put(i % 2 ? one : two, id, BEGIN + 100 * i, 50 * i);
        srand(turn);
        for (int i = 0; i < 12; i++) {
            struct kp_chunk_head *c = test_spool_at(&s, i % 2 ? one : two);
            ((uint8_t *)(c + 1))[(size_t)rand() % (20 * sizeof(struct kp_rec_symbol))] = (uint8_t)rand();
        }
        open_spool();
        const int rc = kp_reader_timeline(r, 1, see, NULL, NULL);
        assert_true(rc == 0 && given <= 40);
        kp_reader_close(r);
    }
    is_damaged = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_comes_back_as_it_was_put),
        cmocka_unit_test(calls_of_two_threads_come_by_their_start),
        cmocka_unit_test(they_are_in_a_timeline_only),
        cmocka_unit_test(what_has_no_end_ends_with_the_window_the_inner_one_first),
        cmocka_unit_test(an_end_before_the_beginning_is_none),
        cmocka_unit_test(only_what_begins_in_the_window_is_given),
        cmocka_unit_test(a_window_nobody_closed_ends_with_its_last_call),
        cmocka_unit_test(names_that_are_not_there_are_lost),
        cmocka_unit_test(sizes_that_cannot_be_are_counted),
        cmocka_unit_test(whatever_the_bytes_are_the_walk_ends),
    };
    return cmocka_run_group_tests_name("calls by name, read", tests, NULL, NULL);
}

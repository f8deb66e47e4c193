// SPDX-License-Identifier: Apache-2.0
/* test_reader.c - a spool, whole or torn, comes back as events in order */
#include "test/unit/read/reader_spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void a_training_run_comes_back_by_start_time(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    (void)state;
    test_spool_training(&s);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycles(r), 1);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_true(c.complete);
    assert_int_equal(c.steps, 3);
    assert_int_equal(c.end_ns - c.begin_ns, 3000);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 18);
    assert_int_equal(seen.steps, 3);
    assert_false(seen.backwards);
    assert_int_equal(strncmp(seen.names,
                             "ProfilerStep#1 ## forward \"x\" ## aten::linear aten::addmm "
                             "autograd::engine::evaluate_function: AddmmBackward0 AddmmBackward0 ",
                             100),
                     0);
    assert_int_equal(kp_reader_skipped(r), 0);
    assert_string_equal(kp_reader_text(r, "env.RANK"), "3");
    assert_null(kp_reader_text(r, "env.RAN"));
    assert_int_equal(kp_reader_events(r, 2, see, &seen), -ENOENT);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void note_put(struct test_spool *s, uint32_t meta, const char *line)
{
    struct {
        struct kp_rec head;
        char text[56];
    } note = {.head = {.kind = KP_KIND_NOTE, .size = sizeof note}};
    memset(note.text, '\n', sizeof note.text);
    memcpy(note.text, line, strlen(line));
    test_spool_put(s, meta, &note, sizeof note);
}

static void notes_follow_the_lines_of_the_header(void **state)
{
    struct test_spool s;
    const char *line = NULL;
    int lines = 0;
    (void)state;
    test_spool_init(&s);
    test_spool_text(&s, "a=1\nb=2\n");
    uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    note_put(&s, meta, "a=3");
    note_put(&s, meta, "cc=4");
    note_put(&s, meta, "");
    test_spool_put(&s, meta, &(struct kp_rec){.kind = KP_KIND_NOTE, .size = sizeof(struct kp_rec)},
                   sizeof(struct kp_rec));
    assert_int_equal(reopen(&s, 0), 0);
    assert_string_equal(kp_reader_text(r, "a"), "3");
    assert_string_equal(kp_reader_text(r, "b"), "2");
    assert_string_equal(kp_reader_text(r, "cc"), "4");
    while ((line = kp_reader_line(r, line))) lines++;
    assert_int_equal(lines, 3); /* one a key */
    kp_reader_close(r);
    for (int i = 0; i < 900; i++)
        note_put(&s, meta, "long=a value of some length, again and again"); /* the text grows */
    assert_int_equal(reopen(&s, 0), 0);
    assert_string_equal(kp_reader_text(r, "long"), "a value of some length, again and again");
    kp_reader_close(r);
    test_spool_free(&s);
}

/* As many notes as fit into the chunks, each of a key of its own or of few: nothing is looked at again for each of
 * them. */
static void many_notes_take_no_more_time_than_their_sort(void **state)
{
    enum { CHUNKS = 96, TURNS = 2 };
    (void)state;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        struct test_spool s;
        const char *line = NULL;
        char text[40];
        uint32_t n = 0, lines = 0;
        test_spool_init(&s);
        test_spool_text(&s, "k000007=header\nother=1\nno key\nother=2\n");
        for (uint32_t c = 0; c < CHUNKS; c++)
            for (uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
                 test_spool_at(&s, meta)->used + 64 <= KP_CHUNK_BYTES; n++) {
                snprintf(text, sizeof text, "k%06u=%u", turn ? n % 100 : n, n);
                note_put(&s, meta, text);
            }
        const clock_t begin = clock();
        assert_int_equal(reopen(&s, 0), 0);
        assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 20); /* each against each took minutes */
        while ((line = kp_reader_line(r, line))) lines++;
        assert_int_equal(lines, (turn ? 100 : n) + 3);
        snprintf(text, sizeof text, "%u", turn ? (n - 8) / 100 * 100 + 7 : 7);
        assert_string_equal(kp_reader_text(r, "k000007"), text);
        assert_string_equal(kp_reader_text(r, "other"), "2");
        assert_null(kp_reader_text(r, "no key"));
        assert_null(kp_reader_text(r, "k"));
        kp_reader_close(r);
        test_spool_free(&s);
    }
}

static void numbers_of_cycles_that_fall_are_damage_and_any_cycle_can_be_closed(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    (void)state;
    test_spool_init(&s);
    uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    for (uint32_t number = 1; number <= 300; number++) test_spool_cycle(&s, meta, number + 1000, number * 10, 0, 0);
    for (uint32_t number = 300; number; number--) test_spool_cycle(&s, meta, number, number * 10, 0, 0);
    test_spool_cycle(&s, meta, 1001, 10, 15, 3);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycles(r), 300);
    assert_int_equal(kp_reader_skipped(r), 300);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_true(c.number == 1001 && c.complete && c.steps == 3);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void what_an_op_carries_comes_back(void **state)
{
    static const uint8_t data[] = {5, 1};
    struct test_spool s;
    uint32_t meta, a, id;
    (void)state;
    test_spool_init(&s);
    id = test_spool_name(&s, "x\0over", 6);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 2000000, 1000);
    test_spool_clock(&s, meta, 2000, 2001000, 2000);
    test_spool_cycle(&s, meta, 1, 1000, 5000, 0);
    a = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    test_spool_op(&s, a,
                  &(struct test_op){.name = id,
                                    .start = 1100,
                                    .ticks = 200,
                                    .seq = 7,
                                    .fwd_tid = 4,
                                    .handle = 9,
                                    .rt_tid = 6,
                                    .inputs = data,
                                    .inputs_bytes = sizeof data,
                                    .inputs_count = 1});
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 1);
    assert_non_null(seen.last.inputs);
    assert_int_equal(seen.last.inputs_count, 1);
    assert_memory_equal(seen.last.inputs, data, 2);
    assert_int_equal(seen.last.tid, 10);
    assert_int_equal(seen.last.seq, 7);
    assert_int_equal(seen.last.fwd_tid, 4);
    assert_int_equal(seen.last.handle, 9);
    assert_int_equal(seen.last.rt_tid, 6);
    assert_string_equal(seen.last.overload, "over");
    assert_int_equal(seen.last.start_ns, 2000100);
    assert_int_equal(seen.last.end_ns, 2000300);
    assert_false(seen.last.flags & KP_OP_UNFINISHED);
    kp_reader_close(r);
    test_spool_op(&s, a, &(struct test_op){.name = id, .start = 1400, .seq = -1});
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_true(seen.last.flags & KP_OP_UNFINISHED);
    assert_null(seen.last.inputs);
    assert_int_equal(seen.last.end_ns, 2004000); /* the window's end */
    kp_reader_close(r);
    test_spool_free(&s);
}

static int see_evaluate(void *context, const struct kp_event *e)
{
    if (strncmp(e->name, "autograd::engine", 16) == 0) *(struct kp_event *)context = *e;
    return 0;
}

static void autograds_range_has_the_numbers_of_the_backward_op_inside(void **state)
{
    struct test_spool s;
    struct kp_event e;
    (void)state;
    test_spool_training(&s);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see_evaluate, &e), 0);
    assert_true(e.flags & KP_OP_SEQ_OF_CHILD);
    assert_int_equal(e.seq, 6);
    assert_int_equal(e.fwd_tid, 1);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void pieces_of_a_thread_are_sorted_and_chunks_change_hands(void **state)
{
    struct test_spool s;
    struct kp_rec_thread hand = {
        .head = {.kind = KP_KIND_THREAD, .size = sizeof hand}, .tid = 30, .thread_no = 3, .order = 9, .name = "third"};
    uint32_t meta, one, two, id[4];
    (void)state;
    test_spool_init(&s);
    for (uint32_t i = 0; i < 4; i++) id[i] = test_spool_name(&s, (const char *[]){"a", "b", "c", "d"}[i], 1);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 2000000, 1000);
    test_spool_clock(&s, meta, 2000, 2001000, 2000);
    test_spool_cycle(&s, meta, 1, 1000, (uint64_t)1 << 34, 0);
    two = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    one = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    test_spool_at(&s, one)->order = 1, test_spool_at(&s, two)->order = 2;
    test_spool_op(&s, one, &(struct test_op){.name = id[0], .start = 1100, .ticks = 10, .seq = -1});
    test_spool_op(&s, two, &(struct test_op){.name = id[2], .start = 1300, .ticks = 10, .seq = -1});
    test_spool_put(&s, one, &hand, sizeof hand);
    test_spool_op(&s, one, &(struct test_op){.name = id[1], .start = 1200, .ticks = 10, .seq = -1});
    test_spool_op(&s, one, &(struct test_op){.name = id[3], .start = 1400, .ticks = (uint64_t)1 << 33, .seq = -1});
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_string_equal(seen.names, "a b c d ");
    assert_int_equal(seen.last.tid, 30);
    assert_int_equal(seen.last.end_ns - seen.last.start_ns, (uint64_t)1 << 33);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void events_outside_the_window_are_not_shown(void **state)
{
    struct test_spool s;
    struct kp_rec_cycle *c;
    (void)state;
    test_spool_training(&s);
    /* the closing record is the last one of the META chunk */
    c = (void *)((uint8_t *)test_spool_at(&s, 2) + test_spool_at(&s, 2)->used - sizeof *c);
    c->begin = 3000, c->end = 4000;
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 6);
    kp_reader_close(r);
    test_spool_free(&s);
}

/* The window's end is stamped before the gate moves: an op may end between the two, inside one that stays open. */
static void no_op_outlasts_the_window_or_the_op_around_it(void **state)
{
    struct test_spool s;
    uint32_t meta, a;
    (void)state;
    test_spool_init(&s);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 2000000, 1000);
    test_spool_clock(&s, meta, 2000, 2001000, 2000);
    test_spool_cycle(&s, meta, 1, 1000, 5000, 0);
    a = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    test_spool_op(&s, a, &(struct test_op){.start = 4000, .seq = -1});
    test_spool_op(&s, a, &(struct test_op){.start = 4900, .ticks = 110, .seq = -1});
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.last.start_ns, 2003900);
    assert_int_equal(seen.last.end_ns, 2004000);
    assert_false(seen.last.flags & KP_OP_UNFINISHED);
    kp_reader_close(r);
    test_spool_free(&s);
}

static uint64_t last_end, cut_count;

static int ends_fall(void *context, const struct kp_event *e)
{
    (void)context;
    assert_true(e->end_ns >= 2004000 && (!last_end || e->end_ns < last_end));
    last_end = e->end_ns;
    cut_count++;
    return 0;
}

/* Ranges that touch are dropped by viewers that round. */
static void of_ops_that_outlast_the_window_each_ends_before_the_one_around_it(void **state)
{
    struct test_spool s;
    uint32_t meta, a;
    (void)state;
    test_spool_init(&s);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 2000000, 1000);
    test_spool_clock(&s, meta, 2000, 2001000, 2000);
    test_spool_cycle(&s, meta, 1, 1000, 5000, 0);
    a = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    for (uint64_t i = 0; i < 20; i++)
        test_spool_op(&s, a, &(struct test_op){.start = 4000 + i, .ticks = i % 2 ? 2000 : 0, .seq = -1});
    assert_int_equal(reopen(&s, 0), 0);
    last_end = cut_count = 0;
    assert_int_equal(kp_reader_timeline(r, 1, ends_fall, NULL, NULL), 0);
    assert_int_equal(cut_count, 20);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void a_cycle_without_its_closing_record_ends_with_its_last_event(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    (void)state;
    test_spool_training(&s);
    test_spool_at(&s, 2)->used -= sizeof(struct kp_rec_cycle) + sizeof(struct kp_rec_clock);
    test_spool_clock(&s, 2, 4000, 1790857026000003000u, 8000);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_false(c.complete);
    assert_int_equal(c.end_ns - c.begin_ns, 2401); /* step 3 ends at 4400 */
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 18);
    kp_reader_close(r);
    test_spool_free(&s);
}

/* The clock was still sampled a second before the end: what hung until then is shown as long as that. */
static void what_hung_when_the_process_was_killed_lasts_until_the_last_sign_of_life(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    uint32_t meta, a;
    (void)state;
    test_spool_init(&s);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 2000000, 1000);
    test_spool_cycle(&s, meta, 1, 1000, 0, 0);
    test_spool_clock(&s, meta, 9000, 2008000, 9000);
    a = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    test_spool_op(&s, a, &(struct test_op){.start = 1100, .ticks = 100, .seq = -1});
    test_spool_op(&s, a, &(struct test_op){.start = 2000, .seq = -1});
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_false(c.complete);
    assert_int_equal(c.end_ns, 2008000);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 2);
    assert_true(seen.last.flags & KP_OP_UNFINISHED);
    assert_int_equal(seen.last.start_ns, 2001000);
    assert_int_equal(seen.last.end_ns, 2008000);
    kp_reader_close(r);
    test_spool_free(&s);
}

/* 9 ms, of which an op begins each 0.5 ms from `busy` on, and then the last. */
static void ring_make(struct test_spool *s, const char *text, uint64_t busy, uint64_t last_start)
{
    uint32_t meta, a;
    test_spool_init(s);
    test_spool_text(s, text);
    meta = test_spool_chunk(s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(s, meta, 1000, 20000000, 1000);
    test_spool_cycle(s, meta, 1, 1000, 0, 0);
    test_spool_clock(s, meta, 9000000, 28999000, 9000000);
    a = test_spool_chunk(s, KP_CHUNK_DATA, 1, 10, 1, "a");
    const uint32_t open = test_spool_name(s, "open", 4), old = test_spool_name(s, "old", 3),
                   into = test_spool_name(s, "into", 4), last = test_spool_name(s, "last", 4),
                   on = test_spool_name(s, "on", 2);
    test_spool_op(s, a, &(struct test_op){.name = open, .start = 2000, .seq = -1});
    test_spool_op(s, a, &(struct test_op){.name = old, .start = 3000, .ticks = 100, .seq = -1});
    test_spool_op(s, a, &(struct test_op){.name = into, .start = 4000, .ticks = 7000000, .seq = -1});
    for (uint64_t at = busy; at < last_start; at += 500000)
        test_spool_op(s, a, &(struct test_op){.name = on, .start = at, .ticks = 50, .seq = -1});
    test_spool_op(s, a, &(struct test_op){.name = last, .start = last_start, .ticks = 50, .seq = -1});
}

/* What lasts into them begins with them, what ended before is not shown. */
static void a_ring_shows_its_last_time_and_the_ranges_that_it_begins_in(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    (void)state;
    ring_make(&s, "ring_ms=3\n", 5600000, 8800000);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_int_equal(c.end_ns, 28999000);
    assert_int_equal(c.begin_ns, 25999000);
    assert_true(c.last_part);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_string_equal(seen.names, "open into on on on on on on last ");
    assert_false(seen.backwards);
    assert_int_equal(seen.last.end_ns, 28799050);
    kp_reader_close(r);
    test_spool_free(&s);
}

/* The 3 ms are those in which an op began, or parts beside them; the silence behind is in the window as well. */
static void a_ring_does_not_count_time_in_which_nothing_was_recorded(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    (void)state;
    ring_make(&s, "ring_ms=3\n", 2100000, 4600000);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_int_equal(c.end_ns, 28999000);
    assert_in_range(c.begin_ns, 21600000, 22100000);
    assert_true(c.last_part);
    kp_reader_close(r);
    test_spool_free(&s);
    ring_make(&s, "ring_ms=6\n", 4100000, 4600000);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_false(c.last_part); /* nothing is left out */
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_string_equal(seen.names, "open old into on last ");
    kp_reader_close(r);
    test_spool_free(&s);
}

/* Chunks went earlier, so that it begins with the first op that is left. */
static void a_ring_that_was_short_of_room_begins_with_what_is_left(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    (void)state;
    ring_make(&s, "ring_ms=3\nring_short=1\n", 6100000, 8800000);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_int_equal(c.begin_ns, 26099000);
    assert_true(c.last_part);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_string_equal(seen.names, "open into on on on on on on last ");
    kp_reader_close(r);
    test_spool_free(&s);
}

static void a_ring_that_is_longer_than_the_run_has_all_of_it(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    (void)state;
    ring_make(&s, "ring_ms=3000\n", 8100000, 8800000);
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_false(c.last_part);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_string_equal(seen.names, "open old into on on last ");
    kp_reader_close(r);
    test_spool_free(&s);
}

static void each_window_has_the_wall_time_of_its_own_begin(void **state)
{
    struct test_spool s;
    struct kp_cycle c;
    uint32_t meta;
    (void)state;
    test_spool_init(&s);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_clock(&s, meta, 1000, 2000000, 1000);
    test_spool_cycle(&s, meta, 1, 1000, 5000, 0);
    test_spool_clock(&s, meta, 5000, 2004000, 5000);
    test_spool_cycle(&s, meta, 2, 7000, 9000, 0);
    test_spool_clock(&s, meta, 7001, 9006001, 7001); /* the clock was set by 7 ms between the two */
    test_spool_clock(&s, meta, 9000, 1008000, 9000); /* and again inside the second */
    for (uint32_t i = 1; i <= 2; i++)
        test_spool_op(&s, test_spool_chunk(&s, KP_CHUNK_DATA, i, 10, 1, "a"),
                      &(struct test_op){.start = i * 4000, .ticks = 100, .seq = -1});
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_cycle(r, 0, &c), 0);
    assert_int_equal(c.begin_ns, 2000000);
    assert_int_equal(c.end_ns, 2004000);
    assert_int_equal(kp_reader_cycle(r, 1, &c), 0);
    assert_int_equal(c.begin_ns, 9006000);
    assert_int_equal(c.end_ns, 9008000);
    assert_int_equal(kp_reader_events(r, 2, see, &seen), 0);
    assert_int_equal(seen.last.start_ns, 9007000);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.last.start_ns, 2003000);
    kp_reader_close(r);
    test_spool_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_run_comes_back_by_start_time),
        cmocka_unit_test(notes_follow_the_lines_of_the_header),
        cmocka_unit_test(numbers_of_cycles_that_fall_are_damage_and_any_cycle_can_be_closed),
        cmocka_unit_test(many_notes_take_no_more_time_than_their_sort),
        cmocka_unit_test(what_an_op_carries_comes_back),
        cmocka_unit_test(autograds_range_has_the_numbers_of_the_backward_op_inside),
        cmocka_unit_test(pieces_of_a_thread_are_sorted_and_chunks_change_hands),
        cmocka_unit_test(events_outside_the_window_are_not_shown),
        cmocka_unit_test(no_op_outlasts_the_window_or_the_op_around_it),
        cmocka_unit_test(of_ops_that_outlast_the_window_each_ends_before_the_one_around_it),
        cmocka_unit_test(a_cycle_without_its_closing_record_ends_with_its_last_event),
        cmocka_unit_test(what_hung_when_the_process_was_killed_lasts_until_the_last_sign_of_life),
        cmocka_unit_test(a_ring_shows_its_last_time_and_the_ranges_that_it_begins_in),
        cmocka_unit_test(a_ring_does_not_count_time_in_which_nothing_was_recorded),
        cmocka_unit_test(a_ring_that_was_short_of_room_begins_with_what_is_left),
        cmocka_unit_test(a_ring_that_is_longer_than_the_run_has_all_of_it),
        cmocka_unit_test(each_window_has_the_wall_time_of_its_own_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_reader.c - a spool, whole or torn, comes back as events in order */
#include "collector/read/kp_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/support/spool.h"
#include "test/support/support.h"

struct seen {
    char names[200000]; /* "name name ..." */
    uint64_t n, last_start, steps;
    bool backwards;
    struct kp_event last;
};

static int see(void *context, const struct kp_event *e)
{
    struct seen *s = context;
    if (e->start_ns < s->last_start || e->end_ns < e->start_ns) s->backwards = true;
    s->last_start = e->start_ns;
    if (strlen(s->names) + strlen(e->name) + 2 < sizeof s->names) strcat(strcat(s->names, e->name), " ");
    s->n++;
    s->steps += e->kind == KP_KIND_STEP;
    s->last = *e;
    return 0;
}

/* Reads every byte an event claims to have. */
static int see_inputs(void *context, const struct kp_event *e)
{
    volatile uint8_t sum = 0;
    (void)context;
    for (uint32_t i = 0; e->inputs && i < e->inputs_bytes; i++) sum = (uint8_t)(sum + e->inputs[i]);
    return 0;
}

static struct seen seen;
static struct kp_reader *r;
static char why[256];

static const char *path(void)
{
    static char p[512];
    snprintf(p, sizeof p, "%s/r.kprof", kp_test_tmpdir());
    return p;
}

static int reopen(const struct test_spool *s, size_t bytes)
{
    test_spool_save(s, path(), bytes);
    memset(&seen, 0, sizeof seen);
    return kp_reader_open(&r, path(), why, sizeof why);
}

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

/* The writer makes room behind what it has counted, and cuts it off again when the disk is full: never look there. */
static void room_that_is_not_counted_yet_is_not_touched(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_head(&s)->chunks = s.chunks;
    test_spool_save(&s, path(), 0);
    memset(&seen, 0, sizeof seen);
    assert_int_equal(truncate(path(), (off_t)(s.chunks + 64) * KP_CHUNK_BYTES), 0);
    assert_int_equal(kp_reader_open(&r, path(), why, sizeof why), 0);
    assert_int_equal(truncate(path(), (off_t)s.chunks * KP_CHUNK_BYTES), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 18);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void chunks_that_a_damaged_count_leaves_out_are_found(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    for (uint32_t count = 0; count <= s.chunks + 5; count++) {
        test_spool_head(&s)->chunks = count;
        assert_int_equal(reopen(&s, 0), 0);
        assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
        assert_int_equal(seen.n, 18);
        kp_reader_close(r);
    }
    test_spool_free(&s);
}

static void *scribble(void *arg)
{
    volatile uint8_t *last = arg;
    for (uint32_t i = 0; i < 40000000 && last[0]; i++) { /* sizes and flags of the last records of the file */
        volatile uint8_t *rec = last + KP_CHUNK_BYTES - 64 + i % 2 * 32;
        rec[1] = i & 4 ? 7 : 0;
        rec[2] = i & 8 ? 32 : 64;
    }
    return NULL;
}

/* kprof export on a running process: chunks are taken back and written anew under the reader. */
static void a_file_that_changes_under_the_reader_harms_nobody(void **state)
{
    struct test_spool s;
    pthread_t writer;
    uint32_t meta, a;
    size_t bytes;
    (void)state;
    test_spool_init(&s);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_cycle(&s, meta, 1, 1000, 500000, 0);
    a = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
    for (uint64_t at = 2000; test_spool_op(&s, a, &(struct test_op){.start = at, .ticks = 1, .seq = -1}); at += 10) {}
    assert_int_equal(reopen(&s, 0), 0);
    bytes = (size_t)s.chunks * KP_CHUNK_BYTES;
    int fd = open(path(), O_RDWR);
    uint8_t *file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(file != MAP_FAILED);
    close(fd);
    assert_int_equal(pthread_create(&writer, NULL, scribble, file + bytes - KP_CHUNK_BYTES), 0);
    for (int i = 0; i < 300; i++) assert_int_equal(kp_reader_events(r, 1, see_inputs, NULL), 0);
    file[bytes - KP_CHUNK_BYTES] = 0;
    pthread_join(writer, NULL);
    munmap(file, bytes);
    kp_reader_close(r);
    test_spool_free(&s);
}

static long file_pages(void)
{
    long size, resident, shared;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld %ld", &size, &resident, &shared), 3);
    fclose(f);
    return shared;
}

static int see_pages(void *context, const struct kp_event *e)
{
    long *most = context, now = e->start_ns % 64 ? 0 : file_pages();
    if (now > *most) *most = now;
    return 0;
}

/* The host's memory must not seem to grow by its spool whenever a trace is written. */
static void a_walk_keeps_little_of_the_file_in_memory(void **state)
{
    struct test_spool s;
    uint32_t meta;
    uint64_t at = 2000;
    long before = file_pages(), most = 0;
    (void)state;
    test_spool_init(&s);
    meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 1, 1, "");
    test_spool_cycle(&s, meta, 1, 1000, 0, 0);
    for (int i = 0; i < 320; i++) { /* 20 MB */
        uint32_t a = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 10, 1, "a");
        while (test_spool_op(&s, a, &(struct test_op){.start = at, .ticks = 1, .seq = -1})) at += 10;
    }
    assert_int_equal(reopen(&s, 0), 0);
    test_spool_free(&s);
    most = file_pages();
    assert_int_equal(kp_reader_events(r, 1, see_pages, &most), 0);
    assert_true(most - before < 1024); /* 4 MB */
    kp_reader_close(r);
}

/* What was opened is read, whatever stands under its name by now; and the descriptor stays the caller's. */
static void an_open_file_is_read_and_not_what_its_name_leads_to(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_save(&s, path(), 0);
    const int fd = open(path(), O_RDONLY | O_CLOEXEC);
    assert_int_equal(unlink(path()), 0);
    test_spool_save(&s, path(), 100);
    assert_int_equal(kp_reader_open_fd(&r, fd, "a name to show", why, sizeof why), 0);
    assert_int_equal(kp_reader_cycles(r), 1);
    kp_reader_close(r);
    assert_int_equal(close(fd), 0);
    const int cut = open(path(), O_RDONLY | O_CLOEXEC);
    assert_int_equal(kp_reader_open_fd(&r, cut, "a name to show", why, sizeof why), -EINVAL);
    assert_non_null(strstr(why, "a name to show"));
    close(cut);
    test_spool_free(&s);
}

/* Some thousand bytes on the disk may say that they are a million gigabytes. */
static void a_file_that_is_mostly_a_hole_takes_no_time(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_head(&s)->chunks = s.chunks;
    test_spool_save(&s, path(), 0);
    if (truncate(path(), (off_t)1 << 42)) KP_SKIP("this file system has no file of 4 TB");
    assert_int_equal(kp_reader_open(&r, path(), why, sizeof why), -EINVAL); /* longer than any spool may be */
    assert_int_equal(truncate(path(), (off_t)1 << 37), 0);
    assert_int_equal(kp_reader_open(&r, path(), why, sizeof why), 0);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void what_is_no_spool_is_refused_in_one_line(void **state)
{
    struct test_spool s;
    (void)state;
    assert_int_equal(kp_reader_open(&r, "/nonexistent/x", why, sizeof why), -ENOENT);
    assert_non_null(strstr(why, "/nonexistent/x"));
    assert_int_equal(kp_reader_open(&r, "/", why, sizeof why), -EINVAL);
    test_spool_training(&s);
    assert_int_equal(reopen(&s, 100), -EINVAL);
    assert_int_equal(reopen(&s, 5000), -ENODATA);
    test_spool_head(&s)->version = 2;
    assert_int_equal(reopen(&s, 0), -ENOTSUP);
    test_spool_head(&s)->version = 1;
    test_spool_head(&s)->head_bytes = 12;
    assert_int_equal(reopen(&s, 0), -EINVAL);
    test_spool_head(&s)->magic[0] = 'X';
    assert_int_equal(reopen(&s, 0), -EINVAL);
    assert_null(r);
    test_spool_free(&s);
}

static void names_that_are_mostly_garbage_are_lost_but_nothing_else(void **state)
{
    struct test_spool s;
    uint8_t *strings;
    (void)state;
    test_spool_training(&s);
    strings = (uint8_t *)test_spool_at(&s, 1);
    for (uint32_t i = 64 + 32; i < KP_CHUNK_BYTES; i++)
        strings[i] = (uint8_t)(i * 37); /* only the first name survives */
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 18);
    assert_int_equal(strncmp(seen.names, "ProfilerStep#1 name lost aten::linear name lost ", 48), 0);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void a_torn_tail_is_cut_and_counted(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    test_spool_at(&s, 3)->used += 16; /* zeroes: a record of size 0 */
    assert_int_equal(reopen(&s, 0), 0);
    assert_int_equal(kp_reader_events(r, 1, see, &seen), 0);
    assert_int_equal(seen.n, 18);
    assert_int_equal(kp_reader_skipped(r), 1);
    kp_reader_close(r);
    test_spool_free(&s);
}

static uint32_t seed = 12345;
static uint32_t any(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

/* Whatever happens to the bytes, opening and walking ends, and no more events come out than records fit. */
static void walk_damaged(const struct test_spool *s, size_t bytes)
{
    if (reopen(s, bytes)) return;
    for (size_t i = 0; i < kp_reader_cycles(r); i++) {
        struct kp_cycle c;
        assert_int_equal(kp_reader_cycle(r, i, &c), 0);
        assert_int_equal(kp_reader_events(r, c.number, see, &seen), 0);
    }
    assert_true(seen.n <= kp_reader_cycles(r) * s->chunks * (KP_CHUNK_BYTES / 8));
    kp_reader_close(r);
}

static void a_spool_cut_anywhere_gives_a_prefix(void **state)
{
    struct test_spool s;
    (void)state;
    test_spool_training(&s);
    for (int i = 0; i < 400; i++) {
        size_t cut = 1 + any(s.chunks * KP_CHUNK_BYTES);
        if (i % 2) cut = (cut & ~(size_t)(KP_CHUNK_BYTES - 1)) + cut % 2048 + 1; /* where the bytes are */
        walk_damaged(&s, cut);
        assert_true(seen.n <= 18);
        assert_false(seen.backwards);
    }
    test_spool_free(&s);
}

static void damaged_bytes_never_harm_the_reader(void **state)
{
    struct test_spool s;
    (void)state;
    for (int i = 0; i < 1500; i++) {
        test_spool_training(&s);
        for (uint32_t k = 1 + any(12); k; k--) {
            uint32_t chunk = any(s.chunks), at = any(any(4) ? 700 : KP_CHUNK_BYTES);
            s.bytes[(size_t)chunk * KP_CHUNK_BYTES + at] = (uint8_t)(any(3) ? any(256) : any(2) * 255);
        }
        walk_damaged(&s, any(5) ? 0 : 1 + any(s.chunks * KP_CHUNK_BYTES));
        test_spool_free(&s);
    }
}

static void a_damaged_call_stack_ends_and_leads_nowhere_else(void **state)
{
    static const char *const frames[] = {"0;a(1): f",   "1;b(2): g", "3;itself",           "9;ahead",
                                         "x;no number", "",          "99999999999999;far", "2;c(3): h;i"};
    struct test_spool s;
    char path[300];
    (void)state;
    test_spool_init(&s);
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        assert_int_equal(test_spool_name(&s, frames[i], (uint32_t)strlen(frames[i])), i + 1);
    snprintf(path, sizeof path, "%s/stack.kprof", kp_test_tmpdir());
    test_spool_save(&s, path, 0);
    assert_int_equal(kp_reader_open(&r, path, why, sizeof why), 0);
    for (uint32_t stack = 3; stack <= 7; stack++) {
        uint32_t at = stack;
        assert_null(kp_reader_frame(r, &at));
        assert_int_equal(at, 0);
    }
    uint32_t at = 8;
    assert_string_equal(kp_reader_frame(r, &at), "c(3): h;i");
    assert_string_equal(kp_reader_frame(r, &at), "b(2): g");
    assert_string_equal(kp_reader_frame(r, &at), "a(1): f");
    assert_null(kp_reader_frame(r, &at));
    at = 4000000000u;
    assert_null(kp_reader_frame(r, &at));
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
        cmocka_unit_test(each_window_has_the_wall_time_of_its_own_begin),
        cmocka_unit_test(room_that_is_not_counted_yet_is_not_touched),
        cmocka_unit_test(chunks_that_a_damaged_count_leaves_out_are_found),
        cmocka_unit_test(a_file_that_changes_under_the_reader_harms_nobody),
        cmocka_unit_test(a_walk_keeps_little_of_the_file_in_memory),
        cmocka_unit_test(an_open_file_is_read_and_not_what_its_name_leads_to),
        cmocka_unit_test(a_file_that_is_mostly_a_hole_takes_no_time),
        cmocka_unit_test(what_is_no_spool_is_refused_in_one_line),
        cmocka_unit_test(names_that_are_mostly_garbage_are_lost_but_nothing_else),
        cmocka_unit_test(a_torn_tail_is_cut_and_counted),
        cmocka_unit_test(a_spool_cut_anywhere_gives_a_prefix),
        cmocka_unit_test(a_damaged_call_stack_ends_and_leads_nowhere_else),
        cmocka_unit_test(damaged_bytes_never_harm_the_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

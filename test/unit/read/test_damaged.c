// SPDX-License-Identifier: Apache-2.0
/* test_damaged.c - a spool that is torn, damaged or still written to harms no reader, and what is whole comes back */
#include "test/unit/read/reader_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>

/* Reads every byte an event claims to have. */
static int see_inputs(void *context, const struct kp_event *e)
{
    volatile uint8_t sum = 0;
    (void)context;
    for (uint32_t i = 0; e->inputs && i < e->inputs_bytes; i++) sum = (uint8_t)(sum + e->inputs[i]);
    return 0;
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
    assert_int_equal(test_reader_open(&r, path(), why, sizeof why), 0);
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
    assert_int_equal(test_reader_open(&r, path(), why, sizeof why), -EINVAL); /* longer than any spool may be */
    assert_int_equal(truncate(path(), (off_t)1 << 37), 0);
    assert_int_equal(test_reader_open(&r, path(), why, sizeof why), 0);
    kp_reader_close(r);
    test_spool_free(&s);
}

static void what_is_no_spool_is_refused_in_one_line(void **state)
{
    struct test_spool s;
    (void)state;
    assert_int_equal(test_reader_open(&r, "/", why, sizeof why), -EINVAL);
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
    assert_int_equal(test_reader_open(&r, path, why, sizeof why), 0);
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

// SPDX-License-Identifier: Apache-2.0
/* test_symbol_slices.c - calls of functions by name in a trace: rows, ends, names; records of any damage */
#include "collector/format/kp_symbol.h"

#include <errno.h>
#include <stdlib.h>

#include "test/unit/trace/window_spool.h"

enum { OTHER_NO = 2, OTHER_TID = 4250, BESIDE = 0x40000000, ROWS = 8, PLENTY = 400 };

static uint32_t other_chunk;

static void begin_for(const char *globs)
{
    char line[64];
    window_begin();
    snprintf(line, sizeof line, "KPROF_SYMBOLS=%s\n", globs);
    test_spool_text(&spool, line);
    other_chunk = test_spool_chunk(&spool, KP_CHUNK_DATA, 1, OTHER_TID, OTHER_NO, "other");
}

static void put(uint32_t chunk, uint32_t id, uint64_t start, uint64_t ticks)
{
    struct kp_rec_symbol r = {
        .head = {.kind = KP_KIND_SYMBOL, .size = sizeof r, .name = id}, .start = start, .ticks = ticks};
    assert_true(test_spool_put(&spool, chunk, &r, sizeof r));
}

static uint32_t function(const char *symbol, const char *object)
{
    char both[512];
    const int n = snprintf(both, sizeof both, "%s%c%s", symbol, 0, object);
    return test_spool_name(&spool, both, (uint32_t)n);
}

/* A call in libx.so; `to` 0: it has no end. */
static void called(uint32_t chunk, const char *symbol, uint64_t from, uint64_t to)
{
    put(chunk, function(symbol, "libx.so"), AT(from), to ? to - from : 0);
}

struct slice {
    char name[256];
    uint32_t tid;
    uint64_t from, to; /* ns of the window */
    bool unfinished;
};

static uint64_t ns_of(const char *at)
{
    char *point;
    const uint64_t us = strtoull(at, &point, 10);
    return us * 1000 + strtoull(point + 1, NULL, 10);
}

/* A line alone: under ASan each strstr reads to the end of its text, which is that of a trace otherwise. */
static const char *alone(const char *line)
{
    static char copy[4096];
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
    return copy;
}

static bool slice_read(const char *line, struct slice *s)
{
    const char *at = strstr(alone(line), "\"cat\":\"symbol\",\"name\":\"");
    if (!at) return false;
    snprintf(s->name, sizeof s->name, "%.*s", (int)strcspn(at + 23, "\""), at + 23);
    s->tid = (uint32_t)strtoul(strstr(at, "\"tid\":") + 6, NULL, 10);
    s->from = ns_of(strstr(at, "\"ts\":") + 5) - (AT(0) - BASE);
    s->to = s->from + ns_of(strstr(at, "\"dur\":") + 6);
    s->unfinished = strstr(at, "\"finished\":false") != NULL;
    return true;
}

/* All of them as they stand in a trace; how many. */
static uint32_t slices_read(const char *trace, struct slice *out, uint32_t most)
{
    uint32_t n = 0;
    for (const char *line = trace; *line; line = strchr(line, '\n') + 1) {
        if (n < most && slice_read(line, &out[n])) n++;
        if (!strchr(line, '\n')) break;
    }
    return n;
}

static struct slice slice(const char *name_)
{
    static struct slice all[PLENTY];
    const uint32_t n = slices_read(text, all, PLENTY);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name_) == 0) return all[i];
    fail_msg("no call of %s:\n%.6000s", name_, text);
    return (struct slice){0};
}

static void assert_slice(const char *name_, uint32_t tid, uint64_t from, uint64_t to)
{
    const struct slice s = slice(name_);
    assert_int_equal(s.tid, tid);
    assert_int_equal(s.from, from);
    assert_int_equal(s.to, to);
}

/* ---- rows ---- */

static void calls_that_nest_stand_on_the_row_of_their_thread(void **state)
{
    (void)state;
    begin_for("*");
    called(main_chunk, "outer", 100, 900);
    called(main_chunk, "inner", 200, 400);
    called(main_chunk, "innermost", 200, 400);
    called(main_chunk, "next", 400, 900);
    called(main_chunk, "behind", 900, 901);
    assert_int_equal(export_now(), 0);
    assert_int_equal(result.calls, 5);
    assert_slice("outer", 4242, 100, 900);
    assert_slice("inner", 4242, 200, 400);
    assert_slice("innermost", 4242, 200, 400);
    assert_slice("next", 4242, 400, 900);
    assert_slice("behind", 4242, 900, 901);
    assert_int_equal(count("calls beside"), 0);
    assert_has(line_of("\"inner\""), "\"args\":{\"object\":\"libx.so\",\"Ev Idx\":1}}");
}

static void a_call_that_outlives_what_it_began_in_goes_beside(void **state)
{
    (void)state;
    begin_for("*");
    called(main_chunk, "first", 100, 500);
    called(main_chunk, "across", 300, 700);
    called(main_chunk, "within both", 400, 450);
    called(main_chunk, "across two", 460, 800);
    called(main_chunk, "back", 600, 650);
    assert_int_equal(export_now(), 0);
    assert_slice("first", 4242, 100, 500);
    assert_slice("across", BESIDE, 300, 700);
    assert_slice("within both", 4242, 400, 450);
    assert_slice("across two", BESIDE + 1, 460, 800);
    assert_slice("back", 4242, 600, 650);
    assert_int_equal(count("calls beside thread 4242"), 2);
    assert_has(line_of("\"name\":\"calls beside thread 4242\""), "\"tid\":1073741824");
    assert_int_equal(count("\"tid\":1073741824,\"args\":{\"sort_index\":4242}"),
                     1); /* a viewer puts it below its thread */
}

static void threads_have_rows_of_their_own(void **state)
{
    (void)state;
    begin_for("*");
    called(main_chunk, "a", 100, 500);
    called(main_chunk, "a2", 400, 600);
    called(other_chunk, "b", 200, 700); /* would not nest in `a` */
    called(other_chunk, "b2", 300, 800);
    assert_int_equal(export_now(), 0);
    assert_slice("a", 4242, 100, 500);
    assert_slice("b", OTHER_TID, 200, 700);
    assert_slice("b2", BESIDE, 300, 800);
    assert_slice("a2", BESIDE + 1, 400, 600);
    assert_int_equal(count("calls beside thread 4242"), 1);
    assert_int_equal(count("calls beside thread 4250"), 1);
}

/* Ops and ranges of the program stand on the row, too. */
static void a_call_that_outlives_an_op_goes_beside(void **state)
{
    (void)state;
    begin_for("*");
    op("aten::add", 100, 500, 0);
    called(main_chunk, "within", 200, 300);
    called(main_chunk, "across", 400, 700);
    op("aten::mul", 800, 900, 0);
    called(main_chunk, "ends with it", 850, 900);
    assert_int_equal(export_now(), 0);
    assert_int_equal(result.events, 2);
    assert_slice("within", 4242, 200, 300);
    assert_slice("across", BESIDE, 400, 700);
    assert_slice("ends with it", 4242, 850, 900);
}

static void when_no_row_is_left_it_is_cut(void **state)
{
    char name_[16];
    (void)state;
    begin_for("*");
    for (uint32_t i = 0; i < ROWS + 2; i++) {
        snprintf(name_, sizeof name_, "f%u", i);
        called(main_chunk, name_, 100 + i, 500 + i * 10);
    }
    assert_int_equal(export_now(), 0);
    assert_slice("f0", 4242, 100, 500);
    for (uint32_t i = 1; i < ROWS; i++) {
        snprintf(name_, sizeof name_, "f%u", i);
        assert_slice(name_, BESIDE + i - 1, 100 + i, 500 + i * 10);
    }
    assert_slice("f8", BESIDE + ROWS - 2, 108, 570);
    assert_slice("f9", BESIDE + ROWS - 2, 109, 570);
    assert_int_equal(count("calls beside thread 4242"), ROWS - 1);
}

/* The numbers of threads are any: rows are found among others that lie where they would. */
static void deep_calls_and_many_threads_have_room(void **state)
{
    enum { DEEP = 2600, THREADS = 200 };
    static struct slice all[DEEP + 2 * THREADS * ROWS];
    uint32_t chunks[THREADS], n = DEEP;
    (void)state;
    begin_for("*");
    const uint32_t id = function("deep", "libx.so"), own = function("own", "libx.so");
    for (uint32_t i = 0; i < DEEP; i++) put(main_chunk, id, AT(i), 900000 - 2 * i);
    srand(3);
    for (uint32_t i = 0; i < THREADS; i++)
        chunks[i] = test_spool_chunk(&spool, KP_CHUNK_DATA, 1, 5000 + i, 10 + (uint32_t)rand() % 1000000, "many");
    for (uint32_t turn = 0; turn < 2; turn++) /* none nests in the one before */
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t i = 0; i < THREADS; i++)
                put(chunks[i], own, AT(5000 + turn * 100000 + row * 1000 + i), 50000);
    assert_int_equal(export_now(), 0);
    assert_int_equal(slices_read(text, all, DEEP + 2 * THREADS * ROWS), DEEP + 2 * THREADS * ROWS);
    for (uint32_t i = 0; i < DEEP; i++) assert_true(all[i].tid == 4242 && all[i].to == 900000 - i);
    for (uint32_t row = 0, beside = BESIDE; row < ROWS; row++)
        for (uint32_t i = 0; i < THREADS; i++, n++) {
            assert_int_equal(all[n].tid, row ? beside++ : 5000 + i);
            assert_int_equal(all[n + THREADS * ROWS].tid, all[n].tid);
        }
    assert_int_equal(count("calls beside thread 5199"), ROWS - 1);
}

/* Of 256 places in the table these threads have ten in a row, and the last one's row beside begins to be looked for at
 * the first's. */
static void a_row_beside_is_found_among_those_of_other_threads(void **state)
{
    enum { FIRST = 23, LAST = 32 };
    (void)state;
    begin_for("*");
    for (uint32_t place = FIRST, no; place <= LAST; place++) {
        for (no = 1; no * 2654435761u % 256 != place;) no++;
        const uint32_t chunk = test_spool_chunk(&spool, KP_CHUNK_DATA, 1, 5000 + place, no, "");
        if (place < LAST) called(chunk, "other", 100 + place, 500);
        for (uint32_t i = 0; place == LAST && i < ROWS; i++) put(chunk, function("own", "libx.so"), AT(200 + i), 500);
    }
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("calls beside"), ROWS - 1);
    assert_int_equal(count("\"dur\":0.500,"), ROWS); /* none was cut */
}

static void assert_nest(const struct slice *all, uint32_t n, uint32_t tid)
{
    static uint64_t open[PLENTY];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (all[i].tid != tid) continue;
        while (depth && open[depth - 1] <= all[i].from) depth--;
        assert_true(!depth || all[i].to <= open[depth - 1]);
        open[depth++] = all[i].to;
    }
}

/* Whatever ends when: every call is there once, with the time it began, and on no row does one end inside another that
 * it began in. */
static void rows_nest_whatever_ends_when(void **state)
{
    static struct slice all[PLENTY];
    (void)state;
    srand(7);
    for (int turn = 0; turn < 30; turn++) {
        uint64_t to[PLENTY], at = 0;
        begin_for("*");
        const uint32_t id = function("f", "libx.so");
        for (uint32_t i = 0; i < PLENTY; i++) {
            at += (uint64_t)rand() % 4;
            to[i] = at + (uint64_t)rand() % (turn % 2 ? 12 : 400) + 1;
            put(main_chunk, id, AT(at), to[i] - at);
        }
        assert_int_equal(export_now(), 0);
        assert_int_equal(slices_read(text, all, PLENTY), PLENTY);
        for (uint32_t i = 0; i < PLENTY; i++)
            assert_true(all[i].to == to[i] || (all[i].tid == BESIDE + ROWS - 2 && all[i].to < to[i]));
        for (uint32_t row = 0; row < ROWS; row++) assert_nest(all, PLENTY, row ? BESIDE + row - 1 : 4242);
    }
}

/* ---- ends ---- */

static void a_call_without_an_end_ends_with_the_window_and_says_so(void **state)
{
    (void)state;
    begin_for("*");
    called(main_chunk, "main", 100, 0);
    called(main_chunk, "run", 200, 0);
    called(main_chunk, "done", 300, 400);
    called(main_chunk, "too late", 500, 2000000);
    assert_int_equal(export_now(), 0);
    const struct slice first = slice("main"), second = slice("run"), late = slice("too late");
    assert_true(first.unfinished && second.unfinished && !late.unfinished && !slice("done").unfinished);
    assert_true(first.tid == 4242 && second.tid == 4242 && late.tid == 4242);
    assert_true(first.to > second.to && second.to > late.to && late.to >= 1000000 &&
                first.to <= 1000000 + 256); /* nested at a viewer's resolution */
    assert_int_equal(count("\"finished\":false"), 2);
}

static void an_end_before_its_beginning_is_the_end_of_the_window(void **state)
{
    (void)state;
    begin_for("*");
    put(main_chunk, function("backwards", "libx.so"), AT(300), UINT64_MAX - 100); /* 101 before it began */
    called(main_chunk, "next", 400, 500);
    assert_int_equal(export_now(), 0);
    const struct slice s = slice("backwards");
    assert_true(s.from == 300 && s.to >= 1000000 && s.to <= 1000256);
    assert_slice("next", 4242, 400, 500);
}

/* A wall clock that was never set: the window lies before 1970, where every time is 0. */
static void calls_that_end_at_no_time_at_all_have_a_row(void **state)
{
    (void)state;
    test_spool_init(&spool);
    test_spool_head(&spool)->clock_kind = KP_CLOCK_MONO;
    test_spool_text(&spool, "KPROF_SYMBOLS=*\n");
    meta = test_spool_chunk(&spool, KP_CHUNK_META, 0, 4242, 1, "python");
    test_spool_clock(&spool, meta, 1000, 0, 1000);
    test_spool_cycle(&spool, meta, 1, 100, 900, 0);
    main_chunk = test_spool_chunk(&spool, KP_CHUNK_DATA, 1, 4242, 1, "python");
    put(main_chunk, function("f", "libx.so"), 200, 10);
    put(main_chunk, function("g", "libx.so"), 300, 10);
    assert_int_equal(export_now(), 0);
    assert_int_equal(result.calls, 2);
    assert_has(line_of("\"name\":\"g\""), "\"tid\":4242,");
    assert_has(line_of("\"name\":\"g\""), "\"dur\":0.000");
}

static void a_window_has_the_calls_that_begin_in_it(void **state)
{
    (void)state;
    begin_for("*");
    put(main_chunk, function("before", "libx.so"), AT(0) - 1, 500);
    called(main_chunk, "at the beginning", 0, 500);
    called(main_chunk, "at the end", 999999, 1000000);
    called(main_chunk, "behind", 1000000, 1000100);
    called(main_chunk, "far behind", 5000000, 0);
    assert_int_equal(export_now(), 0);
    assert_int_equal(result.calls, 2);
    assert_slice("at the beginning", 4242, 0, 500);
    assert_slice("at the end", 4242, 999999, 1000000);
    assert_int_equal(count("\"cat\":\"symbol\""), 2);
}

static void a_window_with_nothing_but_calls_outside_has_no_trace(void **state)
{
    (void)state;
    begin_for("*");
    called(main_chunk, "behind", 1000000, 1000100);
    assert_int_equal(export_now(), -ENODATA);
}

/* ---- names ---- */

static void names_are_those_of_cpp_and_the_linkers_beside(void **state)
{
    (void)state;
    begin_for("*");
    called(main_chunk, "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", 100, 200);
    called(main_chunk, "_ZNothing", 300, 400);
    put(main_chunk, function("quo\"te", "a\\b.so"), AT(500), 100);
    put(main_chunk, function("nowhere", ""), AT(700), 100);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("at::_ops::add_Tensor::call"), "\"name\":\"at::_ops::add_Tensor::call\"");
    assert_has(line_of("at::_ops::add_Tensor::call"), "\"args\":{\"object\":\"libx.so\",\"symbol\":\"_ZN2at4_ops10add_"
                                                      "Tensor4callERKNS_6TensorES4_RKN3c106ScalarE\",\"Ev Idx\":0}}");
    assert_has(line_of("_ZNothing"), "\"args\":{\"object\":\"libx.so\",\"Ev Idx\":1}}");
    assert_has(line_of("quo"), "\"name\":\"quo\\\"te\"");
    assert_has(line_of("quo"), "\"object\":\"a\\\\b.so\"");
    assert_has(line_of("nowhere"), "\"object\":\"\"");
}

static void a_name_that_was_lost_is_said(void **state)
{
    (void)state;
    begin_for("*");
    put(main_chunk, 0, AT(100), 50);
    put(main_chunk, 4000000000u, AT(200), 50);
    assert_int_equal(export_now(), 0);
    assert_int_equal(result.calls, 2);
    assert_int_equal(count("\"name\":\"name lost\""), 2);
    assert_has(line_of("name lost"), "\"object\":\"\"");
}

static void without_the_setting_there_are_no_slices(void **state)
{
    (void)state;
    begin_for("");
    op("aten::add", 100, 500, 0);
    called(main_chunk, "f", 200, 300);
    assert_int_equal(export_now(), 0);
    assert_int_equal(result.calls, 1);
    assert_int_equal(count("\"cat\":\"symbol\""), 0);
}

/* ---- damage ---- */

static void a_record_too_short_for_a_call_is_none(void **state)
{
    (void)state;
    begin_for("*");
    const struct kp_rec_symbol r = {.head = {.kind = KP_KIND_SYMBOL, .size = 16, .name = function("cut", "libx.so")},
                                    .start = AT(100),
                                    .ticks = 50};
    assert_true(test_spool_put(&spool, main_chunk, &r, 16));
    called(main_chunk, "whole", 200, 300);
    assert_int_equal(export_now(), 0);
    assert_int_equal(result.calls, 1);
    assert_slice("whole", 4242, 200, 300);
}

/* A thread without a number: no thread of ours has that, a damaged chunk does. Its calls are rows as others'. */
static void calls_of_no_thread_take_no_more_room_than_others(void **state)
{
    enum { CALLS = 2000 };
    static struct slice all[CALLS];
    (void)state;
    begin_for("*");
    const uint32_t id = function("f", "libx.so"), nobody = test_spool_chunk(&spool, KP_CHUNK_DATA, 1, 77, 0, "");
    for (uint32_t i = 0; i < CALLS; i++) put(nobody, id, AT(100 + i * 10), 5);
    put(nobody, id, AT(30000), 500);
    put(nobody, id, AT(30100), 900);
    fails = "mmap:40+"; /* what it takes for a call or two would not do for two thousand */
    const int rc = export_now();
    fails = NULL;
    assert_int_equal(rc, 0);
    assert_int_equal(slices_read(text, all, CALLS), CALLS);
    assert_true(all[0].tid == 77 && all[CALLS - 1].tid == 77);
    assert_int_equal(count("\"tid\":1073741824,"), 1 + 2); /* one slice, and what the row is called */
}

static void threads_put(uint32_t chunk, uint32_t id, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct kp_rec_thread t = {
            .head = {.kind = KP_KIND_THREAD, .size = sizeof t}, .tid = 5000 + i, .thread_no = 10 + i, .order = 1};
        assert_true(test_spool_put(&spool, chunk, &t, sizeof t));
        put(chunk, id, AT(300 + i), 10);
        put(chunk, id, AT(305 + i), 10);
    }
}

/* Whatever there is no memory for: an error and no file, or all of it. */
static void without_memory_there_is_no_half_a_trace(void **state)
{
    enum {
        THREADS = 100,
        DEEP = 16,
        CALLS = DEEP + 2 + 2 * THREADS,
        TRIES = 500
    }; /* DEEP: as many as there is room for at first */
    static struct slice all[PLENTY];
    char point[32];
    int failed = 0;
    (void)state;
    for (unsigned n = 1; n <= TRIES; n++) {
        begin_for("*");
        const uint32_t id = function("f", "libx.so");
        for (uint32_t i = 0; i < DEEP; i++) put(main_chunk, id, AT(100 + i), 10000 - 2 * i);
        put(main_chunk, id, AT(120), 30);
        put(main_chunk, id, AT(130), 30);
        threads_put(other_chunk, id, THREADS);
        snprintf(point, sizeof point, n % 2 ? "mmap:%u" : "mremap:%u", (n + 1) / 2);
        fails = point;
        const int rc = export_now();
        fails = NULL;
        failed += rc != 0;
        assert_true(rc == 0 || (rc == -ENOMEM && !result.path[0]));
        if (rc) continue;
        assert_int_equal(slices_read(text, all, PLENTY), CALLS);
        assert_true(all[DEEP].tid == 4242 && all[DEEP].to == 150 && all[DEEP + 1].tid == BESIDE &&
                    all[DEEP + 1].to == 160);
        assert_int_equal(count("calls beside"), 1 + THREADS);
    }
    assert_true(failed > 10 && failed < TRIES - 20); /* so all points were passed */
}

/* What is over takes no room: of a thousand ops one behind another no more than of one. */
static void memory_does_not_grow_with_the_window(void **state)
{
    (void)state;
    begin_for("*");
    for (uint32_t i = 0; i < 1000; i++) op("aten::add", 100 + i * 10, 105 + i * 10, 0);
    called(main_chunk, "f", 10091, 20000);
    fails = "mremap:1+";
    const int rc = export_now();
    fails = NULL;
    assert_int_equal(rc, 0);
    assert_int_equal(slice("f").tid, BESIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_nest_stand_on_the_row_of_their_thread),
        cmocka_unit_test(a_call_that_outlives_what_it_began_in_goes_beside),
        cmocka_unit_test(threads_have_rows_of_their_own),
        cmocka_unit_test(a_call_that_outlives_an_op_goes_beside),
        cmocka_unit_test(when_no_row_is_left_it_is_cut),
        cmocka_unit_test(deep_calls_and_many_threads_have_room),
        cmocka_unit_test(a_row_beside_is_found_among_those_of_other_threads),
        cmocka_unit_test(rows_nest_whatever_ends_when),
        cmocka_unit_test(a_call_without_an_end_ends_with_the_window_and_says_so),
        cmocka_unit_test(an_end_before_its_beginning_is_the_end_of_the_window),
        cmocka_unit_test(calls_that_end_at_no_time_at_all_have_a_row),
        cmocka_unit_test(a_window_has_the_calls_that_begin_in_it),
        cmocka_unit_test(a_window_with_nothing_but_calls_outside_has_no_trace),
        cmocka_unit_test(names_are_those_of_cpp_and_the_linkers_beside),
        cmocka_unit_test(a_name_that_was_lost_is_said),
        cmocka_unit_test(without_the_setting_there_are_no_slices),
        cmocka_unit_test(a_record_too_short_for_a_call_is_none),
        cmocka_unit_test(calls_of_no_thread_take_no_more_room_than_others),
        cmocka_unit_test(without_memory_there_is_no_half_a_trace),
        cmocka_unit_test(memory_does_not_grow_with_the_window),
    };
    return cmocka_run_group_tests_name("calls by name in a trace", tests, NULL, NULL);
}

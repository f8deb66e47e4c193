// SPDX-License-Identifier: Apache-2.0
/* test_diff.c - two little runs, and what is said of their difference */
#include "test/unit/diff/rows.h"

#include <math.h>

#define HEAD "\"host_name\":\"node7\",\"kprof\":{\"script\":\"train.py\",\"torch_version\":\"2.15\"},"

/* Steps of 100 us: an op of lengths[step], and a second op where there is one. */
static void run_make(struct little *t, const int *lengths, int steps, const char *second)
{
    *t = (struct little){0};
    snprintf(t->head, sizeof t->head, "%s", HEAD);
    for (int step = 0; step < steps; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", name, 1, 1000 * step, 100 + lengths[step], "");
        op(t, "aten::mm", 1000 * step, lengths[step]);
        if (second) op(t, second, 1000 * step + lengths[step], 20);
    }
    assert_int_equal(choose(t, &everything), 0);
}

static void side_add(struct kp_diff *d, int side, const int *lengths, int steps, const char *second)
{
    struct little *t = calloc(1, sizeof *t);
    void *state = t;
    run_make(t, lengths, steps, second);
    kp_diff_add(d, side, &t->tree, &t->chosen, side ? "b.json" : "a.json");
    little_teardown(&state);
}

/* A step of A lasts 150 us, one of B 180. */
static void longer_make(struct kp_diff *d)
{
    static const int a[] = {50, 51, 49, 50, 50}, b[] = {80, 81, 79, 80, 80};
    kp_diff_open(d);
    side_add(d, KP_DIFF_A, a, 5, NULL);
    side_add(d, KP_DIFF_B, b, 5, NULL);
    kp_diff_settle(d);
}

static void a_change_beyond_the_spread_is_told(void **state)
{
    struct kp_diff d;
    (void)state;
    longer_make(&d);
    const struct kp_diff_row *mm = row_find(&d, KP_DIFF_OPS, "aten::mm");
    assert_non_null(mm);
    assert_float_equal(mm->middle[KP_DIFF_A], 50000, 1);
    assert_float_equal(mm->change, 30000, 1);
    assert_int_equal(mm->verdict, KP_DIFF_MORE);
    assert_float_equal(kp_diff_share(&d, mm), 1, 1e-6);
    assert_int_equal(d.step.verdict, KP_DIFF_MORE);
    assert_float_equal(kp_diff_percent(&d), 20, 1e-6);
    assert_string_equal(kp_strings_get(d.strings, d.sides[KP_DIFF_B].torch), "2.15");
    kp_diff_close(&d);
}

static void a_change_as_large_as_steps_differ_is_noise(void **state)
{
    static const int a[] = {50, 80, 20, 60, 35}, b[] = {60, 90, 25, 66, 50};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    side_add(&d, KP_DIFF_A, a, 5, NULL);
    side_add(&d, KP_DIFF_B, b, 5, NULL);
    kp_diff_settle(&d);
    /* median 50, deviations 0 30 30 10 15: MAD 15, times 1.4826 times 1.206 */
    assert_float_equal(d.step.spread[KP_DIFF_A], 1000 * 15 * 1.4826 * 1.206, 1);
    assert_float_equal(d.step.change, 10000, 1);
    assert_int_equal(d.step.verdict, KP_DIFF_NOISE);
    assert_int_equal(row_find(&d, KP_DIFF_OPS, "aten::mm")->verdict, KP_DIFF_NOISE);
    kp_diff_close(&d);
}

/* B's steps differ by more than the sides do, but each is above nearly all of A's. */
static void a_side_above_the_other_is_told_though_its_steps_differ(void **state)
{
    static const int a[] = {34, 60, 40, 45, 89, 50, 52, 38, 41, 47};
    static const int b[] = {112, 1779, 300, 600, 80, 500, 900, 200, 1500, 700}; /* one below one of A's */
    struct kp_diff d;
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        kp_diff_open(&d);
        side_add(&d, KP_DIFF_A, turn ? b : a, 10, NULL);
        side_add(&d, KP_DIFF_B, turn ? a : b, 10, NULL);
        kp_diff_settle(&d);
        assert_true(fabs(d.step.change) < d.step.noise);
        assert_float_equal(d.step.pairs, turn ? 0.01 : 0.99, 1e-9);
        assert_int_equal(d.step.verdict, turn ? KP_DIFF_LESS : KP_DIFF_MORE);
        kp_diff_close(&d);
    }
    kp_diff_open(&d); /* too few for pairs to tell */
    side_add(&d, KP_DIFF_A, a, 9, NULL);
    side_add(&d, KP_DIFF_B, b, 9, NULL);
    kp_diff_settle(&d);
    assert_int_equal(d.step.verdict, KP_DIFF_NOISE);
    kp_diff_close(&d);
}

static char *printed(const struct kp_diff *d)
{
    const struct kp_diff_show show = {.most = 12};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    kp_diff_print(out, d, &show);
    fclose(out);
    return text;
}

/* 40 steps a side, a few files each. The lengths of a side are spread over 400 us, in an order by chance or by size. */
static void spread_make(struct kp_diff *d, int files, int b_more, bool is_sorted)
{
    enum { STEPS = 40 };
    kp_diff_open(d);
    for (int side = 0; side < KP_DIFF_SIDES; side++) {
        int lengths[STEPS];
        for (int i = 0; i < STEPS; i++) lengths[i] = 100 + (is_sorted ? i : i * 17 % STEPS) * 10 + (side ? b_more : 0);
        for (int file = 0; file < files; file++)
            side_add(d, side, lengths + file * (STEPS / files), STEPS / files, NULL);
    }
    kp_diff_settle(d);
}

/* The change is less than steps differ by, and pairs do not agree. Each case is another way to be sure of it. */
static void many_steps_give_the_change_an_interval(void **state)
{
    static const struct {
        int files, b_more;
        bool is_sorted, is_sure;
    } cases[] = {{1, 160, false, true}, {1, 30, false, false}, {1, 160, true, false}, {2, 160, false, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_diff d;
        spread_make(&d, cases[i].files, cases[i].b_more, cases[i].is_sorted);
        assert_true(d.step.has_interval && d.step.change < d.step.noise && d.step.pairs < 0.85);
        assert_true(d.step.low < d.step.change && d.step.change < d.step.high);
        assert_int_equal(d.step.verdict, cases[i].is_sure ? KP_DIFF_MORE : KP_DIFF_NOISE);
        assert_int_equal(d.step.is_by_interval, cases[i].is_sure);
        assert_int_equal(kp_diff_may_be_the_machine(&d), cases[i].is_sure && cases[i].files == 1);
        char *text = printed(&d);
        assert_non_null(strstr(text, cases[i].is_sure ? "slower: +160 us per step (+" : "no change beyond noise: +"));
        assert_non_null(strstr(text, ". 99 % confidence: "));
        free(text);
        kp_diff_close(&d);
    }
}

/* 2 % of a step, in all steps: one run a side may be a busier machine, two are not. */
static void a_small_change_needs_two_runs_a_side(void **state)
{
    (void)state;
    for (int files = 1; files <= 2; files++) {
        int a[40], b[40];
        struct kp_diff d;
        for (int i = 0; i < 40; i++) a[i] = 400 + i * 17 % 40, b[i] = a[i] + 14;
        kp_diff_open(&d);
        for (int file = 0; file < files; file++) {
            side_add(&d, KP_DIFF_A, a, 40, NULL);
            side_add(&d, KP_DIFF_B, b, 40, NULL);
        }
        kp_diff_settle(&d);
        assert_true(d.step.low > 0 && d.step.change < d.step.noise && d.step.pairs < 0.85);
        assert_int_equal(d.step.verdict, files == 1 ? KP_DIFF_NOISE : KP_DIFF_MORE);
        kp_diff_close(&d);
    }
}

static void what_only_one_side_has_appeared_or_went(void **state)
{
    static const int same[] = {50, 50, 50};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    side_add(&d, KP_DIFF_A, same, 3, "model.py(12): old");
    side_add(&d, KP_DIFF_B, same, 3, "model.py(14): new");
    kp_diff_settle(&d);
    assert_int_equal(row_find(&d, KP_DIFF_OPS, "model.py: old")->verdict, KP_DIFF_WENT);
    assert_int_equal(row_find(&d, KP_DIFF_OPS, "model.py: new")->verdict, KP_DIFF_APPEARED);
    assert_float_equal(row_find(&d, KP_DIFF_OPS, "model.py: new")->count[KP_DIFF_B], 1, 0);
    kp_diff_close(&d);
}

/* Each step: mm and add in main, of the lines that are given, and 20 us more of both sides' gap in B. */
static void lines_make(struct kp_diff *d, int side, const char *script, const int *lines, int mul_us)
{
    struct little *t = calloc(1, sizeof *t);
    void *state = t;
    char stack[3][64];
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"script\":\"%s\"},", script);
    for (int i = 0; i < 3; i++)
        snprintf(stack[i], sizeof stack[i], "\"Call stack\":\"%s(%d): main;\"", script, lines[i]);
    for (int step = 0; step < 5; step++) {
        const int at = 1000 * step;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", name, 1, at, 200 + mul_us + 20 * side, "");
        event(t, "cpu_op", "aten::mm", 1, at, 100, stack[0]);
        for (int i = 0; mul_us && i < 4; i++)
            event(t, "cpu_op", "aten::mul", 1, at + 100 + i * mul_us / 4, mul_us / 4, stack[1]);
        event(t, "cpu_op", "aten::add", 1, at + 110 + mul_us, 50, stack[2]);
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_diff_add(d, side, &t->tree, &t->chosen, side ? "b.json" : "a.json");
    little_teardown(&state);
}

/* Two lines were put in above, one of them with ops, and the file has another name. */
static void lines_that_moved_meet_and_the_one_that_changed_most_is_named(void **state)
{
    static const int a[] = {10, 0, 12}, b[] = {12, 13, 16};
    struct kp_diff d;
    struct kp_diff_explained e;
    (void)state;
    kp_diff_open(&d);
    lines_make(&d, KP_DIFF_A, "train.py", a, 0);
    lines_make(&d, KP_DIFF_B, "newer.py", b, 40);
    kp_diff_settle(&d);
    const struct kp_diff_row *mm = row_find(&d, KP_DIFF_LINES, "train.py:10 -> newer.py:12 main");
    assert_non_null(mm);
    assert_float_equal(mm->middle[KP_DIFF_A], 100000, 1);
    assert_float_equal(mm->middle[KP_DIFF_B], 100000, 1);
    assert_non_null(row_find(&d, KP_DIFF_LINES, "train.py:12 -> newer.py:16 main"));
    const struct kp_diff_row *most = kp_diff_line_most(&d, &d.step);
    assert_non_null(most);
    assert_string_equal(kp_strings_get(d.strings, most->name), "newer.py:13 main");
    assert_float_equal(most->change, 40000, 1);
    assert_int_equal(d.group_from[KP_DIFF_LINES + 1] - d.group_from[KP_DIFF_LINES], 3);
    assert_true(kp_diff_explain(&d, &e));
    assert_float_equal(d.step.change, 60000, 1);
    assert_float_equal(e.rows_ns, 40000, 1);
    assert_float_equal(e.gap_ns, 20000, 1);
    kp_diff_close(&d);
}

/* Three steps with an aten::mm in each of some lines of main. */
static void many_lines_make(struct kp_diff *d, int side, int first, int count)
{
    struct little *t = calloc(1, sizeof *t);
    void *state = t;
    char text[64];
    snprintf(t->head, sizeof t->head, "%s", HEAD);
    for (int step = 0; step < 3; step++) {
        snprintf(text, sizeof text, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", text, 1, 1000 * step, 900, "");
        for (int i = 0; i < count; i++) {
            snprintf(text, sizeof text, "\"Call stack\":\"train.py(%d): main;\"", first + i);
            event(t, "cpu_op", "aten::mm", 1, 1000 * step + 10 * i, 10, text);
        }
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_diff_add(d, side, &t->tree, &t->chosen, side ? "b.json" : "a.json");
    little_teardown(&state);
}

/* Each line of B that meets none of A gets a row behind all others, for which the array grows and moves. */
static void many_lines_that_meet_none_keep_their_time(void **state)
{
    enum { LINES = 46 };
    struct kp_diff d;
    char name[32];
    (void)state;
    kp_diff_open(&d);
    many_lines_make(&d, KP_DIFF_A, 10, 2);
    many_lines_make(&d, KP_DIFF_B, 101, LINES);
    kp_diff_settle(&d);
    int alone = 0;
    for (int i = 1; i <= LINES; i++) {
        snprintf(name, sizeof name, "train.py:%d main", 100 + i);
        const struct kp_diff_row *const row = row_find(&d, KP_DIFF_LINES, name);
        if (!row) continue; /* "train.py:10 -> 101 main" */
        alone++;
        assert_int_equal(row->verdict, KP_DIFF_APPEARED);
        assert_float_equal(row->middle[KP_DIFF_B], 10000, 1);
    }
    assert_int_equal(alone, LINES - 2);
    kp_diff_close(&d);
}

/* A line that has more calls stays the line it is. */
static void lines_in_their_place_keep_their_numbers(void **state)
{
    static const int same[] = {10, 11, 12};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    lines_make(&d, KP_DIFF_A, "train.py", same, 0);
    lines_make(&d, KP_DIFF_B, "train.py", same, 40);
    kp_diff_settle(&d);
    assert_non_null(row_find(&d, KP_DIFF_LINES, "train.py:10 main"));
    assert_int_equal(row_find(&d, KP_DIFF_LINES, "train.py:11 main")->verdict, KP_DIFF_APPEARED);
    assert_int_equal(d.group_from[KP_DIFF_LINES + 1] - d.group_from[KP_DIFF_LINES], 3);
    kp_diff_close(&d);
}

static void lines_of_one_side_are_not_compared(void **state)
{
    static const int lines[] = {10, 11, 12}, lengths[] = {50, 51, 49, 50, 50};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    lines_make(&d, KP_DIFF_A, "train.py", lines, 30);
    side_add(&d, KP_DIFF_B, lengths, 5, NULL);
    kp_diff_settle(&d);
    assert_true(d.sides[KP_DIFF_A].has_lines);
    assert_false(d.sides[KP_DIFF_B].has_lines);
    assert_int_equal(d.group_from[KP_DIFF_LINES], d.group_from[KP_DIFF_LINES + 1]);
    kp_diff_close(&d);
}

static void two_steps_are_too_few(void **state)
{
    static const int a[] = {50, 50}, b[] = {90, 90, 90};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    side_add(&d, KP_DIFF_A, a, 2, NULL);
    side_add(&d, KP_DIFF_B, b, 3, NULL);
    kp_diff_settle(&d);
    assert_int_equal(d.step.verdict, KP_DIFF_UNKNOWN);
    kp_diff_close(&d);
}

static void several_files_of_a_side_are_one_set_of_steps(void **state)
{
    static const int a[] = {50, 50}, b[] = {90, 90, 90};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    side_add(&d, KP_DIFF_A, a, 2, NULL);
    side_add(&d, KP_DIFF_A, a, 2, NULL);
    side_add(&d, KP_DIFF_B, b, 3, NULL);
    kp_diff_settle(&d);
    assert_int_equal(d.sides[KP_DIFF_A].samples, 4);
    assert_int_equal(d.sides[KP_DIFF_A].file_count, 2);
    assert_int_equal(d.step.verdict, KP_DIFF_MORE);
    const struct kp_diff_row *mm = row_find(&d, KP_DIFF_OPS, "aten::mm");
    assert_float_equal(mm->values[KP_DIFF_A][3], 50000, 1);
    assert_float_equal(mm->change, 40000, 1);
    kp_diff_close(&d);
}

static void names_lose_what_differs_from_run_to_run(void **state)
{
    static const char *const pairs[][2] = {{"ProfilerStep#12", "ProfilerStep"},
                                           {"train.py(12): step", "train.py: step"},
                                           {"f(12)", "f(12)"},
                                           {"void k<(int)4>(float)", "void k<(int)4>(float)"}};
    struct kp_strings *strings = kp_strings_open();
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_string_equal(kp_strings_get(strings, kp_diff_name(strings, pairs[i][0])), pairs[i][1]);
    kp_strings_close(strings);
}

/* Steps of `us` microseconds, whose layers are given `batch` samples; one op has another dimension in front. */
static void batch_add(struct kp_diff *d, int side, int batch, int us)
{
    struct little *t = calloc(1, sizeof *t);
    void *state = t;
    char args[64];
    snprintf(t->head, sizeof t->head, "%s\"record_shapes\":1,", HEAD);
    snprintf(args, sizeof args, "\"Input Dims\":[[%d,10],[10,10],[10]]", batch);
    for (int step = 0; step < 4; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", name, 1, 1000 * step, us, "");
        event(t, "cpu_op", "aten::linear", 1, 1000 * step, 20, batch ? args : "");
        event(t, "cpu_op", "aten::linear", 1, 1000 * step + 30, 20, batch ? args : "");
        event(t, "cpu_op", "aten::linear", 1, 1000 * step + 60, 20,
              batch ? "\"Input Dims\":[[10,10],[10,10],[10]]" : "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_diff_add(d, side, &t->tree, &t->chosen, "t.json");
    little_teardown(&state);
}

static void another_batch_is_told_by_sample(void **state)
{
    struct kp_diff d;
    double percent = 0;
    (void)state;
    kp_diff_open(&d);
    batch_add(&d, KP_DIFF_A, 8, 200);
    batch_add(&d, KP_DIFF_B, 32, 400);
    kp_diff_settle(&d);
    assert_true(kp_diff_sample_percent(&d, &percent));
    assert_float_equal(percent, -50, 1e-6);
    assert_float_equal(d.sides[KP_DIFF_A].ops, 3, 0);
    char *text = printed(&d);
    assert_non_null(strstr(text, "a step is slower: +200 us per step (+100.0 %). "));
    assert_non_null(strstr(text, "The batch sizes differ. Per sample: faster (-50.0 %)\n"));
    free(text);
    kp_diff_close(&d);
}

/* A sample takes half as long in B. Without what A's steps wait for a core it takes as long as in A. */
static void a_sample_that_waits_for_no_core_any_more_is_not_faster(void **state)
{
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    batch_add(&d, KP_DIFF_A, 8, 200);
    batch_add(&d, KP_DIFF_B, 32, 400);
    kp_diff_settle(&d);
    const double step_us = d.step.middle[KP_DIFF_A] / 1e3, steps = (double)d.sides[KP_DIFF_A].samples;
    d.sides[KP_DIFF_A].core_had_us = d.sides[KP_DIFF_A].core_waited_us = step_us * steps / 2;
    char *text = printed(&d);
    assert_non_null(strstr(text, "a step is slower: +200 us per step (+100.0 %). "));
    assert_non_null(strstr(
        text,
        "Per sample: not certain (-50.0 %)\n             Without the waits for a CPU core the change is +0.0 %\n"));
    free(text);
    kp_diff_close(&d);
}

/* Steps that differ by more than the sides do, with an op of always the same length. */
static void unsteady_add(struct kp_diff *d, int side, int us)
{
    static const int lengths[] = {600, 620, 580, 640, 610};
    struct little *t = calloc(1, sizeof *t);
    void *state = t;
    for (int step = 0; step < 5; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", name, 1, 1000 * step, lengths[step], "");
        op(t, "aten::add", 1000 * step, us);
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_diff_add(d, side, &t->tree, &t->chosen, "t.json");
    little_teardown(&state);
}

static void a_row_is_no_surer_than_the_head(void **state)
{
    static const struct {
        int us;
        const char *verdict;
    } cases[] = {{30, "  may be chance "}, {10, "  may be chance "}, {500, "  slower "}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_diff d;
        kp_diff_open(&d);
        unsteady_add(&d, KP_DIFF_A, 20);
        unsteady_add(&d, KP_DIFF_B, cases[i].us);
        kp_diff_settle(&d);
        assert_int_equal(d.step.verdict, KP_DIFF_NOISE);
        char *text = printed(&d), *row = strstr(text, "\naten::add ");
        assert_non_null(row);
        *strchr(row + 1, '\n') = 0;
        assert_non_null(strstr(row, cases[i].verdict));
        free(text);
        kp_diff_close(&d);
    }
}

/* Steps that compute for 2 ms and some more us each, and wait for a core for 0 to 36 ms. */
static void crowded_add(struct kp_diff *d, int side, int more_us)
{
    enum { CROWDED = 25 };
    struct kp_diff_side *const s = &d->sides[side];
    struct kp_step steps[CROWDED] = {{0}};
    double waits[CROWDED];
    for (size_t i = 0; i < CROWDED; i++) {
        waits[i] = 1e6 * (double)(i * 7 % 13 * 3);
        steps[i].inside_ns = (int64_t)waits[i] + 2000000 + 1000 * (int64_t)(i % 3) + 1000 * (int64_t)more_us;
        kp_diff_sample_add(&d->step, side, i, (double)steps[i].inside_ns);
    }
    kp_diff_waits_add(d, side, steps, waits, CROWDED);
    s->samples = CROWDED;
    s->has_steps = true;
    s->core_had_us = 25 * 2000;
    s->core_waited_us = 25 * 18000;
}

static void waits_for_a_core_hide_no_change_of_the_program(void **state)
{
    struct kp_diff d;
    (void)state;
    for (int more_us = 0; more_us <= 5000; more_us += 5000) {
        kp_diff_open(&d);
        crowded_add(&d, KP_DIFF_A, 0);
        crowded_add(&d, KP_DIFF_B, more_us);
        kp_diff_settle(&d);
        assert_int_equal(d.step.verdict, KP_DIFF_NOISE);
        assert_int_equal(kp_diff_is_hidden(&d), more_us > 0);
        char *text = printed(&d);
        assert_int_equal(
            strstr(text, "change       slower without waits for a CPU core: +5.00 ms per step (+249.9 %). ") &&
                strstr(text, "             With these waits +5.00 ms ("),
            more_us > 0);
        free(text);
        d.sides[KP_DIFF_A].core_had_us = 0; /* A does not tell */
        assert_false(kp_diff_is_hidden(&d));
        kp_diff_close(&d);
    }
}

/* A step of B lasts 30 us longer, of which it waits 25 for a core. */
static void a_wait_for_a_core_is_no_change_of_the_program(void **state)
{
    struct kp_diff d;
    (void)state;
    longer_make(&d);
    assert_false(kp_diff_is_core_wait(&d, 5));
    d.sides[KP_DIFF_B].core_had_us = 750;
    d.sides[KP_DIFF_B].core_waited_us = 125;
    assert_float_equal(kp_diff_core_wait(&d, KP_DIFF_A), 0, 0);
    assert_float_equal(kp_diff_core_wait(&d, KP_DIFF_B), 25000, 1e-6);
    assert_true(kp_diff_is_core_wait(&d, 5));
    assert_false(kp_diff_is_core_wait(&d, 3));
    char *text = printed(&d);
    assert_non_null(strstr(text,
                           "waits for a CPU core per step: A 0 ms, B 25.0 us. Without them a step takes 150 us and "
                           "155 us\n"));
    assert_non_null(strstr(text, "change       not certain: +30.0 us per step (+20.0 %). "));
    assert_non_null(strstr(text, "  not certain "));
    assert_null(strstr(text, "  slower "));
    free(text);
    d.sides[KP_DIFF_B].has_gpu = true;
    assert_false(kp_diff_is_core_wait(&d, 5));
    kp_diff_close(&d);
}

static void one_batch_or_an_unknown_one_claims_nothing(void **state)
{
    static const int batches[][2] = {{8, 8}, {8, 0}, {0, 32}};
    (void)state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct kp_diff d;
        double percent;
        kp_diff_open(&d);
        batch_add(&d, KP_DIFF_A, batches[i][0], 200);
        batch_add(&d, KP_DIFF_B, batches[i][1], 400);
        kp_diff_settle(&d);
        assert_false(kp_diff_sample_percent(&d, &percent));
        kp_diff_close(&d);
    }
}

/* A table does not begin with a small change where a larger one is within noise. */
static void the_largest_change_is_a_row_where_it_is_within_noise(void **state)
{
    static const int a[] = {20, 100, 30, 90, 60}, b[] = {50, 130, 60, 120, 90};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    side_add(&d, KP_DIFF_A, a, 5, NULL);
    side_add(&d, KP_DIFF_B, b, 5, "aten::copy_");
    kp_diff_settle(&d);
    assert_int_equal(row_find(&d, KP_DIFF_OPS, "aten::mm")->verdict, KP_DIFF_NOISE);
    char *text = printed(&d), *mm = strstr(text, "\naten::mm "), *copy = strstr(text, "\naten::copy_ ");
    assert_true(mm && copy && mm < copy);
    assert_null(strstr(text, "the largest by +0.030 ms: aten::mm"));
    *strchr(mm + 1, '\n') = 0;
    assert_non_null(strstr(mm, " +0.030 "));
    assert_non_null(strstr(mm, " within noise "));
    free(text);
    kp_diff_close(&d);
}

/* No row has a change below its noise and a verdict all the same. What stays in the noise has a name. */
static void the_column_has_what_the_verdict_goes_by(void **state)
{
    static const int a[] = {34, 60, 40, 45, 89, 50, 52, 38, 41, 47};
    static const int b[] = {112, 1779, 300, 600, 80, 500, 900, 200, 1500, 700};
    static const int steady[] = {50, 50, 50, 50, 50, 50, 50, 50, 50, 50};
    static const int up[] = {80, 80, 80, 80, 80, 80, 80, 80, 80, 80};
    static const int wide[] = {20, 90, 30, 80, 41, 75, 49, 71, 25, 92};
    static const struct {
        const int *a, *b;
        const char *column, *verdict, *line;
    } cases[] = {
        {a, b, " 99 % pairs ", "  slower ", "pairs        \"N % pairs\": "},
        {b, a, " 99 % pairs ", "  faster ", "pairs        \"N % pairs\": "},
        {steady, up, " 0.000  ", "  slower ", NULL},
        {steady, wide, NULL, NULL, "2 ops within noise, the largest by +0.010 ms: aten::mm (--all shows them)\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_diff d;
        kp_diff_open(&d);
        side_add(&d, KP_DIFF_A, cases[i].a, 10, NULL);
        side_add(&d, KP_DIFF_B, cases[i].b, 10, NULL);
        kp_diff_settle(&d);
        char *text = printed(&d), *row = strstr(text, "\naten::mm");
        assert_true(!cases[i].column == !row);
        if (cases[i].line) assert_non_null(strstr(text, cases[i].line));
        else assert_null(strstr(text, "pairs"));
        if (row) *strchr(row + 1, '\n') = 0;
        if (row) assert_non_null(strstr(row, cases[i].column));
        if (row) assert_non_null(strstr(row, cases[i].verdict));
        free(text);
        kp_diff_close(&d);
    }
}

static void no_shapes_are_told_beside_a_change(void **state)
{
    static const int a[] = {50, 50, 50}, b[] = {80, 80, 80};
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    side_add(&d, KP_DIFF_A, a, 3, NULL);
    side_add(&d, KP_DIFF_B, b, 3, NULL);
    kp_diff_settle(&d);
    char *text = printed(&d);
    assert_non_null(strstr(text, "slower: +30.0 us per step (+20.0 %). Steps of one run differ by up to 0.15 us\n"));
    assert_null(strstr(text, "sample"));
    assert_non_null(strstr(text, "note         the runs have no input shapes (--record-shapes)"));
    free(text);
    kp_diff_close(&d);
}

/* Steps of 100 and of 200 us, in which the first thread's `mine` and a second thread's acquire() last as long. */
static void waiting_add(struct kp_diff *d, int side, const char *mine)
{
    struct little *t = calloc(1, sizeof *t);
    void *state = t;
    const int us = side ? 200 : 100;
    for (int step = 0; step < 5; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
        event(t, "user_annotation", name, 1, 1000 * step, us, "");
        event(t, "python_function", mine, 1, 1000 * step, us, "");
        event(t, "python_function", "<built-in function acquire>", 2, 1000 * step, us, "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_diff_add(d, side, &t->tree, &t->chosen, side ? "b.json" : "a.json");
    little_teardown(&state);
}

/* It waits for as long as a step lasts, whatever made that longer. A wait of the first thread is a cause. */
static void a_thread_that_waits_beside_the_steps_is_no_change(void **state)
{
    struct kp_diff d;
    (void)state;
    kp_diff_open(&d);
    waiting_add(&d, KP_DIFF_A, "<built-in function sleep>");
    waiting_add(&d, KP_DIFF_B, "<built-in function sleep>");
    kp_diff_settle(&d);
    assert_null(row_find(&d, KP_DIFF_OPS, "<built-in function acquire>"));
    assert_float_equal(row_find(&d, KP_DIFF_OPS, "<built-in function sleep>")->change, 100000, 1);
    kp_diff_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_beyond_the_spread_is_told),
        cmocka_unit_test(a_change_as_large_as_steps_differ_is_noise),
        cmocka_unit_test(many_steps_give_the_change_an_interval),
        cmocka_unit_test(a_small_change_needs_two_runs_a_side),
        cmocka_unit_test(a_side_above_the_other_is_told_though_its_steps_differ),
        cmocka_unit_test(a_row_is_no_surer_than_the_head),
        cmocka_unit_test(what_only_one_side_has_appeared_or_went),
        cmocka_unit_test(many_lines_that_meet_none_keep_their_time),
        cmocka_unit_test(lines_that_moved_meet_and_the_one_that_changed_most_is_named),
        cmocka_unit_test(lines_in_their_place_keep_their_numbers),
        cmocka_unit_test(lines_of_one_side_are_not_compared),
        cmocka_unit_test(two_steps_are_too_few),
        cmocka_unit_test(several_files_of_a_side_are_one_set_of_steps),
        cmocka_unit_test(names_lose_what_differs_from_run_to_run),
        cmocka_unit_test(another_batch_is_told_by_sample),
        cmocka_unit_test(a_sample_that_waits_for_no_core_any_more_is_not_faster),
        cmocka_unit_test(a_wait_for_a_core_is_no_change_of_the_program),
        cmocka_unit_test(waits_for_a_core_hide_no_change_of_the_program),
        cmocka_unit_test(one_batch_or_an_unknown_one_claims_nothing),
        cmocka_unit_test(the_largest_change_is_a_row_where_it_is_within_noise),
        cmocka_unit_test(the_column_has_what_the_verdict_goes_by),
        cmocka_unit_test(a_thread_that_waits_beside_the_steps_is_no_change),
        cmocka_unit_test(no_shapes_are_told_beside_a_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

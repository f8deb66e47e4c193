// SPDX-License-Identifier: Apache-2.0
/* test_residentrule.c - memory of the host that grows with each step, and what grows and stops */
#include "test/unit/advise/advised.h"

enum { STEPS = 80, FEW = 21, LATE = 79, LONG = 600, STEP_US = 10000, START_KB = 400000 };

typedef long (*memory_fn)(int step);

static size_t list_add(struct little *t, size_t used, const char *name, memory_fn kb_at, int steps)
{
    used += (size_t)snprintf(t->head + used, sizeof t->head - used, ",\"%s\":\"", name);
    for (int i = 0; i < steps; i++)
        used +=
            (size_t)snprintf(t->head + used, sizeof t->head - used, "%s%d:%ld", i ? "," : "", i, START_KB + kb_at(i));
    return used + (size_t)snprintf(t->head + used, sizeof t->head - used, "\"");
}

/* So many steps of one op, at whose ends the program has so many KB, and so many of addresses (NULL: not recorded). */
static struct kp_advice advice_beside(struct little *t, memory_fn kb_at, memory_fn addresses_at, int steps,
                                      long limit_kb)
{
    size_t used = (size_t)snprintf(t->head, sizeof t->head,
                                   "\"with_stack\":1,\"kprof\":{\"python_gc\":\"1\",\"memory_kb\":\"%ld\"", limit_kb);
    used = list_add(t, used, "resident_steps", kb_at, steps);
    if (addresses_at) used = list_add(t, used, "address_steps", addresses_at, steps);
    snprintf(t->head + used, sizeof t->head - used, "},");
    for (int i = 0; i < steps; i++) {
        numbered_step(t, i, i * STEP_US, STEP_US);
        op(t, "aten::mm", i * STEP_US, STEP_US - 10);
    }
    return advise(t);
}

static struct kp_advice advice_within(struct little *t, memory_fn kb_at, int steps, long limit_kb)
{
    return advice_beside(t, kb_at, NULL, steps, limit_kb);
}

static struct kp_advice advice_of_steps(struct little *t, memory_fn kb_at, int steps)
{
    return advice_within(t, kb_at, steps, 64L << 20);
}

static struct kp_advice advice_of(struct little *t, memory_fn kb_at) { return advice_of_steps(t, kb_at, STEPS); }

static long each_step(int step) { return 350L * step; }
static long each_fifth(int step) { return 1750L * (step / 5); }
static long less(int step) { return 40L * step; }
static long warming(int step) { return step < 10 ? 30000L * step : 300000; }
static long filling(int step) { return step < 25 ? 2000L * step : 50000; }
static long up_and_down(int step) { return step % 2 ? 60000 : 0; }
static long much(int step) { return 2000L * step; }

/* A DataLoader with two workers, in a window of 21 steps: the heap takes pieces of a MB, then no more. */
static long in_pieces(int step)
{
    static const long kb[FEW] = {0,    12,   1036,  4112,  4120,  5144,  5148,  5148,  6172,  7196, 8220,
                                 9244, 9244, 10276, 11300, 12324, 13348, 16420, 16420, 16420, 16424};
    return kb[step];
}

/* A training of 79 steps that keeps nothing: its heap moves up and down, and finds its size by a piece of 2.5 MB. */
static long late_piece(int step)
{
    static const long kb[LATE] = {
        9196,  9964,  7668,  8956,  3580,  3836,  8956,  16636, 16636, 11516, 8956,  8960,  8960,  4992,  0,     2560,
        11520, 5888,  896,   2048,  3840,  8960,  9728,  9728,  9728,  12544, 7168,  7168,  13316, 4740,  7172,  9740,
        9740,  908,   5904,  8464,  13584, 9744,  11024, 4752,  2192,  12048, 12048, 13584, 14864, 14864, 14864, 14864,
        14872, 14880, 14880, 16160, 16160, 16160, 16164, 16164, 16164, 16164, 18724, 18724, 18724, 18724, 18724, 18724,
        18724, 18732, 18732, 18732, 18732, 18732, 18732, 18736, 18736, 18740, 18740, 18740, 18740, 18740, 18740};
    return kb[step];
}

static long small(int step) { return 3L * step; }

static long no_more(int step) { return step < 2 ? 1024L * step : 2048; }
static long coming_and_going(int step) { return 350L * step + (step % 7 == 3 ? 0 : 7000L * (step % 3)); }

static void a_buffer_that_was_reserved_before_is_a_note(void **state)
{
    struct kp_advice a = advice_beside(*state, each_step, no_more, STEPS, 64L << 20);
    assert_int_equal(a.count, 0);
    assert_non_null(a.filled);
    assert_non_null(strstr(a.filled, "grows by 350.00 KiB per step, in addresses that it had before"));
    little_teardown(state);
    little_setup(state);
    a = advice_beside(*state, each_step, each_step, STEPS, 64L << 20);
    assert_string_equal(a.findings[0].id, "resident-grows");
    assert_null(a.filled);
}

/* Two blocks of 7 MB that are there at the ends of some steps; with 28 MB in all the most that was seen still grows. */
static void blocks_that_come_and_go_are_no_growth(void **state)
{
    const struct kp_advice a = advice_of(*state, coming_and_going);
    assert_int_equal(a.count, 0);
}

static void growth_in_each_step_is_told_first(void **state)
{
    const struct kp_advice a = advice_of(*state, each_step);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "resident-grows");
    assert_float_equal(a.findings[0].step_bytes, 350 * 1024, 1);
    assert_true(a.findings[0].is_critical);
    assert_string_equal(a.findings[0].what, "the program's memory on the host grows with each step (torch's tensors "
                                            "are not recorded)");
    assert_non_null(strstr(a.findings[0].change, "kprof run --malloc trace --with-stack"));
}

static void growth_of_each_fifth_step_is_told(void **state)
{
    const struct kp_advice a = advice_of(*state, each_fifth);
    assert_int_equal(a.count, 1);
    assert_float_equal(a.findings[0].step_bytes, 350 * 1024, 40 * 1024);
    assert_int_equal(a.findings[0].steps, 15); /* and not 80 */
    assert_non_null(strstr(a.findings[0].what, "grows in jumps, each 5th step by about 1.7"));
    assert_false(a.findings[0].is_critical); /* a plan of the program */
}

/* Windows that a program keeps each 40th step: by plan, and 2.54 MiB each. */
static long each_fortieth(int step) { return 2600L * (step / 40); }
static long stops(int step) { return 2600L * ((step < 360 ? step : 360) / 40); }
static long drops(int step) { return 2600L * ((step < 580 ? step : 40) / 40); }
static long pieces(int step) /* a heap that takes 1.5 MB where it needs them */
{
    static const int at[] = {7, 9, 83, 96, 124, 167, 240, 251, 339, 384, 438, 486, 499, 533, 562};
    long kb = 0;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) kb += step >= at[i] ? 3 * 1536 : 0;
    return kb;
}

static void what_a_program_keeps_each_nth_step_is_no_critical_leak(void **state)
{
    const struct kp_advice a = advice_of_steps(*state, each_fortieth, LONG);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what, "the program's memory on the host grows in jumps, each 40th step by about "
                                            "2.71 MiB (torch's tensors are not recorded)");
    assert_float_equal(a.findings[0].step_bytes, 65 * 1024, 5 * 1024);
    assert_int_equal(a.findings[0].steps, 14);
    assert_false(a.findings[0].is_critical);
}

static void growth_that_fills_what_memory_is_left_is_critical(void **state)
{
    const struct kp_advice a = advice_within(*state, each_fortieth, LONG, 800 << 10);
    assert_int_equal(a.count, 1);
    assert_true(a.findings[0].is_critical);
    assert_non_null(strstr(a.findings[0].what, "recorded), and nears the 800.00 MiB that it may have"));
}

static void growth_at_odd_steps_is_told_without_a_distance(void **state)
{
    const struct kp_advice a = advice_of_steps(*state, pieces, LONG);
    assert_int_equal(a.count, 1);
    assert_non_null(strstr(a.findings[0].what, "grows in some steps, per step on average ("));
    assert_true(a.findings[0].step_bytes > 64 * 1024);
    assert_false(a.findings[0].is_critical);
}

static void jumps_that_stop_or_are_dropped_are_none(void **state)
{
    static const memory_fn those[] = {stops, drops};
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) {
        struct little t = {0};
        assert_int_equal(advice_of_steps(&t, those[i], LONG).count, 0);
        little_forget(&t);
    }
    (void)state;
}

/* A training whose pictures get larger by a plan, at four of its steps; each fourth step of a recording. */
static long stages(int step)
{
    static const long kb[STEPS] = {896,   1664,  0,     3304,  3304,  4196,   3812,  3824,  4600,  4988,  6784,  7808,
                                   8320,  8324,  3344,  8336,  3344,  4372,   8188,  21776, 21104, 15504, 23376, 18576,
                                   18576, 21104, 24176, 21904, 22220, 22820,  25892, 25892, 25896, 22028, 21100, 25100,
                                   25688, 24216, 40752, 40752, 43056, 38576,  40884, 40752, 40752, 40752, 43056, 40752,
                                   38576, 40752, 40752, 38576, 40112, 43596,  54416, 63696, 60688, 68008, 62912, 59904,
                                   62912, 62912, 62912, 61056, 61056, 60928,  64192, 65164, 83280, 87376, 91472, 89200,
                                   85104, 77044, 85236, 89332, 98824, 102920, 82440, 90628};
    return kb[step];
}

static void growth_in_few_stages_is_no_alarm(void **state) { assert_int_equal(advice_of(*state, stages).count, 0); }

static void little_growth_is_no_alarm(void **state)
{
    const struct kp_advice a = advice_of(*state, less);
    assert_int_equal(a.count, 0); /* 1.2 MB in all */
}

static void what_stops_to_grow_is_none(void **state)
{
    static const memory_fn those[] = {warming, filling, up_and_down, small};
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) {
        struct little t = {0};
        assert_int_equal(advice_of(&t, those[i]).count, 0);
        little_forget(&t);
    }
    (void)state;
}

static void few_steps_of_a_heap_that_finds_its_size_are_no_alarm(void **state)
{
    assert_int_equal(advice_of_steps(*state, in_pieces, FEW).count, 0);
}

static void a_heap_that_takes_one_piece_late_is_no_alarm(void **state)
{
    assert_int_equal(advice_of_steps(*state, late_piece, LATE).count, 0);
}

static void few_steps_that_take_much_are_told(void **state)
{
    const struct kp_advice a = advice_of_steps(*state, much, FEW);
    assert_int_equal(a.count, 1);
    assert_float_equal(a.findings[0].step_bytes, 2000 * 1024, 1);
}

/* By line, with the call stacks: heapadvice.c. */
static void a_traced_heap_tells_it_better(void **state)
{
    struct little *const t = *state;
    struct kp_advice a = advice_of(t, each_step);
    assert_int_equal(a.count, 1);
    t->trace->has_heap = true;
    kp_advice_make(&a, &t->tree, &t->chosen);
    assert_int_equal(a.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_buffer_that_was_reserved_before_is_a_note),
        LITTLE(blocks_that_come_and_go_are_no_growth),
        LITTLE(growth_in_each_step_is_told_first),
        LITTLE(growth_of_each_fifth_step_is_told),
        LITTLE(what_a_program_keeps_each_nth_step_is_no_critical_leak),
        LITTLE(growth_that_fills_what_memory_is_left_is_critical),
        LITTLE(growth_at_odd_steps_is_told_without_a_distance),
        cmocka_unit_test(jumps_that_stop_or_are_dropped_are_none),
        LITTLE(growth_in_few_stages_is_no_alarm),
        LITTLE(little_growth_is_no_alarm),
        cmocka_unit_test(what_stops_to_grow_is_none),
        LITTLE(few_steps_of_a_heap_that_finds_its_size_are_no_alarm),
        LITTLE(a_heap_that_takes_one_piece_late_is_no_alarm),
        LITTLE(few_steps_that_take_much_are_told),
        LITTLE(a_traced_heap_tells_it_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

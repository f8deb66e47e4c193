// SPDX-License-Identifier: Apache-2.0
/* test_growthjumps.c - jumps that are equally far apart, beside growth of each step and growth anywhere */
#include "export/answers/advise/rules/growthjumps.h"
#include "test/unit/tree/little_trace.h"

enum { STEPS = 600 };

typedef double (*amount_fn)(int step);

static long distance_of(amount_fn amount, int first, int apart)
{
    double steps[STEPS], amounts[STEPS];
    size_t count = 0;
    for (int step = first; step < STEPS; step += apart) {
        steps[count] = step;
        amounts[count++] = 400000 + amount(step);
    }
    return kp_growthjumps_distance(steps, amounts, count);
}

static double each_fortieth(int step) { return 2600 * (step / 40); }
/* The heap has room for some of them: these show 3 to 5 steps late. */
static double each_fortieth_late(int step) { return 2600 * ((step - (step / 40 % 3 ? 0 : 3 + step / 40 % 2)) / 40); }
/* What a step needs comes and goes beside it. */
static double each_fortieth_up_and_down(int step) { return 2600 * (step / 40) + (step % 7) * 300; }
static double each_step(int step) { return 65 * step; }
static double pieces(int step) /* a heap that takes pieces of 1.5 MB where it needs them */
{
    static const int at[] = {7, 9, 83, 96, 124, 167, 240, 251, 339, 384, 438, 486, 499, 533, 562};
    double kb = 0;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) kb += step >= at[i] ? 1536 : 0;
    return kb;
}
static double none(int step) { return step < 0; }

static void jumps_of_each_nth_step_are_found(void **state)
{
    static const amount_fn those[] = {each_fortieth, each_fortieth_late, each_fortieth_up_and_down};
    (void)state;
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) assert_int_equal(distance_of(those[i], 0, 1), 40);
    assert_int_equal(distance_of(each_fortieth, 150, 5), 40); /* a look at each fifth step */
}

static void other_growth_has_no_jumps(void **state)
{
    static const amount_fn those[] = {each_step, pieces, none};
    (void)state;
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) assert_int_equal(distance_of(those[i], 0, 1), 0);
    assert_int_equal(kp_growthjumps_distance(NULL, NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jumps_of_each_nth_step_are_found),
        cmocka_unit_test(other_growth_has_no_jumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

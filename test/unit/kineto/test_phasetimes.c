// SPDX-License-Identifier: Apache-2.0
/* test_phasetimes.c - how much of the run each phase took, of which a schedule records a part */
#include "export/read/kineto/phasetimes.h"

#include "test/unit/tree/little_trace.h"

static bool times_read(struct little *t, const char *text, struct kp_phasetimes *out)
{
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"phase\":\"train\",\"phase_times\":\"%s\"},", text);
    op(t, "aten::mm", 0, 10);
    tree_make(t);
    return kp_phasetimes_of(out, t->trace);
}

#define SPAN "% of the time from the first phase's begin until "

static void each_phase_has_its_share(void **state)
{
    struct kp_phasetimes times;
    char text[512];
    assert_true(times_read(*state, "10000000;train:1:6000000;validate, test:12:3400000", &times));
    assert_int_equal(times.all_ns, 10000000000);
    assert_int_equal(kp_phasetimes_find(&times, "train")->runs, 1);
    assert_null(kp_phasetimes_find(&times, "evaluate"));
    assert_int_equal(kp_phasetimes_text(text, sizeof text, &times, "train"), 1);
    assert_string_equal(text, "validate, test took 34.0 " SPAN "this trace's "
                              "end (12 times, 0.283 s each)");
    assert_int_equal(kp_phasetimes_text(text, sizeof text, &times, NULL), 2);
    assert_string_equal(text, "train took 60.0 " SPAN "this trace's end "
                              "(once, 6.000 s); validate, test took 34.0 % (12 times, 0.283 s each)");
}

static void the_last_trace_of_the_run_tells_more(void **state)
{
    struct little *const t = *state;
    struct kp_phasetimes times;
    char text[512];
    assert_true(times_read(t, "10000000;train:1:6000000", &times));
    kp_phasetimes_set_last(t->trace, "20000000;train:2:9000000;validate:1:11000000", NULL);
    assert_true(kp_phasetimes_of(&times, t->trace));
    assert_int_equal(kp_phasetimes_text(text, sizeof text, &times, "train"), 1);
    assert_string_equal(text, "validate took 55.0 " SPAN "the last trace's "
                              "end (once, 11.000 s)");
}

/* The phase was open while the program shut down. */
static void what_came_after_the_last_op_of_an_open_phase_is_left_out(void **state)
{
    struct little *const t = *state;
    struct kp_phasetimes times;
    char text[512], remarks[256];
    assert_true(times_read(t, "10000000;train:1:6000000", &times));
    assert_string_equal(kp_phasetimes_remarks(remarks, sizeof remarks, &times), "");
    kp_phasetimes_set_last(t->trace, "20000000;train:2:9000000;validate:4:11000000", "validate:1:10000000");
    assert_true(kp_phasetimes_of(&times, t->trace));
    assert_int_equal(kp_phasetimes_text(text, sizeof text, &times, "train"), 1);
    assert_string_equal(text, "validate took 10.0 " SPAN "the last trace's "
                              "end (4 times, 0.250 s each)");
    assert_string_equal(kp_phasetimes_remarks(remarks, sizeof remarks, &times),
                        "; validate was open when the program ended: 10.000 s after its last op are left out");
}

static void steps_before_the_first_phase_are_told_where_they_are_many(void **state)
{
    struct little *const t = *state;
    struct kp_phasetimes times;
    char remarks[256];
    assert_true(
        times_read(t, "1000000;validate:1:500000\",\"phase_before_steps\":14,\"phase_before_us\":\"250000", &times));
    assert_string_equal(kp_phasetimes_remarks(remarks, sizeof remarks, &times),
                        "; 14 steps before the first phase took 0.250 s");
    times.before_ns = times.all_ns / 50;
    assert_string_equal(kp_phasetimes_remarks(remarks, sizeof remarks, &times), "");
}

static void little_room_cuts_the_text(void **state)
{
    struct kp_phasetimes times;
    char text[24];
    assert_true(times_read(*state, "10000000;train:1:6000000;validate:12:3400000", &times));
    kp_phasetimes_text(text, sizeof text, &times, NULL);
    assert_true(strlen(text) < sizeof text);
}

static void what_makes_no_sense_is_no_phase(void **state)
{
    static const char *const texts[] = {
        "",           "x",       "10",           "10;",           "0;train:1:5",  "10;train",
        "10;train:1", "10;:1:5", "10;train:0:5", "10;train:1:5x", "10;train:1;:5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kp_phasetimes times;
        assert_false(times_read(*state, texts[i], &times));
        little_teardown(state);
        little_setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_phase_has_its_share, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(the_last_trace_of_the_run_tells_more, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(what_came_after_the_last_op_of_an_open_phase_is_left_out, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(steps_before_the_first_phase_are_told_where_they_are_many, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(little_room_cuts_the_text, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_no_phase, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

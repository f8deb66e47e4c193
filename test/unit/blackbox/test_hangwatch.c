// SPDX-License-Identifier: Apache-2.0
/* test_hangwatch.c - when a program stands, and when it only takes long */
#include "preload/blackbox/hangwatch.h"

#include "test/support/support.h"

enum { LIMIT = 300000, EVERY = 5000 };

static struct kp_hangwatch_state watch;
static struct kp_hangwatch_sample now;
static uint64_t now_ms, own_each, child_each, waited_each, bytes_each;
static bool has_moved_each;

static void begin(void)
{
    watch = (struct kp_hangwatch_state){0};
    now = (struct kp_hangwatch_sample){.has_step = true};
    own_each = child_each = waited_each = bytes_each = 0;
    has_moved_each = false;
    now_ms = 1000000;
}

/* The first finding within so many ms; what comes before each look is told above. */
static enum kp_hangwatch_finding look_for(uint64_t ms)
{
    for (const uint64_t until = now_ms + ms; now_ms < until;) {
        now_ms += EVERY;
        now.own_ms += own_each;
        now.child_ms += child_each;
        now.waited_ms += waited_each;
        now.bytes += bytes_each;
        now.place += has_moved_each;
        const enum kp_hangwatch_finding found = kp_hangwatch_turn(&watch, &now, now_ms, LIMIT, EVERY);
        if (found != KP_HANGWATCH_GOES_ON) return found;
    }
    return KP_HANGWATCH_GOES_ON;
}

static void a_program_in_which_nothing_ends_stands_once(void **state)
{
    (void)state;
    begin();
    assert_int_equal(look_for(LIMIT - EVERY), KP_HANGWATCH_GOES_ON);
    assert_int_equal(look_for(3 * EVERY), KP_HANGWATCH_STANDS);
    assert_int_equal(look_for(20 * LIMIT), KP_HANGWATCH_GOES_ON);
}

static void what_ends_starts_the_time_anew(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(look_for(LIMIT - 2 * EVERY), KP_HANGWATCH_GOES_ON);
        now.done++;
    }
    assert_int_equal(look_for(LIMIT + 3 * EVERY), KP_HANGWATCH_STANDS);
}

static void before_the_first_step_it_may_take_three_times_as_long(void **state)
{
    (void)state;
    begin();
    now.has_step = false;
    assert_int_equal(look_for(3 * LIMIT - EVERY), KP_HANGWATCH_GOES_ON);
    assert_int_equal(look_for(3 * EVERY), KP_HANGWATCH_STANDS);
}

static void an_evaluation_a_compilation_and_a_checkpoint_go_on(void **state)
{
    (void)state;
    begin();
    own_each = EVERY * 3 / 4;
    has_moved_each = true;
    assert_int_equal(look_for(3 * LIMIT), KP_HANGWATCH_GOES_ON);
    own_each = 0;
    has_moved_each = false;
    child_each = EVERY;
    assert_int_equal(look_for(3 * LIMIT), KP_HANGWATCH_GOES_ON);
    child_each = 0;
    bytes_each = 20 << 20;
    assert_int_equal(look_for(3 * LIMIT), KP_HANGWATCH_GOES_ON);
    bytes_each = 2000; /* what a loop that waits reads */
    assert_int_equal(look_for(LIMIT + 3 * EVERY), KP_HANGWATCH_STANDS);
}

static void one_without_a_core_does_not_stand(void **state)
{
    (void)state;
    begin();
    waited_each = EVERY * 3 / 4;
    assert_int_equal(look_for(3 * LIMIT), KP_HANGWATCH_GOES_ON);
    waited_each = EVERY / 4; /* a little of both, and its code goes on */
    own_each = EVERY / 50;
    has_moved_each = true;
    assert_int_equal(look_for(3 * LIMIT), KP_HANGWATCH_GOES_ON);
    waited_each = EVERY / 50; /* it sleeps, and waits for a core where it wakes up */
    assert_int_equal(look_for(LIMIT + 3 * EVERY), KP_HANGWATCH_STANDS);
}

static void one_that_computes_at_one_place_is_busy(void **state)
{
    (void)state;
    begin();
    own_each = EVERY;
    assert_int_equal(look_for(LIMIT + 3 * EVERY), KP_HANGWATCH_BUSY);
}

static void one_that_sleeps_in_turns_at_two_places_stands(void **state)
{
    (void)state;
    begin();
    has_moved_each = true;
    assert_int_equal(look_for(LIMIT + 3 * EVERY), KP_HANGWATCH_STANDS);
}

static void processor_time_may_go_back_a_little(void **state)
{
    (void)state;
    begin();
    now.own_ms = 500;
    own_each = (uint64_t)-2;
    has_moved_each = true;
    assert_int_equal(look_for(LIMIT + 3 * EVERY), KP_HANGWATCH_STANDS);
}

static void a_pause_of_the_whole_process_is_none_of_the_program(void **state)
{
    (void)state;
    begin();
    assert_int_equal(look_for(LIMIT - 2 * EVERY), KP_HANGWATCH_GOES_ON);
    now_ms += 10 * LIMIT; /* SIGSTOP, a frozen container */
    assert_int_equal(look_for(LIMIT - 2 * EVERY), KP_HANGWATCH_GOES_ON);
}

static void it_is_said_three_times_at_most_ten_minutes_apart(void **state)
{
    uint64_t last_ms = 0;
    unsigned said = 0;
    (void)state;
    begin();
    for (int i = 0; i < 100; i++, now.done++) {
        if (look_for(LIMIT + 4 * EVERY) == KP_HANGWATCH_GOES_ON) continue;
        assert_true(!said || now_ms - last_ms >= 600000);
        last_ms = now_ms;
        said++;
    }
    assert_int_equal(said, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_in_which_nothing_ends_stands_once),
        cmocka_unit_test(what_ends_starts_the_time_anew),
        cmocka_unit_test(before_the_first_step_it_may_take_three_times_as_long),
        cmocka_unit_test(an_evaluation_a_compilation_and_a_checkpoint_go_on),
        cmocka_unit_test(one_without_a_core_does_not_stand),
        cmocka_unit_test(one_that_computes_at_one_place_is_busy),
        cmocka_unit_test(one_that_sleeps_in_turns_at_two_places_stands),
        cmocka_unit_test(processor_time_may_go_back_a_little),
        cmocka_unit_test(a_pause_of_the_whole_process_is_none_of_the_program),
        cmocka_unit_test(it_is_said_three_times_at_most_ten_minutes_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

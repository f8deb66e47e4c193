// SPDX-License-Identifier: Apache-2.0
/* test_corewaits.c - the spool says which steps waited for a core */
#include "preload/procfacts/procfacts.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "collector/base/sys/kp_clock.h"
#include "test/unit/window/window_fixture.h"

#define MS UINT64_C(1000000)

static const char *text_of(const char *key)
{
    static char text[2048];
    struct kp_reader *r;
    char why[200];
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    const char *const found = kp_reader_text(r, key);
    snprintf(text, sizeof text, "%s", found ? found : "");
    kp_reader_close(r);
    return text;
}

static const char *note_of(uint32_t window, uint32_t part)
{
    char key[40];
    snprintf(key, sizeof key, "core_steps.%u.%u", window, part);
    return text_of(key);
}

static void a_wait_is_noted_with_its_steps(void **state)
{
    (void)state;
    setup("active=1");
    assert_int_equal(open_spool(), 0);
    kp_corewaits_begin(1);
    kp_corewaits_add(17, 17, 60 * MS, 92 * MS);
    kp_corewaits_add(18, 22, 3 * MS, 8 * MS);
    kp_corewaits_note();
    assert_string_equal(note_of(1, 0), "17:60000,18-22:3000");
    assert_string_equal(note_of(1, 1), "");
}

static void short_waits_are_none(void **state)
{
    (void)state;
    kp_corewaits_begin(2);
    kp_corewaits_add(1, 1, 99000, MS);
    kp_corewaits_add(2, 2, 9 * MS, 1000 * MS);
    kp_corewaits_note();
    assert_string_equal(note_of(2, 0), "");
}

static void many_waits_are_several_notes(void **state)
{
    size_t waits = 0;
    (void)state;
    kp_corewaits_begin(3);
    for (uint64_t i = 1; i <= 200; i++) kp_corewaits_add(1000 * i, 1000 * i, 7 * MS, 9 * MS);
    assert_string_not_equal(note_of(3, 0), "");
    assert_string_not_equal(note_of(3, 1), "");
    kp_corewaits_note();
    for (uint32_t part = 0; part < 10; part++)
        for (const char *at = note_of(3, part); (at = strchr(at, ':')); at++) waits++;
    assert_int_equal(waits, 200);
    kp_corewaits_begin(4);
    kp_corewaits_add(1, 1, 7 * MS, 9 * MS);
    kp_corewaits_note();
    assert_string_equal(note_of(4, 0), "1:7000");
}

static void their_number_has_a_bound(void **state)
{
    (void)state;
    kp_corewaits_begin(5);
    for (uint64_t i = 1; i <= 120000; i++) kp_corewaits_add(i, i, 7 * MS, 9 * MS);
    kp_corewaits_note();
    assert_string_not_equal(note_of(5, 1000), "");
    assert_string_equal(note_of(5, 1100), "");
}

/* An hour of short steps on a busy machine: the last steps have theirs. */
static void ten_thousands_of_waits_are_noted_to_the_last(void **state)
{
    uint32_t parts = 0;
    (void)state;
    kp_corewaits_begin(6);
    for (uint64_t i = 1; i <= 20000; i++) kp_corewaits_add(i, i, 7 * MS, 9 * MS);
    kp_corewaits_note();
    while (*note_of(6, parts)) parts++;
    assert_true(parts > 64);
    assert_non_null(strstr(note_of(6, parts - 1), "20000:7000"));
}

static _Atomic bool is_over;

static void *core_take(void *none)
{
    while (!is_over) {}
    return none;
}

static void core_use(uint64_t ns)
{
    const uint64_t from = kp_clock_ns(CLOCK_MONOTONIC);
    while (kp_clock_ns(CLOCK_MONOTONIC) - from < ns) {}
}

/* What the list says up to the last step that it has. */
static uint64_t waits_sum(uint32_t window, long *last)
{
    uint64_t us = 0;
    for (uint32_t part = 0; part < 200; part++) {
        char *end;
        for (const char *at = note_of(window, part); *at; at = end + (*end == ',')) {
            *last = strtol(at, &end, 10);
            if (*end == '-') *last = strtol(end + 1, &end, 10);
            us += strtoul(end + 1, &end, 10);
        }
    }
    return us;
}

/* No note is written at its end. Then a list that ends early would make its last steps seem to grow. */
static void a_killed_process_leaves_the_waits_of_its_steps(void **state)
{
    enum { STEPS_KILLED = 40 };
    cpu_set_t before, one;
    pthread_t other;
    long last = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(pthread_create(&other, NULL, core_take, NULL), 0);
    kp_procfacts_window_begin(7, true);
    for (uint64_t step = 1; step <= STEPS_KILLED; step++) {
        core_use(20 * MS);
        kp_procfacts_core_step(kp_clock_ns(CLOCK_MONOTONIC), false, step);
    }
    is_over = true;
    pthread_join(other, NULL);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    const uint64_t sum = waits_sum(7, &last);
    const char *const all = strchr(text_of("core.7"), ',');
    assert_non_null(all);
    assert_in_range(last, STEPS_KILLED - 8, STEPS_KILLED);
    assert_in_range(sum, 9 * strtoul(all + 1, NULL, 10) / 10, strtoul(all + 1, NULL, 10) + 100);
}

static int run_end(void **state)
{
    (void)state;
    (void)kp_record_close(true, 10000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_is_noted_with_its_steps),
        cmocka_unit_test(short_waits_are_none),
        cmocka_unit_test(many_waits_are_several_notes),
        cmocka_unit_test(their_number_has_a_bound),
        cmocka_unit_test(a_killed_process_leaves_the_waits_of_its_steps),
        cmocka_unit_test(ten_thousands_of_waits_are_noted_to_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, run_end);
}

// SPDX-License-Identifier: Apache-2.0
/* test_corewaits.c - the spool says which steps waited for a core */
#include "preload/procfacts/procfacts.h"

#include "test/unit/window/window_fixture.h"

#define MS UINT64_C(1000000)

static const char *note_of(uint32_t window, uint32_t part)
{
    static char text[2048];
    struct kp_reader *r;
    char why[200], key[40];
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    snprintf(key, sizeof key, "core_steps.%u.%u", window, part);
    const char *const found = kp_reader_text(r, key);
    snprintf(text, sizeof text, "%s", found ? found : "");
    kp_reader_close(r);
    return text;
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

/* A process that is killed leaves the notes before. */
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
    for (uint64_t i = 1; i <= 20000; i++) kp_corewaits_add(i, i, 7 * MS, 9 * MS);
    kp_corewaits_note();
    assert_string_not_equal(note_of(5, 63), "");
    assert_string_equal(note_of(5, 64), "");
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
    };
    return cmocka_run_group_tests(tests, NULL, run_end);
}

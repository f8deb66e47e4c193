// SPDX-License-Identifier: Apache-2.0
/* test_ctl_proto.c - requests of `kprof ctl` are read, and others are refused with a reason */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "schedule/ctl_proto.h"

static char line[KP_CTL_LINE_MAX + 1], why[100];
static struct kp_ctl_request request;

static int parse(const char *text)
{
    snprintf(line, sizeof line, "%s", text);
    why[0] = 0;
    return kp_ctl_parse(line, &request, why, sizeof why);
}

static void each_request_is_read(void **state)
{
    (void)state;
    assert_int_equal(parse("status"), 0);
    assert_int_equal(request.verb, KP_CTL_STATUS);
    assert_int_equal(parse("where"), 0);
    assert_int_equal(request.verb, KP_CTL_WHERE);
    assert_int_equal(parse("keep"), 0);
    assert_int_equal(request.verb, KP_CTL_KEEP);
    assert_int_equal(parse("start"), 0);
    assert_true(request.verb == KP_CTL_START && !request.steps && !request.is_at_step && !request.is_at_next);
    assert_int_equal(parse("start steps=3 at=next"), 0);
    assert_true(request.steps == 3 && request.is_at_next && !request.is_at_step);
    assert_int_equal(parse("start at=0"), 0);
    assert_true(request.at == 0 && request.is_at_step && !request.steps);
}

static void a_toggle_names_an_activity(void **state)
{
    (void)state;
    assert_int_equal(parse("toggle cuda off"), 0);
    assert_true(request.verb == KP_CTL_TOGGLE && !request.on);
    assert_string_equal(request.activity, "cuda");
    assert_int_equal(parse("toggle cpu on"), 0);
    assert_true(request.on);
    assert_string_equal(request.activity, "cpu");
}

static void a_value_of_metadata_keeps_its_blanks(void **state)
{
    (void)state;
    assert_int_equal(parse("metadata job  a b  c "), 0);
    assert_string_equal(request.key, "job");
    assert_string_equal(request.value, " a b  c ");
}

static void other_lines_are_refused_with_a_reason(void **state)
{
    static const char *const bad[] = {
        "",
        "Status",
        "status now",
        "keep 30s",
        " status",
        "status ",
        "start steps=0",
        "start 3",
        "start at=",
        "start at=-1",
        "start at=1 at=2",
        "start steps=1 steps=1",
        "start steps=1000000000000000",
        "start at=next at=1",
        "toggle cuda",
        "toggle gpu on",
        "toggle cuda off off",
        "metadata",
        "metadata k",
        "metadata k ",
        "stop\tnow",
        "metadata k a\x1b[31m",
        "status\r",
        "phase a b",
        "phase ",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i]), -EINVAL);
        assert_true(why[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_is_read),
        cmocka_unit_test(a_toggle_names_an_activity),
        cmocka_unit_test(a_value_of_metadata_keeps_its_blanks),
        cmocka_unit_test(other_lines_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_signalname.c - names of signals, and their numbers by what begins with a name */
#include "collector/base/text/kp_signalname.h"

#include <signal.h>

#include "test/support/support.h"

static void a_signal_has_its_name(void **state)
{
    char room[32];
    (void)state;
    assert_string_equal(kp_signalname_put(SIGSEGV, room, sizeof room), "SIGSEGV");
    assert_string_equal(kp_signalname_put(40, room, sizeof room), "signal 40");
}

static void a_name_has_its_number(void **state)
{
    (void)state;
    assert_int_equal(kp_signalname_number("SIGKILL"), SIGKILL);
    assert_int_equal(kp_signalname_number("SIGABRT of assert() in a.c:1"), SIGABRT);
    assert_int_equal(kp_signalname_number("SIGABRTS"), 0);
    assert_int_equal(kp_signalname_number("exit status 3"), 0);
    assert_int_equal(kp_signalname_number(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_signal_has_its_name),
                                       cmocka_unit_test(a_name_has_its_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

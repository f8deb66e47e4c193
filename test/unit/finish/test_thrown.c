// SPDX-License-Identifier: Apache-2.0
/* test_thrown.c - the names of types as C++ keeps them, and a caller that is none of libstdc++ */
#include "preload/finish/thrown.h"

#include <string.h>

#include "test/support/support.h"

static char out[64];

static const char *named(const char *mangled)
{
    kp_thrown_name(out, sizeof out, mangled);
    return out;
}

static void a_class_has_its_name(void **state)
{
    (void)state;
    assert_string_equal(named("St13runtime_error"), "std::runtime_error");
    assert_string_equal(named("N3c105ErrorE"), "c10::Error");
    assert_string_equal(named("*N12_GLOBAL__N_13BadE"), "_GLOBAL__N_1::Bad");
    assert_string_equal(named("NSt8ios_base7failureB5cxx11E"), "std::ios_base::failure");
    assert_string_equal(named("4Stop"), "Stop");
}

static void another_name_stays_as_it_is(void **state)
{
    (void)state;
    assert_string_equal(named("i"), "i");
    assert_string_equal(named("PKc"), "PKc");
    assert_string_equal(named("3BoxIiE"), "3BoxIiE");
    assert_string_equal(named("N3c105Error"), "N3c105Error");
    assert_string_equal(named("99Error"), "99Error");
    assert_string_equal(named(""), "");
}

static void another_caller_says_nothing(void **state)
{
    (void)state;
    kp_thrown_put(out, sizeof out, (const void *)(uintptr_t)named);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_class_has_its_name),
                                       cmocka_unit_test(another_name_stays_as_it_is),
                                       cmocka_unit_test(another_caller_says_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

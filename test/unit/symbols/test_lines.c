// SPDX-License-Identifier: Apache-2.0
/* test_lines.c - ranges of addresses, and names as C++ and Rust write them */
#include "export/read/symbols/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/show/plainname.h"
#include "export/read/symbols/addr_ranges.h"
#include "test/support/support.h"

static void the_lightest_range_around_an_address_is_told(void **state)
{
    struct kp_addr_ranges r = {0};
    (void)state;
    assert_null(kp_addr_ranges_find(&r, 5));
    kp_addr_ranges_add(&r, 10, 1000, 990, 1); /* around all */
    kp_addr_ranges_add(&r, 20, 30, 10, 2);
    kp_addr_ranges_add(&r, 22, 24, 2, 3);
    kp_addr_ranges_add(&r, 40, 40, 0, 4); /* empty */
    kp_addr_ranges_add(&r, 500, 2000, 1500, 5);
    kp_addr_ranges_sort(&r);
    static const struct {
        uint64_t at;
        uint32_t what;
    } of[] = {{9, 0},  {10, 1}, {20, 2},  {22, 3},  {23, 3},   {24, 2},   {29, 2},
              {30, 1}, {40, 1}, {600, 1}, {999, 1}, {1000, 5}, {1999, 5}, {2000, 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct kp_addr_range *found = kp_addr_ranges_find(&r, of[i].at);
        assert_int_equal(found ? found->what : 0, of[i].what);
    }
    kp_addr_ranges_fini(&r);
}

/* Many at random, each address looked for in all of them. */
static void ranges_are_found_as_by_looking_at_all(void **state)
{
    struct kp_addr_ranges r = {0};
    (void)state;
    srand(7);
    for (uint32_t i = 0; i < 500; i++) {
        const uint64_t lo = (uint64_t)rand() % 10000, bytes = (uint64_t)rand() % (i % 10 ? 50 : 4000);
        kp_addr_ranges_add(&r, lo, lo + bytes, (uint64_t)i * 7919 % 500, i);
    }
    kp_addr_ranges_sort(&r);
    for (uint64_t at = 0; at < 14000; at++) {
        const struct kp_addr_range *best = NULL, *found = kp_addr_ranges_find(&r, at);
        for (size_t i = 0; i < r.n; i++)
            if (r.of[i].lo <= at && at < r.of[i].hi && (!best || r.of[i].weight < best->weight)) best = &r.of[i];
        assert_ptr_equal(found, best);
    }
    kp_addr_ranges_fini(&r);
}

static void names_are_read_as_their_language_writes_them(void **state)
{
    static const struct {
        const char *mangled, *plain;
    } of[] = {
        {"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
         "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)"},
        {"_ZN4core3fmt5write17h01234567890abcdeE", "core::fmt::write"},
        {"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
         "<alloc::string::String as core::fmt::Display>::fmt"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
        {"_RNCNvC4bomb1a0B3_", "bomb::a::{closure#0}"},
        {"main", NULL},
        {"_ZN", NULL},
        {"_R", NULL},
        {"", NULL},
    };
    (void)state;
    if (!kp_plainname_can()) KP_SKIP("built without libiberty");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *plain = kp_plainname(of[i].mangled);
        if (of[i].plain) assert_string_equal(plain, of[i].plain);
        else assert_null(plain);
    }
}

/* f(A<i, i>, A<A<i, i>, A<i, i> >, ...): each part is twice the one before, written in ten letters. */
static void a_name_that_grows_without_end_stays_as_it_is(void **state)
{
    char mangled[512] = "_Z1f1AIiiE";
    (void)state;
    if (!kp_plainname_can()) KP_SKIP("built without libiberty");
    for (int part = 0; part < 34; part++) {
        const char *plain = kp_plainname(mangled);
        if (part < 8) assert_non_null(plain);
        if (part > 12) assert_null(plain);
        if (plain) assert_true(strncmp(plain, "f(A<int, int>", 13) == 0 && strlen(plain) < 65536);
        assert_true((plain == NULL) == (kp_plainname_cpp(mangled) == NULL));
        const char digit = (char)(part < 10 ? '0' + part : 'A' + part - 10);
        snprintf(mangled + strlen(mangled), sizeof mangled - strlen(mangled), "S_IS%c_S%c_E", digit, digit);
    }
    assert_string_equal(kp_plainname("_Z1fi"), "f(int)"); /* and the next one is read */
}

static void a_file_that_is_none_has_no_places(void **state)
{
    struct kp_lines *l = kp_lines_open("test", &(struct kp_lines_options){0});
    struct kp_place of[4];
    (void)state;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(kp_lines_find(l, "/nowhere/lib.so", "0123456789", 16, of, 4), 0);
        assert_int_equal(kp_lines_find(l, "[vdso]", "-", 16, of, 4), 0);
        assert_int_equal(kp_lines_find(l, "/dev/null", "-", 16, of, 4), 0);
    }
    for (uint64_t at = 0; at < 20000; at++)
        assert_int_equal(kp_lines_find(l, "/nowhere/lib.so", "0123456789", at, of, 4), 0);
    kp_lines_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lightest_range_around_an_address_is_told),
        cmocka_unit_test(ranges_are_found_as_by_looking_at_all),
        cmocka_unit_test(names_are_read_as_their_language_writes_them),
        cmocka_unit_test(a_name_that_grows_without_end_stays_as_it_is),
        cmocka_unit_test(a_file_that_is_none_has_no_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

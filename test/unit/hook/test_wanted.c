// SPDX-License-Identifier: Apache-2.0
/* test_wanted.c - names are told apart, and a word is given to the tap of what it leads to */
#include "preload/hook/wanted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

static char code[64]; /* stands for functions: only addresses matter */

static void names_are_found_and_only_they(void **state)
{
    static struct kp_tap taps[] = {{"cudaMalloc", &code[0], &code[1]}, {"cudaMallocAsync", &code[2], &code[3]}};
    (void)state;
    assert_int_equal(kp_wanted_add(taps, 2), 0);
    assert_string_equal(kp_wanted_name(kp_wanted_find("cudaMalloc")), "cudaMalloc");
    assert_int_not_equal(kp_wanted_find("cudaMalloc"), kp_wanted_find("cudaMallocAsync"));
    static const char *const others[] = {"cudaMallo", "cudaMallocA", "cudaMallocHost", "cu", "c", "", "xudaMalloc"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(kp_wanted_find(others[i]), KP_NOT_WANTED);
    assert_true(kp_wanted_has(taps));
}

static void one_function_has_one_tap(void **state)
{
    static struct kp_tap first[] = {{"cuInit", &code[0], &code[1]}};
    struct kp_tap second[] = {{"cuExit", &code[4], &code[5]}, {"cuInit", &code[0], &code[2]}};
    (void)state;
    assert_int_equal(kp_wanted_add(first, 1), 0);
    assert_int_equal(kp_wanted_add(second, 2), -EEXIST);
    assert_int_equal(kp_wanted_find("cuExit"), KP_NOT_WANTED);
    assert_false(kp_wanted_has(second));
}

static void of_two_libraries_each_function_has_its_own_tap(void **state)
{
    static struct kp_tap taps[] = {{"cudaLaunch", &code[0], &code[1]}, {"cudaLaunch", &code[2], &code[3]}};
    struct kp_image caller = {.lo = 0x8000, .hi = 0x9000};
    struct kp_image library = {.lo = (uintptr_t)&code[0], .hi = (uintptr_t)&code[2]};
    (void)state;
    assert_int_equal(kp_wanted_add(taps, 2), 0);
    uint32_t number = kp_wanted_find("cudaLaunch");
    assert_ptr_equal(kp_wanted_choose(&caller, number, (uintptr_t)&code[0], true), &taps[0]);
    assert_ptr_equal(kp_wanted_choose(&caller, number, (uintptr_t)&code[2], true), &taps[1]);
    assert_null(kp_wanted_choose(&caller, number, 0x1234, true));
    assert_null(kp_wanted_choose(&caller, number, 0x8010, true)); /* not bound yet: to which of the two? */
    assert_null(kp_wanted_choose(&library, number, (uintptr_t)&code[0], true)); /* its own */
    assert_ptr_equal(kp_wanted_held(number, (uintptr_t)&code[3]), &taps[1]);
    assert_null(kp_wanted_held(number, (uintptr_t)&code[2]));
}

static void what_a_library_calls_of_itself_is_taken_when_asked_for(void **state)
{
    static struct kp_tap taps[] = {{"alloc_cpu", &code[0], &code[1]}};
    struct kp_image library = {.lo = (uintptr_t)&code[0], .hi = (uintptr_t)&code[1]};
    (void)state;
    assert_int_equal(kp_wanted_add(taps, 1), 0);
    uint32_t number = kp_wanted_find("alloc_cpu");
    assert_false(kp_wanted_is_own(number, (uintptr_t)&code[0]));
    assert_null(kp_wanted_choose(&library, number, (uintptr_t)&code[0], true));
    assert_int_equal(kp_wanted_take_own(taps, 1), 0);
    assert_true(kp_wanted_is_own(number, (uintptr_t)&code[0]));
    assert_false(kp_wanted_is_own(number, (uintptr_t)&code[1]));
    assert_ptr_equal(kp_wanted_choose(&library, number, (uintptr_t)&code[0], true), &taps[0]);
}

static void a_lazy_stub_of_the_module_may_be_taken(void **state)
{
    static struct kp_tap tap = {"cudaStream", &code[0], &code[1]};
    struct kp_image image = {.lo = 0x8000, .hi = 0x9000};
    (void)state;
    assert_int_equal(kp_wanted_add(&tap, 1), 0);
    uint32_t number = kp_wanted_find("cudaStream");
    assert_ptr_equal(kp_wanted_choose(&image, number, 0x8010, true), &tap);
    assert_null(kp_wanted_choose(&image, number, 0x8010, false));
    assert_null(kp_wanted_choose(&image, number, 0x9010, true));
}

static void a_set_too_large_is_refused_whole(void **state)
{
    static struct kp_tap taps[KP_WANTED_MAX + 1];
    static char names[KP_WANTED_MAX + 1][16];
    (void)state;
    for (uint32_t i = 0; i <= KP_WANTED_MAX; i++) {
        snprintf(names[i], sizeof names[i], "many%u", i);
        taps[i] = (struct kp_tap){names[i], &code[0], &code[1]};
    }
    assert_int_equal(kp_wanted_add(taps, KP_WANTED_MAX + 1), -ENOSPC);
    assert_int_equal(kp_wanted_find("many0"), KP_NOT_WANTED);
    uint32_t fits = KP_WANTED_MAX - kp_wanted_count() - 1; /* cudaLaunch has two taps */
    assert_int_equal(kp_wanted_add(taps, fits), 0);
    for (uint32_t i = 0; i < fits; i++) assert_string_equal(kp_wanted_name(kp_wanted_find(names[i])), names[i]);
    assert_int_equal(kp_wanted_add(&taps[fits], 1), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_and_only_they),
        cmocka_unit_test(one_function_has_one_tap),
        cmocka_unit_test(of_two_libraries_each_function_has_its_own_tap),
        cmocka_unit_test(what_a_library_calls_of_itself_is_taken_when_asked_for),
        cmocka_unit_test(a_lazy_stub_of_the_module_may_be_taken),
        cmocka_unit_test(a_set_too_large_is_refused_whole), /* last: it fills the table */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

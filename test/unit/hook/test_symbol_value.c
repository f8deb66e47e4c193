// SPDX-License-Identifier: Apache-2.0
/* test_symbol_value.c - the loader itself binds the slots of later modules to the taps, so nothing looks at them */
#include "preload/hook/hook.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/support/support.h"

enum { BY_TAP = 1000 };

static char folder[4096];
static int (*real_f07)(int);
static int tap_f07(int x) { return real_f07(x) + BY_TAP; }
static struct kp_tap tap = {.symbol = "called_f07"};

static void *open_here(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) fprintf(stderr, "%s\n", dlerror());
    assert_non_null(handle);
    return handle;
}

static int set_up(void **state)
{
    (void)state;
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n <= 0) return -1;
    *strrchr(folder, '/') = 0;
    void *library = open_here("libcalled.so");
    real_f07 = (int (*)(int))(uintptr_t)dlsym(library, "called_f07");
    tap.real = (void *)(uintptr_t)real_f07;
    tap.tap = (void *)(uintptr_t)tap_f07;
    return real_f07 ? 0 : -1;
}

static void check(const char *name, int added)
{
    void *handle = open_here(name);
    int (*by_name)(int) = (int (*)(int))(uintptr_t)dlsym(handle, "calls_by_name");
    int (*by_table)(int) = (int (*)(int))(uintptr_t)dlsym(handle, "calls_by_table");
    assert_int_equal(by_name(7), 7 + added);
    assert_int_equal(by_table(7), 7 + added);
    assert_int_equal(by_name(8), 8);
    dlclose(handle);
}

static void a_symbol_that_leads_elsewhere_is_left_alone(void **state)
{
    const struct kp_tap other = {"called_f07", (char *)tap.real + 1, tap.tap};
    const struct kp_tap none = {"no_function_of_this_name", tap.real, tap.tap};
    (void)state;
    assert_int_equal(kp_hook_answer(&other, 1), 0);
    assert_int_equal(kp_hook_answer(&none, 1), 0);
    assert_int_equal(kp_hook_answer(&none, 0), 0);
    check("libcalls_lazy.so", 0);
}

static void later_modules_are_bound_to_the_tap(void **state)
{
    (void)state;
    assert_int_equal(kp_hook_answer(&tap, 1), 1);
    assert_int_equal(kp_hook_answer(&tap, 1), 0); /* it leads to the tap already */
    check("libcalls_lazy.so", BY_TAP);
    check("libcalls_now.so", BY_TAP);
    check("libcalls_noplt.so", BY_TAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_symbol_that_leads_elsewhere_is_left_alone),
        cmocka_unit_test(later_modules_are_bound_to_the_tap),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

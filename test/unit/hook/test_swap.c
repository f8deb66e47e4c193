// SPDX-License-Identifier: Apache-2.0
/* test_swap.c - the calls of one module by one name come to us for a moment, whether they were bound before or not */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/hook/hook.h"
#include "test/support/support.h"

static struct kp_hook_swap swap = {.symbol = "called_f07"};
static int calls;

static int ours(int x)
{
    calls++;
    return ((int (*)(int))(uintptr_t)swap.real)(x);
}

static void *open_here(const char *name, int flags)
{
    char path[4200];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(n > 0);
    path[n] = 0;
    snprintf(strrchr(path, '/'), 64, "/%s", name);
    void *handle = dlopen(path, flags);
    if (!handle) fprintf(stderr, "%s\n", dlerror());
    assert_non_null(handle);
    return handle;
}

static void swap_and_back(const char *name, bool is_bound_before)
{
    void *handle = open_here(name, RTLD_LAZY | RTLD_LOCAL);
    int (*by_name)(int) = (int (*)(int))(uintptr_t)dlsym(handle, "calls_by_name");
    swap.inside = dlsym(handle, "calls_by_name");
    swap.ours = (void *)(uintptr_t)ours;
    calls = 0;
    if (is_bound_before) assert_int_equal(by_name(7), 7);
    assert_true(kp_hook_swap_begin(&swap));
    assert_int_equal(by_name(7), 7);
    assert_int_equal(by_name(8), 8);
    assert_int_equal(calls, 1);
    kp_hook_swap_end(&swap);
    assert_int_equal(by_name(7), 7);
    assert_int_equal(calls, 1);
    dlclose(handle);
}

static void calls_come_to_us_and_go_their_way_again(void **state)
{
    (void)state;
    void *called = open_here("libcalled.so", RTLD_NOW | RTLD_GLOBAL);
    for (int bound = 0; bound < 2; bound++) {
        swap_and_back("libcalls_lazy.so", bound);
        swap_and_back("libcalls_now.so", bound);
        swap_and_back("libcalls_noplt.so", bound);
    }
    dlclose(called);
}

static void a_module_without_such_calls_stays_as_it_is(void **state)
{
    (void)state;
    void *handle = open_here("libcalls_lazy.so", RTLD_LAZY | RTLD_LOCAL);
    swap.inside = dlsym(handle, "calls_by_name");
    swap.symbol = "no_function_of_this_name";
    assert_false(kp_hook_swap_begin(&swap));
    swap.symbol = "getpid"; /* a function, and none that this module calls */
    assert_false(kp_hook_swap_begin(&swap));
    swap.symbol = "called_f07";
    swap.inside = NULL; /* no module */
    assert_false(kp_hook_swap_begin(&swap));
    dlclose(handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_come_to_us_and_go_their_way_again),
        cmocka_unit_test(a_module_without_such_calls_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

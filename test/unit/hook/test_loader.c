// SPDX-License-Identifier: Apache-2.0
/* test_loader.c - the first function of a name, and the words by which the loader calls the allocator */
#include "preload/hook/hook.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "preload/hook/image.h"
#include "test/support/support.h"

static int calls;
static void *(*real_zeroed)(size_t, size_t);
static void *(*real_resize)(void *, size_t);

static void *tap_zeroed(size_t n, size_t each)
{
    calls++;
    return real_zeroed(n, each);
}

static void *tap_resize(void *p, size_t n)
{
    calls++;
    return real_resize(p, n);
}

static void the_first_function_is_the_one_dlsym_finds(void **state)
{
    uintptr_t libc = 0, malloc_in = 0, none = 7;
    (void)state;
    assert_ptr_equal(kp_hook_first("malloc", &malloc_in), dlsym(RTLD_DEFAULT, "malloc"));
    assert_ptr_equal(kp_hook_first("gnu_get_libc_version", &libc), dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    assert_int_not_equal(libc, 0);
    assert_null(kp_hook_first("no_function_of_this_name", &none));
    assert_int_equal(none, 0);
#if !defined(__SANITIZE_ADDRESS__)               /* which has a strlen of its own */
    assert_null(kp_hook_first("strlen", &none)); /* chosen at run time */
#endif
}

/* dlopen allocates in the loader: what it does is seen once its words are tapped, and no more when they are back. */
static void what_the_loader_allocates_is_seen(void **state)
{
    uintptr_t module;
    void *zeroed = kp_hook_first("calloc", &module), *resize = kp_hook_first("realloc", &module);
    struct kp_tap taps[] = {{"calloc", zeroed, (void *)(uintptr_t)tap_zeroed},
                            {"realloc", resize, (void *)(uintptr_t)tap_resize}};
    struct kp_tap back[] = {{"calloc", (void *)(uintptr_t)tap_zeroed, zeroed},
                            {"realloc", (void *)(uintptr_t)tap_resize, resize}};
    (void)state;
    real_zeroed = (void *(*)(size_t, size_t))(uintptr_t)zeroed;
    real_resize = (void *(*)(void *, size_t))(uintptr_t)resize;
#if defined(__SANITIZE_ADDRESS__)
    print_message("the loader calls the sanitizer's allocator, not the one the taps are for\n");
    skip();
#endif
    if (!getauxval(AT_BASE)) KP_SKIP("no loader here");
    assert_int_equal(kp_hook_tap_loader(taps, 2), 2);
    assert_int_equal(kp_hook_tap_loader(taps, 2), 0);
    void *handle = dlopen("libz.so.1", RTLD_NOW);
    if (handle) assert_true(calls > 0);
    if (handle) dlclose(handle);
    assert_int_equal(kp_hook_tap_loader(back, 2), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_function_is_the_one_dlsym_finds),
        cmocka_unit_test(what_the_loader_allocates_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

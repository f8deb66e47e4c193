// SPDX-License-Identifier: Apache-2.0
/* test_library.c - libraries in the link map by the stem of their names, also as wheels name them */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/cuda_hooks/cuda_hooks.h"
#include "preload/hook/hook.h"
#include "test/support/support.h"

static void a_librarys_path_tells_its_folder_and_version(void **state)
{
    size_t folder;
    int major, minor;
    (void)state;
    assert_true(kp_library_parse("/a/b/libcudart.so.12", "libcudart", &folder, &major, &minor));
    assert_true(folder == 4 && major == 12 && minor == -1);
    assert_true(kp_library_parse("libcudart.so.11.0", "libcudart", &folder, &major, &minor));
    assert_true(folder == 0 && major == 11 && minor == 0);
    assert_true(kp_library_parse("/t/libcudart-d0da41ae.so.11.0", "libcudart", &folder, &major, &minor));
    assert_true(major == 11 && minor == 0);
    assert_true(kp_library_parse("/l/libcuda.so.550.54.15", "libcuda", &folder, &major, &minor));
    assert_true(kp_library_parse("/l/libcuda.so", "libcuda", &folder, &major, &minor));
    assert_int_equal(major, -1);
    static const char *const others[] = {
        "/l/libcudart.so.12", "/l/libcudadebugger.so.1", "/l/libcuda.so1", "/l/notlibcuda.so.1", "", "/l/"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(kp_library_parse(others[i], "libcuda", &folder, &major, &minor));
}

/* A library of this file name in a folder of its own, loaded. */
static void *load(const char *folder, const char *file)
{
    char path[512], command[2048];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    snprintf(command, sizeof command,
             "mkdir -p %s && echo 'int cudaRuntimeGetVersion(int *n) { return *n = 11000, 0; }' | cc -shared -fPIC -x "
             "c - -o %s",
             folder, path);
    return system(command) == 0 ? dlopen(path, RTLD_NOW) : NULL;
}

static void a_library_is_found_by_the_name_that_wheels_give_it(void **state)
{
    char path[512], few[8], stubs[300];
    (void)state;
    assert_false(kp_library_find("libcudart", path, sizeof path));
    void *library = load(kp_test_tmpdir(), "libcudart-d0da41ae.so.11.0");
    if (!library) KP_SKIP("no C compiler");
    assert_true(kp_library_find("libcudart", path, sizeof path));
    assert_string_equal(strrchr(path, '/'), "/libcudart-d0da41ae.so.11.0");
    assert_false(kp_library_find("libcudart", few, sizeof few));
    assert_ptr_equal(kp_cuda_hooks_library("libcudart"), library);
    snprintf(stubs, sizeof stubs, "%s/stubs", kp_test_tmpdir());
    assert_non_null(load(stubs, "libcuda.so"));
    assert_true(kp_library_find("libcuda", path, sizeof path));
    assert_null(kp_cuda_hooks_library("libcuda"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_librarys_path_tells_its_folder_and_version),
        cmocka_unit_test(a_library_is_found_by_the_name_that_wheels_give_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

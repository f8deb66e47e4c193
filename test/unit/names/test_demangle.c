// SPDX-License-Identifier: Apache-2.0
/* test_demangle.c - names of kernels, and the memory they and the links lie in */
#include "export/write/names/demangle.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "export/write/out/scratch.h"
#include "test/support/support.h"

static struct kp_scratch scratch;

static void names_of_cpp_are_read_and_others_stay(void **state)
{
    struct kp_demangle d;
    static const char templated[] =
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
    static const char triton[] = "triton_poi_fused_add_0";
    (void)state;
    kp_scratch_init(&scratch, kp_test_tmpdir(), 0);
    kp_demangle_init(&d, &scratch, true, NULL);
    assert_string_equal(
        kp_demangle_name(&d, templated),
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"
        "(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)");
    assert_ptr_equal(kp_demangle_name(&d, triton), triton);
    assert_ptr_equal(kp_demangle_name(&d, templated), kp_demangle_name(&d, templated));
    kp_demangle_fini(&d);
    kp_scratch_fini(&scratch);
}

static void a_thousand_names_are_kept(void **state)
{
    static char names[1000][32];
    const char *plain[1000];
    struct kp_demangle d;
    (void)state;
    kp_scratch_init(&scratch, kp_test_tmpdir(), 0);
    kp_demangle_init(&d, &scratch, true, NULL);
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "_Z7name%03di", i);
        plain[i] = kp_demangle_name(&d, names[i]);
    }
    for (int i = 0; i < 1000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "name%03d(int)", i);
        assert_string_equal(plain[i], expected);
        assert_ptr_equal(kp_demangle_name(&d, names[i]), plain[i]);
    }
    kp_demangle_fini(&d);
    kp_scratch_fini(&scratch);
}

static int ready[2];
static char deep[4096];

static void *read_deep(void *of)
{
    struct kp_demangle *d = of;
    char done = kp_demangle_name(d, deep) != deep;
    assert_int_equal(write(ready[1], &done, 1), 1);
    return NULL;
}

/* The deepest name that is asked for, on a thread as the export thread is. */
static void the_deepest_name_fits_the_stack_of_our_threads(void **state)
{
    struct kp_demangle d;
    char done = 0;
    (void)state;
    kp_scratch_init(&scratch, kp_test_tmpdir(), 0);
    kp_demangle_init(&d, &scratch, true, NULL);
    strcpy(deep, "_Z1f");
    memset(deep + 4, 'P', 1019);
    strcpy(deep + 1023, "i");
    assert_int_equal(strlen(deep), 1024);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(kp_io_thread(read_deep, &d, "test"), 0);
    assert_int_equal(read(ready[0], &done, 1), 1);
    assert_int_equal(done, 1);
    strcat(deep, "i"); /* one more: not asked for */
    kp_demangle_fini(&d);
    kp_demangle_init(&d, &scratch, true, NULL);
    assert_ptr_equal(kp_demangle_name(&d, deep), deep);
    kp_demangle_fini(&d);
    kp_scratch_fini(&scratch);
}

/* --- the scratch --- */

static void a_list_keeps_what_was_put_after_its_pages_were_left(void **state)
{
    struct kp_list l;
    (void)state;
    kp_scratch_init(&scratch, kp_test_tmpdir(), 0);
    kp_list_init(&l, &scratch, 24);
    for (uint32_t i = 0; i < 300000; i++) *(uint32_t *)kp_list_add(&l) = i * 7;
    for (uint32_t i = 0; i < 1000; i++) kp_scratch_touch(&scratch);
    for (uint32_t i = 0; i < 300000; i++) assert_int_equal(*(uint32_t *)kp_list_at(&l, i), i * 7);
    assert_int_equal(scratch.anonymous, 0);
    kp_list_fini(&l);
    kp_scratch_fini(&scratch);
}

static void without_a_file_there_are_32_mb_and_no_more(void **state)
{
    size_t got = 0;
    (void)state;
    kp_scratch_init(&scratch, "/proc/no-such-folder", 0);
    while (kp_scratch_alloc(&scratch, 65536)) got += 65536;
    assert_int_equal(got, 32u << 20);
    memset(scratch.segment[0], 1, KP_SCRATCH_SEGMENT);
    for (uint32_t i = 0; i < 1000; i++) kp_scratch_touch(&scratch);
    assert_int_equal(scratch.segment[0][KP_SCRATCH_SEGMENT - 1], 1);
    kp_scratch_fini(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_cpp_are_read_and_others_stay),
        cmocka_unit_test(a_thousand_names_are_kept),
        cmocka_unit_test(the_deepest_name_fits_the_stack_of_our_threads),
        cmocka_unit_test(a_list_keeps_what_was_put_after_its_pages_were_left),
        cmocka_unit_test(without_a_file_there_are_32_mb_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

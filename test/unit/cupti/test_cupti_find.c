// SPDX-License-Identifier: Apache-2.0
/* test_cupti_find.c - names of libraries, places of libcupti, names and sorts of calls: what needs no CUDA */
#include <string.h>

#include "preload/cupti/cupti_internal.h"
#include "test/support/support.h"

static bool is_place(const char *folder, int major, const char *wanted)
{
    char place[256];
    for (unsigned n = 0; kp_cupti_place(n, folder, major, place, sizeof place); n++)
        if (strcmp(place, wanted) == 0) return true;
    return false;
}

static void libcupti_is_looked_for_where_wheels_and_toolkits_keep_it(void **state)
{
    char place[256];
    (void)state;
    assert_true(is_place("/s/nvidia/cu13/lib", 13, "/s/nvidia/cu13/lib/libcupti.so.13"));
    assert_true(
        is_place("/s/nvidia/cuda_runtime/lib", 12, "/s/nvidia/cuda_runtime/lib/../../cuda_cupti/lib/libcupti.so.12"));
    assert_true(is_place("/usr/local/cuda/lib64", 12, "/usr/local/cuda/lib64/../extras/CUPTI/lib64/libcupti.so.12"));
    assert_true(is_place("/c/targets/x86_64-linux/lib", 12,
                         "/c/targets/x86_64-linux/lib/../../../extras/CUPTI/lib64/libcupti.so.12"));
    assert_true(is_place("/a", 11, "/a/libcupti.so.11.8"));
    assert_true(is_place("/a", 11, "/a/libcupti.so.11.7"));
    assert_true(is_place("/a", 13, "libcupti.so.13"));
    assert_true(is_place("", 13, "libcupti.so.13"));
    assert_false(is_place("/a", 13, "libcupti.so.12"));
    unsigned n = 0;
    while (kp_cupti_place(n, "/a", 11, place, sizeof place)) n++;
    assert_in_range(n, 4, 32);
    assert_int_equal(kp_cupti_place(0, "/a", 10, place, sizeof place), 0);
    assert_int_equal(kp_cupti_place(0, "/a", -1, place, sizeof place), 0);
}

static void a_calls_name_loses_its_version_and_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(kp_call_length("cudaLaunchKernel_v7000"), strlen("cudaLaunchKernel"));
    assert_int_equal(kp_call_length("cudaLaunchKernel_ptsz_v11000"), strlen("cudaLaunchKernel_ptsz"));
    assert_int_equal(kp_call_length("cuMemcpyHtoDAsync_v2"), strlen("cuMemcpyHtoDAsync_v2"));
    assert_int_equal(kp_call_length("cuda470"), strlen("cuda470"));
    assert_int_equal(kp_call_length("v7000"), strlen("v7000"));
    assert_int_equal(kp_call_length("7000"), strlen("7000"));
    assert_int_equal(kp_call_length(""), 0);
}

static uint32_t sort(bool is_driver, const char *name) { return kp_call_sort(is_driver, name, strlen(name)); }

static void calls_that_torch_profiler_leaves_out_are_noise(void **state)
{
    (void)state;
    assert_int_equal(sort(false, "cudaGetDevice"), KP_CALL_NOISE);
    assert_int_equal(sort(false, "cudaEventCreateWithFlags"), KP_CALL_NOISE);
    assert_int_equal(sort(false, "cudaGetDeviceCount"), 0);
    assert_int_equal(sort(false, "cudaEventRecord"), 0);
    assert_int_equal(sort(false, "cudaEventQuery"), KP_CALL_ASKS);
    assert_int_equal(sort(true, "cuCtxGetCurrent"), KP_CALL_NOISE);
    assert_int_equal(sort(true, "cuMemCreate"), 0);
    assert_int_equal(sort(true, "cuLaunchKernel"), KP_CALL_LAUNCH);
    assert_int_equal(sort(true, "cuLaunchKernelEx_ptsz"), KP_CALL_LAUNCH);
    assert_int_equal(sort(false, "cudaLaunchKernelExC"), KP_CALL_LAUNCH);
    assert_int_equal(sort(false, "__cudaLaunchKernel"), KP_CALL_LAUNCH);
    assert_int_equal(sort(false, "__cudaLaunchKernel_ptsz"), KP_CALL_LAUNCH);
    assert_int_equal(sort(false, "cudaLaunchHostFunc"), 0);
    assert_int_equal(sort(false, "cudaStreamBeginCapture"), KP_CALL_CAPTURE_BEGINS);
    assert_int_equal(sort(false, "cudaStreamEndCapture"), KP_CALL_CAPTURE_ENDS);
}

static void without_a_driver_nothing_is_found_and_nothing_is_brought_in(void **state)
{
    (void)state;
    assert_int_equal(kp_driver_find(), KP_FOUND_NOTHING);
    assert_int_not_equal(kp_cupti_find(false), 0);
    assert_int_equal(kp_runtime_version(), 0);
    assert_false(kp_cupti_see_driver());
    assert_false(kp_cupti_see_cuinit());
    assert_int_equal(kp_cupti_state(), KP_CUPTI_STATE_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libcupti_is_looked_for_where_wheels_and_toolkits_keep_it),
        cmocka_unit_test(a_calls_name_loses_its_version_and_nothing_else),
        cmocka_unit_test(calls_that_torch_profiler_leaves_out_are_noise),
        cmocka_unit_test(without_a_driver_nothing_is_found_and_nothing_is_brought_in),
    };
    return cmocka_run_group_tests_name("cupti/find", tests, NULL, NULL);
}

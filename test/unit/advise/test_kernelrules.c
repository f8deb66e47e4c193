// SPDX-License-Identifier: Apache-2.0
/* test_kernelrules.c - kernels of float32 that 16 bits would make shorter, and those that change a layout */
#include "test/unit/advise/advised.h"

enum { STEPS = 3, STEP_US = 1000 };
#define HEAD                                                                                                           \
    "\"with_stack\":1,\"profile_memory\":1,\"record_shapes\":1,\"kprof\":{\"python_gc\":\"1\"},\"deviceProperties\":[" \
    "{"                                                                                                                \
    "\"id\":0,\"computeMajor\":%d}],"
#define CONVOLVES \
    "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_warpgroupsize1x1x1_execute"
#define WITHOUT "cutlass_80_simt_sgemm_128x256_8x4_nt_align1"
#define TO_NHWC "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, 0>(float*)"
#define NORM "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(float*)"

struct kernel {
    const char *name;
    int us;
};

/* Steps of 1000 us of these kernels, each launched in time at a line of its own. */
static struct kp_advice kernels_advise(struct little *t, int major, const struct kernel *kernels, size_t count)
{
    int id = 0;
    snprintf(t->head, sizeof t->head, HEAD, major);
    for (int step = 0; step < STEPS; step++) {
        char text[64], frame[64];
        int at = STEP_US * step;
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, STEP_US, "");
        for (size_t i = 0; i < count; i++) {
            snprintf(frame, sizeof frame, "\"Call stack\":\"train.py(%zu): main\"", i + 1);
            event(t, "cpu_op", "aten::conv2d", 1, STEP_US * step + (int)i * 6, 5, frame);
            snprintf(text, sizeof text, "\"correlation\":%d", ++id);
            event(t, "cuda_runtime", "cudaLaunchKernel", 1, STEP_US * step + (int)i * 6 + 1, 3, text);
            snprintf(text, sizeof text, "\"device\":0,\"stream\":7,\"correlation\":%d", id);
            event(t, "kernel", kernels[i].name, 7, at, kernels[i].us, text);
            at += kernels[i].us;
        }
    }
    return advise(t);
}
#define ADVISE(state, major, ...)                                         \
    kernels_advise(*(state), major, (const struct kernel[]){__VA_ARGS__}, \
                   sizeof((const struct kernel[]){__VA_ARGS__}) / sizeof(struct kernel))

static void products_of_float32_that_are_most_of_a_step_are_told_with_half_of_their_time(void **state)
{
    const struct kp_advice a = ADVISE(state, 9, {NORM, 380}, {CONVOLVES, 620});
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "mixed-precision");
    assert_false(a.findings[0].is_critical);
    assert_float_equal(a.findings[0].step_ns, 310e3, 1);
    assert_string_equal(a.findings[0].line, "train.py:2 main");
    assert_non_null(strstr(a.findings[0].change, "torch.bfloat16"));
    assert_string_equal(kp_advice_bound(&a), "GPU compute");
}

/* As a small ResNet on an H100: 41 % convolutions, 23 % changes of layout. */
static void changes_of_layout_count_for_the_bound_and_have_a_finding_of_their_own(void **state)
{
    const struct kp_advice a = ADVISE(state, 9, {TO_NHWC, 230}, {CONVOLVES, 410}, {NORM, 360});
    assert_int_equal(a.count, 2);
    assert_string_equal(a.findings[0].id, "layout-changes");
    assert_float_equal(a.findings[0].step_ns, 230e3, 1);
    assert_true(a.findings[0].is_critical);
    assert_non_null(strstr(a.findings[0].change, "channels_last"));
    assert_string_equal(a.findings[1].id, "mixed-precision");
    assert_float_equal(a.findings[1].step_ns, 205e3, 1);
}

static void less_than_half_of_the_compute_is_no_matter(void **state)
{
    assert_int_equal(ADVISE(state, 9, {NORM, 520}, {CONVOLVES, 480}).count, 0);
}

static void products_of_16_bits_have_what_they_need(void **state)
{
    assert_int_equal(ADVISE(state, 9, {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute", 500},
                            {"void convolve_common_engine_float_NHWC<__nv_bfloat16, __nv_bfloat16, 128>(int)", 500})
                         .count,
                     0);
}

static void kernels_that_lack_tensor_cores_are_told_once(void **state)
{
    const struct kp_advice a = ADVISE(state, 9, {WITHOUT, 600}, {CONVOLVES, 400});
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "tensor-cores-unused");
}

static void a_gpu_that_waits_for_its_host_gains_nothing(void **state)
{
    const struct kp_advice a = ADVISE(state, 9, {CONVOLVES, 600});
    for (size_t i = 0; i < a.count; i++) assert_string_not_equal(a.findings[i].id, "mixed-precision");
}

static void the_type_is_one_that_the_gpu_has(void **state)
{
    const struct kp_advice a = ADVISE(state, 7, {CONVOLVES, 1000});
    assert_int_equal(a.count, 1);
    assert_non_null(strstr(a.findings[0].change, "torch.float16"));
}

static void without_tensor_cores_there_is_nothing_to_win(void **state)
{
    assert_int_equal(ADVISE(state, 6, {CONVOLVES, 1000}).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(products_of_float32_that_are_most_of_a_step_are_told_with_half_of_their_time),
        LITTLE(changes_of_layout_count_for_the_bound_and_have_a_finding_of_their_own),
        LITTLE(less_than_half_of_the_compute_is_no_matter),
        LITTLE(products_of_16_bits_have_what_they_need),
        LITTLE(kernels_that_lack_tensor_cores_are_told_once),
        LITTLE(a_gpu_that_waits_for_its_host_gains_nothing),
        LITTLE(the_type_is_one_that_the_gpu_has),
        LITTLE(without_tensor_cores_there_is_nothing_to_win),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

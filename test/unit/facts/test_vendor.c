// SPDX-License-Identifier: Apache-2.0
/* test_vendor.c - names of calls, kernels and ranges of all vendors are what they are, and others are not */
#include "export/read/facts/vendor.h"

#include "test/support/support.h"

typedef bool (*ask_fn)(const char *name);

static void all_are(ask_fn ask, bool expected, const char *const *names)
{
    for (; *names; names++)
        if (ask(*names) != expected) fail_msg("%s", *names);
}

static void calls_that_wait_are_known(void **state)
{
    (void)state;
    all_are(kp_vendor_is_wait, true,
            (const char *const[]){"cudaStreamSynchronize", "cuCtxSynchronize", "hipDeviceSynchronize", "cudaMemcpy",
                                  "cudaMemcpyToSymbol", "hipMemcpyWithStream", "hipMemcpy", "cuMemcpyDtoH_v2",
                                  "zeEventHostSynchronize", "urEventWait", "urQueueFinish", "musaMemcpy",
                                  "aclrtSynchronizeStream", NULL});
    all_are(kp_vendor_is_wait, false,
            (const char *const[]){"cudaMemcpyAsync", "hipMemcpyAsync", "cuMemcpyHtoDAsync_v2", "cudaMemcpyPeer",
                                  "cuMemcpyDtoD_v2", "cudaLaunchKernel", "cudaMemsetAsync", "cudaStreamWaitEvent",
                                  "urEventWaitWithBarrier", NULL});
}

static void kernels_that_communicate_are_known(void **state)
{
    (void)state;
    all_are(kp_vendor_is_comm, true,
            (const char *const[]){
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
                "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16>",
                "void deep_ep::intranode::dispatch<8, 768>(int4*)",
                "void deep_ep::internode_ll::combine<false, 9, 7168>(void*)", "nvshmemi_entrance_barrier",
                "void mscclpp::collective::allreduce8", "mscclKernel_Sum_half_Simple_true",
                "void tensorrt_llm::kernels::oneShotAllReduceKernel", "userbuffers_fp16_sum_inplace_gpu_rw",
                "rcclGenericKernel", "ishmem_barrier_kernel", "void quickreduce::allreduce_prototype_twoshot", NULL});
    all_are(kp_vendor_is_comm, false,
            (const char *const[]){
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "triton_poi_fused_add_all_reduce_wait_tensor_3",
                "void deep_ep::layout::get_dispatch_layout<256, 32, 8>", "void at::native::reduce_kernel",
                "all_gather_gemm_kernel", "barrier_free_softmax", NULL});
}

static void ranges_and_ops_of_collectives_are_known(void **state)
{
    (void)state;
    all_are(kp_vendor_is_collective, true,
            (const char *const[]){"gloo:all_reduce", "nccl:broadcast", "xccl:all_gather", "mpi:send", "hccl:barrier",
                                  NULL});
    all_are(kp_vendor_is_collective, false, (const char *const[]){"gloo::x", "gloosy", "my:range", "nccl", "", NULL});
    assert_true(kp_vendor_is_beside("gloo:send") && !kp_vendor_is_beside("nccl:send"));
    all_are(kp_vendor_is_comm_op, true,
            (const char *const[]){"_c10d_functional::wait_tensor", "_c10d_functional::all_gather_into_tensor",
                                  "c10d::allreduce_", "_c10d_functional_autograd::all_to_all_single",
                                  "symm_mem::one_shot_all_reduce", NULL});
    all_are(kp_vendor_is_comm_op, false, (const char *const[]){"aten::mm", "functional::all", NULL});
}

static void kernels_that_multiply_by_matrix_units_are_known(void **state)
{
    (void)state;
    all_are(kp_vendor_is_matrix, true,
            (const char *const[]){
                "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "volta_h884gemm_128x128_tn",
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas",
                "nvjet_hsh_128x64_64x8_1x2_h_bz_TNT", "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3",
                "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>",
                "fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI16x16x16x1_SN",
                "void ck::kernel_gemm_xdl_cshuffle_v3", "void marlin::Marlin<256, 1, 8>", "deep_gemm::fp8_gemm_kernel",
                "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16",
                "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc", NULL});
    all_are(kp_vendor_is_matrix, false,
            (const char *const[]){"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(x)", "gemma_rmsnorm_kernel",
                                  "dequantize_to_bf16_kernel", "volta_sgemm_128x64_nn", "cutlass_80_simt_sgemm_128x32",
                                  "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>",
                                  "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy>",
                                  "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_ffma",
                                  "Cijk_Ailk_Bljk_SB_MT64x64x8_SN", "per_token_group_quant_fp8",
                                  "void gemv2T_kernel_val<int, int, __nv_bfloat16>", NULL});
}

static void what_was_asked_once_is_answered_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(kp_vendor_is_wait("cudaMemcpy"));
        assert_false(kp_vendor_is_comm("cudaMemcpy"));
        assert_false(kp_vendor_is_wait("cudaMemcpyAsync"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_wait_are_known),
        cmocka_unit_test(kernels_that_communicate_are_known),
        cmocka_unit_test(ranges_and_ops_of_collectives_are_known),
        cmocka_unit_test(kernels_that_multiply_by_matrix_units_are_known),
        cmocka_unit_test(what_was_asked_once_is_answered_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

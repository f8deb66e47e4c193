// SPDX-License-Identifier: Apache-2.0
/*
 * cublas.c - libcublas.so.N: every product is one kernel with a name of the real library and a grid of its size
 *
 * What has no function here (names/cublas.txt) answers 0 and does nothing. Functions take only the arguments they look
 * at:
 * the rest of a call's arguments are the caller's business.
 */
#include "test/doubles/simgpu/vendor/launch.h"

#include <stdlib.h>

struct handle {
    void *stream;
    int math_mode, pointer_mode, sm_target;
};

enum { SUCCESS = 0, NOT_INITIALISED = 1, ALLOC_FAILED = 3, EXECUTION_FAILED = 13 };
enum data_type { REAL_32F = 0, REAL_64F = 1, REAL_16F = 2, COMPLEX_32F = 4, COMPLEX_64F = 5, REAL_16BF = 14 };

static const char *gemm_kernel(int type)
{
    switch (type) {
    case REAL_16BF:
        return "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_"
               "kernel__5x_cublas";
    case REAL_16F:
        return "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_"
               "kernel__5x_cublas";
    case REAL_64F: return "cutlass_80_tensorop_d884gemm_64x32_16x4_tn_align1";
    case COMPLEX_32F: return "cutlass_80_simt_cgemm_64x64_8x5_tn_align1";
    case COMPLEX_64F: return "cutlass_80_tensorop_z884gemm_32x32_8x4_tn_align1";
    default:
        return "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_"
               "execute_kernel__51_cublas";
    }
}

static int launch(struct handle *handle, const char *kernel, int64_t m, int64_t n, int64_t batch, uint32_t smem)
{
    if (handle == NULL) return NOT_INITIALISED;
    struct sim_launch work = {kernel,         {sim_tiles(m, 128), sim_tiles(n, 128), (uint32_t)(batch > 0 ? batch : 1)},
                              {128, 1, 1},    smem,
                              handle->stream, false,
                              NULL,           NULL};
    return sim_vendor_launch(&work) == 0 ? SUCCESS : EXECUTION_FAILED;
}

static int gemm(struct handle *handle, int type, int m, int n, int batch)
{
    return launch(handle, gemm_kernel(type), m, n, batch, type == REAL_32F ? 16384 : 98304);
}

/* --- handles --- */

SIM_EXPORT int cublasCreate_v2(struct handle **handle)
{
    if (sim_core() == NULL) return NOT_INITIALISED;
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? SUCCESS : ALLOC_FAILED;
}

SIM_EXPORT int cublasDestroy_v2(struct handle *handle)
{
    free(handle);
    return SUCCESS;
}

SIM_EXPORT int cublasGetVersion_v2(struct handle *handle, int *version)
{
    (void)handle;
    *version = 130401;
    return SUCCESS;
}

SIM_EXPORT int cublasSetStream_v2(struct handle *handle, void *stream)
{
    handle->stream = stream;
    return SUCCESS;
}

SIM_EXPORT int cublasGetStream_v2(struct handle *handle, void **stream)
{
    *stream = handle->stream;
    return SUCCESS;
}

#define PROPERTY(name, field)                                         \
    SIM_EXPORT int cublasGet##name(struct handle *handle, int *value) \
    {                                                                 \
        *value = handle->field;                                       \
        return SUCCESS;                                               \
    }                                                                 \
    SIM_EXPORT int cublasSet##name(struct handle *handle, int value)  \
    {                                                                 \
        handle->field = value;                                        \
        return SUCCESS;                                               \
    }
PROPERTY(MathMode, math_mode)
PROPERTY(PointerMode_v2, pointer_mode)
PROPERTY(SmCountTarget, sm_target)

SIM_EXPORT const char *cublasGetStatusName(int status)
{
    return status == SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}

SIM_EXPORT const char *cublasGetStatusString(int status) { return cublasGetStatusName(status); }

/* --- products of matrices --- */

#define GEMM(letter, type)                                                                                           \
    SIM_EXPORT int cublas##letter##gemm_v2(struct handle *handle, int ta, int tb, int m, int n, int k)               \
    {                                                                                                                \
        (void)ta, (void)tb, (void)k;                                                                                 \
        return gemm(handle, type, m, n, 1);                                                                          \
    }                                                                                                                \
    SIM_EXPORT int cublas##letter##gemmStridedBatched(struct handle *handle, int ta, int tb, int m, int n, int k,    \
                                                      const void *alpha, const void *a, int lda, long long stride_a, \
                                                      const void *b, int ldb, long long stride_b, const void *beta,  \
                                                      const void *c, int ldc, long long stride_c, int batch)         \
    {                                                                                                                \
        (void)ta, (void)tb, (void)k, (void)alpha, (void)a, (void)lda, (void)stride_a, (void)b, (void)ldb;            \
        (void)stride_b, (void)beta, (void)c, (void)ldc, (void)stride_c;                                              \
        return gemm(handle, type, m, n, batch);                                                                      \
    }
GEMM(S, REAL_32F)
GEMM(D, REAL_64F)
GEMM(C, COMPLEX_32F)
GEMM(Z, COMPLEX_64F)

SIM_EXPORT int cublasGemmEx(struct handle *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                            const void *a, int type)
{
    (void)ta, (void)tb, (void)k, (void)alpha, (void)a;
    return gemm(handle, type, m, n, 1);
}

SIM_EXPORT int cublasSgemmEx(struct handle *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                             const void *a, int type)
{
    return cublasGemmEx(handle, ta, tb, m, n, k, alpha, a, type);
}

SIM_EXPORT int cublasGemmStridedBatchedEx(struct handle *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                                          const void *a, int type, int lda, long long stride_a, const void *b,
                                          int b_type, int ldb, long long stride_b, const void *beta, void *c,
                                          int c_type, int ldc, long long stride_c, int batch)
{
    (void)ta, (void)tb, (void)k, (void)alpha, (void)a, (void)lda, (void)stride_a, (void)b, (void)b_type, (void)ldb;
    (void)stride_b, (void)beta, (void)c, (void)c_type, (void)ldc, (void)stride_c;
    return gemm(handle, type, m, n, batch);
}

/* --- matrix by vector, vector by vector, triangular systems --- */

#define VECTOR(letter, real, mangled_gemv, mangled_dot)                                                               \
    SIM_EXPORT int cublas##letter##gemv_v2(struct handle *handle, int trans, int m, int n)                            \
    {                                                                                                                 \
        (void)trans;                                                                                                  \
        return launch(handle, mangled_gemv, (int64_t)m * n, 1, 1, 0);                                                 \
    }                                                                                                                 \
    SIM_EXPORT int cublas##letter##trsm_v2(struct handle *handle, int side, int uplo, int trans, int diag, int m,     \
                                           int n)                                                                     \
    {                                                                                                                 \
        (void)side, (void)uplo, (void)trans, (void)diag;                                                              \
        return launch(handle, "_Z17trsm_left_kernelI" real "Li256ELi4ELb0ELb1ELb1ELb1ELb0EEv", m, n, 1, 0);           \
    }                                                                                                                 \
    SIM_EXPORT int cublas##letter##trsmBatched(struct handle *handle, int side, int uplo, int trans, int diag, int m, \
                                               int n)                                                                 \
    {                                                                                                                 \
        return cublas##letter##trsm_v2(handle, side, uplo, trans, diag, m, n);                                        \
    }                                                                                                                 \
    static int dot_##letter(struct handle *handle, int n) { return launch(handle, mangled_dot, n, 1, 1, 0); }

#define DOT(type)                                                                  \
    "_Z10dot_kernelI" type "Li128ELi0E15cublasDotParamsI16cublasGemvTensorIK" type \
    "E30cublasGemvTensorStridedBatchedI" type "EEEvT2_"
#define GEMV(type) \
    "_Z16gemv2T_kernel_valIii" type type type "Li128ELi16ELi4ELi4ELb0E16cublasGemvParamsI" type "EEvT6_T4_S3_"
VECTOR(S, "f", GEMV("f"), DOT("f"))
VECTOR(D, "d", GEMV("d"), DOT("d"))
VECTOR(C, "6float2", GEMV("6float2"), DOT("6float2"))
VECTOR(Z, "7double2", GEMV("7double2"), DOT("7double2"))

SIM_EXPORT int cublasSdot_v2(struct handle *handle, int n) { return dot_S(handle, n); }
SIM_EXPORT int cublasDdot_v2(struct handle *handle, int n) { return dot_D(handle, n); }
SIM_EXPORT int cublasCdotu_v2(struct handle *handle, int n) { return dot_C(handle, n); }
SIM_EXPORT int cublasCdotc_v2(struct handle *handle, int n) { return dot_C(handle, n); }
SIM_EXPORT int cublasZdotu_v2(struct handle *handle, int n) { return dot_Z(handle, n); }
SIM_EXPORT int cublasZdotc_v2(struct handle *handle, int n) { return dot_Z(handle, n); }
SIM_EXPORT int cublasDotEx(struct handle *handle, int n) { return dot_S(handle, n); }

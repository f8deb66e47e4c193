// SPDX-License-Identifier: Apache-2.0
/*
 * cublasLt.c - libcublasLt.so.N: one algorithm for everything, launched by the driver call, as Hopper's kernels are
 *
 * SIMGPU_CUBLASLT=0: the heuristics know no algorithm, and callers fall back to cuBLAS.
 */
#include "test/doubles/simgpu/vendor/launch.h"

#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALISED = 1, ALLOC_FAILED = 3, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { REAL_32F = 0, REAL_16F = 2, REAL_16BF = 14 };

struct layout {
    int type;
    uint64_t rows, columns;
    int32_t batch;
};

struct heuristic { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

enum { LAYOUT_BATCH_COUNT = 5 };

SIM_EXPORT int cublasLtCreate(void **handle)
{
    *handle = sim_core() != NULL ? calloc(1, 16) : NULL;
    return *handle != NULL ? SUCCESS : NOT_INITIALISED;
}

SIM_EXPORT int cublasLtDestroy(void *handle)
{
    free(handle);
    return SUCCESS;
}

SIM_EXPORT size_t cublasLtGetVersion(void) { return 130401; }
SIM_EXPORT size_t cublasLtGetCudartVersion(void) { return 13020; }

/* Descriptors of a product and of preferences: nobody here looks into them. */
static int descriptor_make(void **descriptor)
{
    *descriptor = calloc(1, 256);
    return *descriptor != NULL ? SUCCESS : ALLOC_FAILED;
}

static int descriptor_free(void *descriptor)
{
    free(descriptor);
    return SUCCESS;
}

SIM_EXPORT int cublasLtMatmulDescCreate(void **descriptor) { return descriptor_make(descriptor); }
SIM_EXPORT int cublasLtMatmulDescDestroy(void *descriptor) { return descriptor_free(descriptor); }
SIM_EXPORT int cublasLtMatmulPreferenceCreate(void **descriptor) { return descriptor_make(descriptor); }
SIM_EXPORT int cublasLtMatmulPreferenceDestroy(void *descriptor) { return descriptor_free(descriptor); }

SIM_EXPORT int cublasLtMatrixLayoutCreate(struct layout **layout, int type, uint64_t rows, uint64_t columns)
{
    *layout = calloc(1, sizeof **layout);
    if (*layout == NULL) return ALLOC_FAILED;
    **layout = (struct layout){type, rows, columns, 1};
    return SUCCESS;
}

SIM_EXPORT int cublasLtMatrixLayoutDestroy(struct layout *layout)
{
    free(layout);
    return SUCCESS;
}

SIM_EXPORT int cublasLtMatrixLayoutSetAttribute(struct layout *layout, int attribute, const void *value, size_t bytes)
{
    if (attribute == LAYOUT_BATCH_COUNT && bytes >= sizeof layout->batch)
        memcpy(&layout->batch, value, sizeof layout->batch);
    return SUCCESS;
}

SIM_EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d,
                                              void *preference, int wanted, struct heuristic *results, int *found)
{
    (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)preference;
    const char *setting = getenv("SIMGPU_CUBLASLT");
    *found = 0;
    if (wanted < 1 || (setting != NULL && setting[0] == '0')) return NOT_SUPPORTED;
    memset(results, 0, sizeof *results);
    results->waves = 1;
    *found = 1;
    return SUCCESS;
}

static const char *matmul_kernel(int type)
{
    switch (type) {
    case REAL_16BF: return "nvjet_tst_128x128_64x6_2x1_v_bz_coopA_TNT";
    case REAL_16F: return "nvjet_hsh_128x128_64x6_2x1_v_bz_coopA_TNT";
    default: return "nvjet_sst_128x64_32x8_1x1_v_bz_TNT";
    }
}

SIM_EXPORT int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a,
                              const struct layout *a_layout, const void *b, const struct layout *b_layout,
                              const void *beta, const void *c, const struct layout *c_layout, void *d,
                              const struct layout *d_layout, const void *algo, void *workspace, size_t workspace_bytes,
                              void *stream)
{
    (void)handle, (void)product, (void)alpha, (void)a, (void)b, (void)b_layout, (void)beta, (void)c, (void)c_layout,
        (void)d;
    (void)algo, (void)workspace, (void)workspace_bytes;
    struct sim_launch work = {matmul_kernel(a_layout->type),
                              {sim_tiles((int64_t)d_layout->rows, 128), sim_tiles((int64_t)d_layout->columns, 128),
                               (uint32_t)(d_layout->batch > 0 ? d_layout->batch : 1)},
                              {384, 1, 1},
                              196608,
                              stream,
                              true,
                              NULL,
                              NULL};
    return sim_vendor_launch(&work) == 0 ? SUCCESS : EXECUTION_FAILED;
}

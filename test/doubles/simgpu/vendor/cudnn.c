// SPDX-License-Identifier: Apache-2.0
/*
 * cudnn.c - libcudnn.so.9: convolutions (graph API and the older calls) and batch norm as one kernel each
 *
 * The graph API keeps of every descriptor only what says which kernel an execution plan stands for: the first operation
 * of its graph. Heuristics know one engine; no plan wants workspace. What has no function here (names/cudnn.txt)
 * answers 0 and does nothing: recurrent layers are not simulated (torch.backends.cudnn.enabled = False runs them as
 * GEMMs).
 */
#include "test/doubles/simgpu/vendor/launch.h"

#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALISED = 1001, BAD_PARAM = 2000, ALLOC_FAILED = 4003, EXECUTION_FAILED = 5000 };

struct handle {
    void *stream;
};

SIM_EXPORT size_t cudnnGetVersion(void) { return 92600; }
SIM_EXPORT size_t cudnnGetCudartVersion(void) { return 13020; }

SIM_EXPORT int cudnnGetProperty(int what, int *value)
{
    static const int version[] = {9, 26, 0}; /* MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL */
    if (what < 0 || what > 2) return BAD_PARAM;
    *value = version[what];
    return SUCCESS;
}

SIM_EXPORT const char *cudnnGetErrorString(int status)
{
    return status == SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_EXECUTION_FAILED";
}

SIM_EXPORT void cudnnGetLastErrorString(char *message, size_t bytes)
{
    if (bytes > 0) message[0] = '\0';
}

SIM_EXPORT int cudnnCreate(struct handle **handle)
{
    *handle = sim_core() != NULL ? calloc(1, sizeof **handle) : NULL;
    return *handle != NULL ? SUCCESS : NOT_INITIALISED;
}

SIM_EXPORT int cudnnDestroy(struct handle *handle)
{
    free(handle);
    return SUCCESS;
}

SIM_EXPORT int cudnnSetStream(struct handle *handle, void *stream)
{
    handle->stream = stream;
    return SUCCESS;
}

SIM_EXPORT int cudnnGetStream(struct handle *handle, void **stream)
{
    *stream = handle->stream;
    return SUCCESS;
}

/* Descriptors of the older API: memory that nobody looks into. */
#define DESCRIPTOR(what)                                            \
    SIM_EXPORT int cudnnCreate##what##Descriptor(void **descriptor) \
    {                                                               \
        *descriptor = calloc(1, 512);                               \
        return *descriptor != NULL ? SUCCESS : ALLOC_FAILED;        \
    }                                                               \
    SIM_EXPORT int cudnnDestroy##what##Descriptor(void *descriptor) \
    {                                                               \
        free(descriptor);                                           \
        return SUCCESS;                                             \
    }
DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
DESCRIPTOR(Activation)
DESCRIPTOR(Pooling)
DESCRIPTOR(Dropout)
DESCRIPTOR(RNN)
DESCRIPTOR(RNNData)
DESCRIPTOR(CTCLoss)
DESCRIPTOR(SpatialTransformer)

/* --- what is launched --- */

enum operation {
    OP_FORWARD = 10,
    OP_BACKWARD_FILTER = 11,
    OP_BACKWARD_DATA = 12
}; /* CUDNN_BACKEND_OPERATION_CONVOLUTION_* */

static const char *kernel_of(int operation)
{
    switch (operation) {
    case OP_FORWARD:
        return "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x32_warpgroupsize1x1x1_"
               "g1_strided_execute_segment_k_off_kernel__5x_cudnn";
    case OP_BACKWARD_FILTER:
        return "sm90_xmma_wgrad_implicit_gemm_indexed_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_"
               "warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn";
    case OP_BACKWARD_DATA:
        return "sm90_xmma_dgrad_implicit_gemm_indexed_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_"
               "warpgroupsize1x1x1_g1_strided_execute_segment_k_off_kernel__5x_cudnn";
    default: return "cudnn_generated_fort_native_pointwise_kernel";
    }
}

static int launch(struct handle *handle, const char *kernel, uint32_t blocks, uint32_t smem)
{
    if (handle == NULL) return BAD_PARAM;
    struct sim_launch work = {kernel, {blocks, 1, 1}, {256, 1, 1}, smem, handle->stream, false, NULL, NULL};
    return sim_vendor_launch(&work) == 0 ? SUCCESS : EXECUTION_FAILED;
}

static int convolve(struct handle *handle, int operation) { return launch(handle, kernel_of(operation), 132, 73728); }

/* --- graph API --- */

enum { ENGINECFG = 3, ENGINEHEUR = 4, OPERATIONGRAPH = 15 };
enum attribute {
    ATTR_HEUR_GRAPH = 201,
    ATTR_HEUR_RESULTS = 202,
    ATTR_CFG_ENGINE = 300,
    ATTR_PLAN_CONFIG = 401,
    ATTR_GRAPH_OPS = 801,
    ATTR_ENGINE_GRAPH = 1300
};
enum type { TYPE_INT64 = 3, TYPE_DESCRIPTOR = 15, TYPE_INT32 = 23 };

struct descriptor {
    int type;
    int operation; /* of a graph and all that is made from it: its first operation's descriptor type */
};

SIM_EXPORT int cudnnBackendCreateDescriptor(int type, struct descriptor **descriptor)
{
    *descriptor = calloc(1, sizeof **descriptor);
    if (*descriptor == NULL) return ALLOC_FAILED;
    (*descriptor)->type = (*descriptor)->operation = type;
    return SUCCESS;
}

SIM_EXPORT int cudnnBackendDestroyDescriptor(struct descriptor *descriptor)
{
    free(descriptor);
    return SUCCESS;
}

SIM_EXPORT int cudnnBackendSetAttribute(struct descriptor *descriptor, int attribute, int type, int64_t n,
                                        const void *values)
{
    bool is_source = attribute == ATTR_HEUR_GRAPH || attribute == ATTR_CFG_ENGINE || attribute == ATTR_PLAN_CONFIG ||
                     attribute == ATTR_GRAPH_OPS || attribute == ATTR_ENGINE_GRAPH;
    if (is_source && type == TYPE_DESCRIPTOR && n > 0)
        descriptor->operation = (*(struct descriptor *const *)values)->operation;
    return SUCCESS;
}

/* The caller made the descriptors that are filled in: one result, for the graph that was asked about. */
static int results_get(const struct descriptor *heuristics, int64_t wanted, int64_t *found, struct descriptor **results)
{
    *found = 1;
    if (wanted > 0 && results != NULL) results[0]->operation = heuristics->operation;
    return SUCCESS;
}

SIM_EXPORT int cudnnBackendGetAttribute(const struct descriptor *descriptor, int attribute, int type, int64_t wanted,
                                        int64_t *found, void *values)
{
    int64_t ignored;
    found = found != NULL ? found : &ignored;
    if (attribute == ATTR_HEUR_RESULTS) return results_get(descriptor, wanted, found, values);
    *found = 0;
    if (wanted < 1 || values == NULL) return SUCCESS;
    if (attribute == ATTR_CFG_ENGINE) {
        (*(struct descriptor **)values)->operation = descriptor->operation;
        *found = 1;
    } else if (type == TYPE_INT64 || type == TYPE_INT32) { /* sizes of workspace, indices of engines */
        memset(values, 0, type == TYPE_INT64 ? 8 : 4);
        *found = 1;
    }
    return SUCCESS;
}

SIM_EXPORT int cudnnBackendExecute(struct handle *handle, const struct descriptor *plan)
{
    return convolve(handle, plan->operation);
}

/* --- the older calls of convolutions --- */

#define NO_WORKSPACE(what)                                                                                    \
    SIM_EXPORT int cudnnGetConvolution##what##WorkspaceSize(void *handle, void *a, void *b, void *c, void *d, \
                                                            int algo, size_t *bytes)                          \
    {                                                                                                         \
        (void)handle, (void)a, (void)b, (void)c, (void)d, (void)algo;                                         \
        *bytes = 0;                                                                                           \
        return SUCCESS;                                                                                       \
    }
NO_WORKSPACE(Forward)
NO_WORKSPACE(BackwardData)
NO_WORKSPACE(BackwardFilter)

enum { ALGORITHM_BYTES = 48 }; /* cudnnConvolution*AlgoPerf_t; zeros are algorithm 0 with success */

#define ALGORITHM(what)                                                                                      \
    SIM_EXPORT int cudnnGetConvolution##what##Algorithm_v7(void *handle, void *a, void *b, void *c, void *d, \
                                                           int wanted, int *found, void *results)            \
    {                                                                                                        \
        (void)handle, (void)a, (void)b, (void)c, (void)d;                                                    \
        *found = wanted > 0;                                                                                 \
        if (wanted > 0) memset(results, 0, ALGORITHM_BYTES);                                                 \
        return SUCCESS;                                                                                      \
    }
ALGORITHM(Forward)
ALGORITHM(BackwardData)
ALGORITHM(BackwardFilter)

SIM_EXPORT int cudnnConvolutionForward(struct handle *handle) { return convolve(handle, OP_FORWARD); }
SIM_EXPORT int cudnnConvolutionBackwardData(struct handle *handle) { return convolve(handle, OP_BACKWARD_DATA); }
SIM_EXPORT int cudnnConvolutionBackwardFilter(struct handle *handle) { return convolve(handle, OP_BACKWARD_FILTER); }
SIM_EXPORT int cudnnConvolutionBiasActivationForward(struct handle *handle) { return convolve(handle, OP_FORWARD); }

/* --- batch norm --- */

SIM_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void *handle, int mode, int ops, void *a,
                                                                        void *b, void *c, void *d, void *e,
                                                                        size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)a, (void)b, (void)c, (void)d, (void)e;
    *bytes = 0;
    return SUCCESS;
}

SIM_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void *handle, int mode, int ops, void *a, void *b,
                                                                 void *c, void *d, void *e, void *f, void *g,
                                                                 size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g;
    *bytes = 0;
    return SUCCESS;
}

SIM_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *handle, int mode, int ops, void *a, void *b,
                                                                    size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)a, (void)b;
    *bytes = 0;
    return SUCCESS;
}

SIM_EXPORT int cudnnBatchNormalizationForwardTrainingEx(struct handle *handle)
{
    return launch(
        handle,
        "_ZN5cudnn24bn_fw_tr_1C11_singlereadIfLi512ELb1ELi1ELi2ELi1EEEv17cudnnTensorStructPKfS1_PfS2_S2_S2_S2_ff", 64,
        0);
}

SIM_EXPORT int cudnnBatchNormalizationForwardInference(struct handle *handle)
{
    return launch(handle, "_ZN5cudnn20bn_fw_inf_1C11_kernelIffLb1ELi1EEEvffPKT_S1_PKT0_S4_S4_S4_f", 64, 0);
}

SIM_EXPORT int cudnnBatchNormalizationBackwardEx(struct handle *handle)
{
    return launch(handle, "_ZN5cudnn20bn_bw_1C11_singlereadIfLi512ELb1ELi1ELi2ELi1EEEvffffPKfS1_PfS2_S2_S2_f", 64, 0);
}

// SPDX-License-Identifier: Apache-2.0
/* layout.h - record sizes and fields by version; made by generate.py from test/data/cupti_layouts.json */
/* clang-format off */
#pragma once

#define LAYOUT_VERSIONS 17
#define LAYOUT_VERSION_NAMES {"11.7", "11.8", "12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.8", \
    "12.9", "13.0", "13.1", "13.2", "13.3", "13.4", "13.5"}

enum simcupti_kind {
    KIND_MEMCPY = 1,
    KIND_MEMSET = 2,
    KIND_KERNEL = 3,
    KIND_DRIVER = 4,
    KIND_RUNTIME = 5,
    KIND_EVENT = 6,
    KIND_METRIC = 7,
    KIND_DEVICE = 8,
    KIND_CONTEXT = 9,
    KIND_CONCURRENT_KERNEL = 10,
    KIND_NAME = 11,
    KIND_MARKER = 12,
    KIND_MARKER_DATA = 13,
    KIND_SOURCE_LOCATOR = 14,
    KIND_GLOBAL_ACCESS = 15,
    KIND_BRANCH = 16,
    KIND_OVERHEAD = 17,
    KIND_CDP_KERNEL = 18,
    KIND_PREEMPTION = 19,
    KIND_ENVIRONMENT = 20,
    KIND_EVENT_INSTANCE = 21,
    KIND_MEMCPY2 = 22,
    KIND_METRIC_INSTANCE = 23,
    KIND_INSTRUCTION_EXECUTION = 24,
    KIND_UNIFIED_MEMORY_COUNTER = 25,
    KIND_FUNCTION = 26,
    KIND_MODULE = 27,
    KIND_DEVICE_ATTRIBUTE = 28,
    KIND_SHARED_ACCESS = 29,
    KIND_PC_SAMPLING = 30,
    KIND_PC_SAMPLING_RECORD_INFO = 31,
    KIND_INSTRUCTION_CORRELATION = 32,
    KIND_OPENACC_DATA = 33,
    KIND_OPENACC_LAUNCH = 34,
    KIND_OPENACC_OTHER = 35,
    KIND_CUDA_EVENT = 36,
    KIND_STREAM = 37,
    KIND_SYNCHRONIZATION = 38,
    KIND_EXTERNAL_CORRELATION = 39,
    KIND_NVLINK = 40,
    KIND_INSTANTANEOUS_EVENT = 41,
    KIND_INSTANTANEOUS_EVENT_INSTANCE = 42,
    KIND_INSTANTANEOUS_METRIC = 43,
    KIND_INSTANTANEOUS_METRIC_INSTANCE = 44,
    KIND_MEMORY = 45,
    KIND_PCIE = 46,
    KIND_OPENMP = 47,
    KIND_INTERNAL_LAUNCH_API = 48,
    KIND_MEMORY2 = 49,
    KIND_MEMORY_POOL = 50,
    KIND_GRAPH_TRACE = 51,
    KIND_JIT = 52,
    KIND_DEVICE_GRAPH_TRACE = 53,
    KIND_MEM_DECOMPRESS = 54,
    KIND_CONFIDENTIAL_COMPUTE_ROTATION = 55,
    KIND_GRAPH_HOST_NODE = 56,
    KIND_COMPUTE_ENGINE_CTX_SWITCH = 57,
    KIND_HOST_LAUNCH = 58,
    KIND_GREEN_CONTEXT = 59,
    KIND_COUNT
};

static const unsigned short layout_sizes[KIND_COUNT][LAYOUT_VERSIONS] = {
    [KIND_MEMCPY] = {88, 88, 88, 88, 88, 88, 88, 88, 88, 96, 96, 96, 96, 96, 96, 112, 112},
    [KIND_MEMSET] = {88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 104, 104},
    [KIND_KERNEL] = {176, 200, 208, 208, 208, 208, 208, 208, 208, 208, 208, 216, 224, 224, 232, 248, 248},
    [KIND_DRIVER] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40},
    [KIND_RUNTIME] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40},
    [KIND_EVENT] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 0, 0, 0, 0, 0, 0},
    [KIND_METRIC] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 0, 0, 0, 0, 0, 0},
    [KIND_DEVICE] = {176, 176, 176, 176, 184, 184, 184, 184, 184, 184, 184, 184, 184, 192, 192, 192, 192},
    [KIND_CONTEXT] = {16, 16, 16, 16, 16, 16, 24, 32, 32, 32, 32, 32, 40, 40, 40, 40, 40},
    [KIND_CONCURRENT_KERNEL] = {176, 200, 208, 208, 208, 208, 208, 208, 208, 208, 208, 216, 224, 224, 232, 248, 248},
    [KIND_NAME] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32},
    [KIND_MARKER] = {56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56},
    [KIND_MARKER_DATA] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 40, 40, 40, 40, 40, 40},
    [KIND_SOURCE_LOCATOR] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 0, 0, 0, 0, 0, 0},
    [KIND_GLOBAL_ACCESS] = {56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 0, 0, 0, 0, 0, 0},
    [KIND_BRANCH] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 0, 0, 0, 0, 0, 0},
    [KIND_OVERHEAD] = {40, 40, 40, 40, 40, 48, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56},
    [KIND_CDP_KERNEL] = {144, 144, 144, 144, 144, 144, 144, 144, 144, 144, 144, 144, 144, 144, 144, 144, 144},
    [KIND_PREEMPTION] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40},
    [KIND_ENVIRONMENT] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40},
    [KIND_EVENT_INSTANCE] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0},
    [KIND_MEMCPY2] = {96, 96, 96, 96, 96, 96, 96, 96, 96, 96, 96, 96, 96, 96, 96, 96, 96},
    [KIND_METRIC_INSTANCE] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0},
    [KIND_INSTRUCTION_EXECUTION] = {48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 0, 0, 0, 0, 0, 0},
    [KIND_UNIFIED_MEMORY_COUNTER] = {64, 64, 64, 64, 64, 64, 64, 64, 64, 104, 104, 104, 104, 104, 104, 104, 104},
    [KIND_FUNCTION] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32},
    [KIND_MODULE] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24},
    [KIND_DEVICE_ATTRIBUTE] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24},
    [KIND_SHARED_ACCESS] = {56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 0, 0, 0, 0, 0, 0},
    [KIND_PC_SAMPLING] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 0, 0, 0, 0, 0, 0},
    [KIND_PC_SAMPLING_RECORD_INFO] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0},
    [KIND_INSTRUCTION_CORRELATION] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 0, 0, 0, 0, 0, 0},
    [KIND_OPENACC_DATA] = {152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152},
    [KIND_OPENACC_LAUNCH] = {152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152, 152},
    [KIND_OPENACC_OTHER] = {120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120},
    [KIND_CUDA_EVENT] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 56, 56, 56, 56, 56, 56, 56, 80},
    [KIND_STREAM] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24},
    [KIND_SYNCHRONIZATION] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 56, 56, 56, 56, 56, 56, 56, 56},
    [KIND_EXTERNAL_CORRELATION] = {24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24},
    [KIND_NVLINK] = {136, 136, 136, 136, 136, 136, 136, 136, 136, 136, 136, 136, 136, 88, 88, 88, 88},
    [KIND_INSTANTANEOUS_EVENT] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0},
    [KIND_INSTANTANEOUS_EVENT_INSTANCE] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0},
    [KIND_INSTANTANEOUS_METRIC] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0},
    [KIND_INSTANTANEOUS_METRIC_INSTANCE] = {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0},
    [KIND_MEMORY] = {80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80},
    [KIND_PCIE] = {168, 168, 168, 168, 168, 168, 168, 168, 168, 168, 168, 168, 168, 168, 168, 168, 168},
    [KIND_OPENMP] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40},
    [KIND_INTERNAL_LAUNCH_API] = {40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40},
    [KIND_MEMORY2] = {120, 120, 120, 120, 120, 120, 120, 120, 128, 128, 128, 128, 128, 128, 128, 128, 128},
    [KIND_MEMORY_POOL] = {72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 80, 80, 80, 80, 80, 80},
    [KIND_GRAPH_TRACE] = {48, 48, 48, 48, 48, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56},
    [KIND_JIT] = {0, 64, 64, 64, 64, 64, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72},
    [KIND_DEVICE_GRAPH_TRACE] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 56, 56, 56, 56, 56, 56, 56, 56},
    [KIND_MEM_DECOMPRESS] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 64, 64, 64, 64, 64, 64, 64},
    [KIND_CONFIDENTIAL_COMPUTE_ROTATION] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 32, 32, 32, 32, 32, 32},
    [KIND_GRAPH_HOST_NODE] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 56, 56, 56, 56, 56},
    [KIND_COMPUTE_ENGINE_CTX_SWITCH] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 24, 24, 24, 24},
    [KIND_HOST_LAUNCH] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48, 48, 48, 48, 48},
    [KIND_GREEN_CONTEXT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 168, 168, 304, 304},
};

/* A field: where it lies, its size, and the first version (an index) whose records have it. */
struct layout_field {
    unsigned short offset;
    unsigned char size, since;
};

#define RUNTIME_cbid ((struct layout_field){4, 4, 0})
#define RUNTIME_start ((struct layout_field){8, 8, 0})
#define RUNTIME_end ((struct layout_field){16, 8, 0})
#define RUNTIME_processId ((struct layout_field){24, 4, 0})
#define RUNTIME_threadId ((struct layout_field){28, 4, 0})
#define RUNTIME_correlationId ((struct layout_field){32, 4, 0})
#define RUNTIME_returnValue ((struct layout_field){36, 4, 0})
#define KERNEL_cacheConfig ((struct layout_field){4, 1, 0})
#define KERNEL_cacheConfig_both ((struct layout_field){4, 1, 0})
#define KERNEL_cacheConfig_config ((struct layout_field){4, 1, 0})
#define KERNEL_cacheConfig_config_requested ((struct layout_field){4, 1, 0})
#define KERNEL_cacheConfig_config_executed ((struct layout_field){4, 1, 0})
#define KERNEL_sharedMemoryConfig ((struct layout_field){5, 1, 0})
#define KERNEL_registersPerThread ((struct layout_field){6, 2, 0})
#define KERNEL_partitionedGlobalCacheRequested ((struct layout_field){8, 4, 0})
#define KERNEL_partitionedGlobalCacheExecuted ((struct layout_field){12, 4, 0})
#define KERNEL_start ((struct layout_field){16, 8, 0})
#define KERNEL_end ((struct layout_field){24, 8, 0})
#define KERNEL_completed ((struct layout_field){32, 8, 0})
#define KERNEL_deviceId ((struct layout_field){40, 4, 0})
#define KERNEL_contextId ((struct layout_field){44, 4, 0})
#define KERNEL_streamId ((struct layout_field){48, 4, 0})
#define KERNEL_gridX ((struct layout_field){52, 4, 0})
#define KERNEL_gridY ((struct layout_field){56, 4, 0})
#define KERNEL_gridZ ((struct layout_field){60, 4, 0})
#define KERNEL_blockX ((struct layout_field){64, 4, 0})
#define KERNEL_blockY ((struct layout_field){68, 4, 0})
#define KERNEL_blockZ ((struct layout_field){72, 4, 0})
#define KERNEL_staticSharedMemory ((struct layout_field){76, 4, 0})
#define KERNEL_dynamicSharedMemory ((struct layout_field){80, 4, 0})
#define KERNEL_localMemoryPerThread ((struct layout_field){84, 4, 0})
#define KERNEL_localMemoryTotal ((struct layout_field){88, 4, 0})
#define KERNEL_correlationId ((struct layout_field){92, 4, 0})
#define KERNEL_gridId ((struct layout_field){96, 8, 0})
#define KERNEL_name ((struct layout_field){104, 8, 0})
#define KERNEL_queued ((struct layout_field){120, 8, 0})
#define KERNEL_submitted ((struct layout_field){128, 8, 0})
#define KERNEL_launchType ((struct layout_field){136, 1, 0})
#define KERNEL_isSharedMemoryCarveoutRequested ((struct layout_field){137, 1, 0})
#define KERNEL_sharedMemoryCarveoutRequested ((struct layout_field){138, 1, 0})
#define KERNEL_sharedMemoryExecuted ((struct layout_field){140, 4, 0})
#define KERNEL_graphNodeId ((struct layout_field){144, 8, 0})
#define KERNEL_shmemLimitConfig ((struct layout_field){152, 4, 0})
#define KERNEL_graphId ((struct layout_field){156, 4, 0})
#define KERNEL_pAccessPolicyWindow ((struct layout_field){160, 8, 0})
#define KERNEL_channelID ((struct layout_field){168, 4, 0})
#define KERNEL_channelType ((struct layout_field){172, 4, 0})
#define KERNEL_clusterX ((struct layout_field){176, 4, 1})
#define KERNEL_clusterY ((struct layout_field){180, 4, 1})
#define KERNEL_clusterZ ((struct layout_field){184, 4, 1})
#define KERNEL_clusterSchedulingPolicy ((struct layout_field){188, 4, 1})
#define KERNEL_localMemoryTotal_v2 ((struct layout_field){192, 8, 1})
#define KERNEL_maxPotentialClusterSize ((struct layout_field){200, 4, 2})
#define KERNEL_maxActiveClusters ((struct layout_field){204, 4, 2})
#define KERNEL_isDeviceLaunched ((struct layout_field){208, 1, 11})
#define KERNEL_priority ((struct layout_field){216, 4, 12})
#define KERNEL_executionModel ((struct layout_field){224, 4, 14})
#define KERNEL_sourceGraphId ((struct layout_field){232, 4, 15})
#define KERNEL_sourceGraphNodeId ((struct layout_field){240, 8, 15})
#define MEMCPY_copyKind ((struct layout_field){4, 1, 0})
#define MEMCPY_srcKind ((struct layout_field){5, 1, 0})
#define MEMCPY_dstKind ((struct layout_field){6, 1, 0})
#define MEMCPY_flags ((struct layout_field){7, 1, 0})
#define MEMCPY_bytes ((struct layout_field){8, 8, 0})
#define MEMCPY_start ((struct layout_field){16, 8, 0})
#define MEMCPY_end ((struct layout_field){24, 8, 0})
#define MEMCPY_deviceId ((struct layout_field){32, 4, 0})
#define MEMCPY_contextId ((struct layout_field){36, 4, 0})
#define MEMCPY_streamId ((struct layout_field){40, 4, 0})
#define MEMCPY_correlationId ((struct layout_field){44, 4, 0})
#define MEMCPY_runtimeCorrelationId ((struct layout_field){48, 4, 0})
#define MEMCPY_graphNodeId ((struct layout_field){64, 8, 0})
#define MEMCPY_graphId ((struct layout_field){72, 4, 0})
#define MEMCPY_channelID ((struct layout_field){76, 4, 0})
#define MEMCPY_channelType ((struct layout_field){80, 4, 0})
#define MEMCPY_copyCount ((struct layout_field){88, 8, 9})
#define MEMCPY_isDeviceLaunched ((struct layout_field){84, 1, 11})
#define MEMCPY_sourceGraphId ((struct layout_field){96, 4, 15})
#define MEMCPY_sourceGraphNodeId ((struct layout_field){104, 8, 15})
#define MEMCPY2_copyKind ((struct layout_field){4, 1, 0})
#define MEMCPY2_srcKind ((struct layout_field){5, 1, 0})
#define MEMCPY2_dstKind ((struct layout_field){6, 1, 0})
#define MEMCPY2_flags ((struct layout_field){7, 1, 0})
#define MEMCPY2_bytes ((struct layout_field){8, 8, 0})
#define MEMCPY2_start ((struct layout_field){16, 8, 0})
#define MEMCPY2_end ((struct layout_field){24, 8, 0})
#define MEMCPY2_deviceId ((struct layout_field){32, 4, 0})
#define MEMCPY2_contextId ((struct layout_field){36, 4, 0})
#define MEMCPY2_streamId ((struct layout_field){40, 4, 0})
#define MEMCPY2_srcDeviceId ((struct layout_field){44, 4, 0})
#define MEMCPY2_srcContextId ((struct layout_field){48, 4, 0})
#define MEMCPY2_dstDeviceId ((struct layout_field){52, 4, 0})
#define MEMCPY2_dstContextId ((struct layout_field){56, 4, 0})
#define MEMCPY2_correlationId ((struct layout_field){60, 4, 0})
#define MEMCPY2_graphNodeId ((struct layout_field){72, 8, 0})
#define MEMCPY2_graphId ((struct layout_field){80, 4, 0})
#define MEMCPY2_channelID ((struct layout_field){84, 4, 0})
#define MEMCPY2_channelType ((struct layout_field){88, 4, 0})
#define MEMSET_value ((struct layout_field){4, 4, 0})
#define MEMSET_bytes ((struct layout_field){8, 8, 0})
#define MEMSET_start ((struct layout_field){16, 8, 0})
#define MEMSET_end ((struct layout_field){24, 8, 0})
#define MEMSET_deviceId ((struct layout_field){32, 4, 0})
#define MEMSET_contextId ((struct layout_field){36, 4, 0})
#define MEMSET_streamId ((struct layout_field){40, 4, 0})
#define MEMSET_correlationId ((struct layout_field){44, 4, 0})
#define MEMSET_flags ((struct layout_field){48, 2, 0})
#define MEMSET_memoryKind ((struct layout_field){50, 2, 0})
#define MEMSET_graphNodeId ((struct layout_field){64, 8, 0})
#define MEMSET_graphId ((struct layout_field){72, 4, 0})
#define MEMSET_channelID ((struct layout_field){76, 4, 0})
#define MEMSET_channelType ((struct layout_field){80, 4, 0})
#define MEMSET_isDeviceLaunched ((struct layout_field){84, 1, 11})
#define MEMSET_sourceGraphId ((struct layout_field){88, 4, 15})
#define MEMSET_sourceGraphNodeId ((struct layout_field){96, 8, 15})
#define SYNCHRONIZATION_type ((struct layout_field){4, 4, 0})
#define SYNCHRONIZATION_start ((struct layout_field){8, 8, 0})
#define SYNCHRONIZATION_end ((struct layout_field){16, 8, 0})
#define SYNCHRONIZATION_correlationId ((struct layout_field){24, 4, 0})
#define SYNCHRONIZATION_contextId ((struct layout_field){28, 4, 0})
#define SYNCHRONIZATION_streamId ((struct layout_field){32, 4, 0})
#define SYNCHRONIZATION_cudaEventId ((struct layout_field){36, 4, 0})
#define SYNCHRONIZATION_cudaEventSyncId ((struct layout_field){40, 8, 9})
#define SYNCHRONIZATION_returnValue ((struct layout_field){48, 4, 9})
#define CUDA_EVENT_correlationId ((struct layout_field){4, 4, 0})
#define CUDA_EVENT_contextId ((struct layout_field){8, 4, 0})
#define CUDA_EVENT_streamId ((struct layout_field){12, 4, 0})
#define CUDA_EVENT_eventId ((struct layout_field){16, 4, 0})
#define CUDA_EVENT_deviceId ((struct layout_field){24, 4, 9})
#define CUDA_EVENT_deviceTimestamp ((struct layout_field){40, 8, 9})
#define CUDA_EVENT_cudaEventSyncId ((struct layout_field){48, 8, 9})
#define CUDA_EVENT_graphNodeId ((struct layout_field){56, 8, 16})
#define CUDA_EVENT_graphId ((struct layout_field){64, 4, 16})
#define CUDA_EVENT_sourceGraphId ((struct layout_field){68, 4, 16})
#define CUDA_EVENT_sourceGraphNodeId ((struct layout_field){72, 8, 16})
#define OVERHEAD_overheadKind ((struct layout_field){4, 4, 0})
#define OVERHEAD_objectKind ((struct layout_field){8, 4, 0})
#define OVERHEAD_objectId ((struct layout_field){12, 12, 0})
#define OVERHEAD_objectId_pt ((struct layout_field){12, 8, 0})
#define OVERHEAD_objectId_pt_processId ((struct layout_field){12, 4, 0})
#define OVERHEAD_objectId_pt_threadId ((struct layout_field){16, 4, 0})
#define OVERHEAD_objectId_dcs ((struct layout_field){12, 12, 0})
#define OVERHEAD_objectId_dcs_deviceId ((struct layout_field){12, 4, 0})
#define OVERHEAD_objectId_dcs_contextId ((struct layout_field){16, 4, 0})
#define OVERHEAD_objectId_dcs_streamId ((struct layout_field){20, 4, 0})
#define OVERHEAD_start ((struct layout_field){24, 8, 0})
#define OVERHEAD_end ((struct layout_field){32, 8, 0})
#define OVERHEAD_correlationId ((struct layout_field){40, 4, 5})
#define OVERHEAD_overheadData ((struct layout_field){48, 8, 6})
#define CONTEXT_contextId ((struct layout_field){4, 4, 0})
#define CONTEXT_deviceId ((struct layout_field){8, 4, 0})
#define CONTEXT_computeApiKind ((struct layout_field){12, 2, 0})
#define CONTEXT_nullStreamId ((struct layout_field){14, 2, 0})
#define CONTEXT_parentContextId ((struct layout_field){16, 4, 6})
#define CONTEXT_isGreenContext ((struct layout_field){20, 1, 6})
#define CONTEXT_numMultiprocessors ((struct layout_field){22, 2, 7})
#define CONTEXT_cigMode ((struct layout_field){24, 4, 7})
#define CONTEXT_processId ((struct layout_field){32, 8, 12})
#define STREAM_contextId ((struct layout_field){4, 4, 0})
#define STREAM_streamId ((struct layout_field){8, 4, 0})
#define STREAM_priority ((struct layout_field){12, 4, 0})
#define STREAM_flag ((struct layout_field){16, 4, 0})
#define STREAM_correlationId ((struct layout_field){20, 4, 0})
#define DEVICE_flags ((struct layout_field){4, 4, 0})
#define DEVICE_globalMemoryBandwidth ((struct layout_field){8, 8, 0})
#define DEVICE_globalMemorySize ((struct layout_field){16, 8, 0})
#define DEVICE_constantMemorySize ((struct layout_field){24, 4, 0})
#define DEVICE_l2CacheSize ((struct layout_field){28, 4, 0})
#define DEVICE_numThreadsPerWarp ((struct layout_field){32, 4, 0})
#define DEVICE_coreClockRate ((struct layout_field){36, 4, 0})
#define DEVICE_numMemcpyEngines ((struct layout_field){40, 4, 0})
#define DEVICE_numMultiprocessors ((struct layout_field){44, 4, 0})
#define DEVICE_maxIPC ((struct layout_field){48, 4, 0})
#define DEVICE_maxWarpsPerMultiprocessor ((struct layout_field){52, 4, 0})
#define DEVICE_maxBlocksPerMultiprocessor ((struct layout_field){56, 4, 0})
#define DEVICE_maxSharedMemoryPerMultiprocessor ((struct layout_field){60, 4, 0})
#define DEVICE_maxRegistersPerMultiprocessor ((struct layout_field){64, 4, 0})
#define DEVICE_maxRegistersPerBlock ((struct layout_field){68, 4, 0})
#define DEVICE_maxSharedMemoryPerBlock ((struct layout_field){72, 4, 0})
#define DEVICE_maxThreadsPerBlock ((struct layout_field){76, 4, 0})
#define DEVICE_maxBlockDimX ((struct layout_field){80, 4, 0})
#define DEVICE_maxBlockDimY ((struct layout_field){84, 4, 0})
#define DEVICE_maxBlockDimZ ((struct layout_field){88, 4, 0})
#define DEVICE_maxGridDimX ((struct layout_field){92, 4, 0})
#define DEVICE_maxGridDimY ((struct layout_field){96, 4, 0})
#define DEVICE_maxGridDimZ ((struct layout_field){100, 4, 0})
#define DEVICE_computeCapabilityMajor ((struct layout_field){104, 4, 0})
#define DEVICE_computeCapabilityMinor ((struct layout_field){108, 4, 0})
#define DEVICE_id ((struct layout_field){112, 4, 0})
#define DEVICE_eccEnabled ((struct layout_field){116, 4, 0})
#define DEVICE_uuid ((struct layout_field){120, 16, 0})
#define DEVICE_uuid_bytes ((struct layout_field){120, 16, 0})
#define DEVICE_name ((struct layout_field){136, 8, 0})
#define DEVICE_isCudaVisible ((struct layout_field){144, 1, 0})
#define DEVICE_isMigEnabled ((struct layout_field){145, 1, 0})
#define DEVICE_gpuInstanceId ((struct layout_field){152, 4, 0})
#define DEVICE_computeInstanceId ((struct layout_field){156, 4, 0})
#define DEVICE_migUuid ((struct layout_field){160, 16, 0})
#define DEVICE_migUuid_bytes ((struct layout_field){160, 16, 0})
#define DEVICE_isNumaNode ((struct layout_field){176, 4, 4})
#define DEVICE_numaId ((struct layout_field){180, 4, 4})
#define DEVICE_numTpcs ((struct layout_field){184, 4, 13})
#define MEMORY2_memoryOperationType ((struct layout_field){4, 4, 0})
#define MEMORY2_memoryKind ((struct layout_field){8, 4, 0})
#define MEMORY2_correlationId ((struct layout_field){12, 4, 0})
#define MEMORY2_address ((struct layout_field){16, 8, 0})
#define MEMORY2_bytes ((struct layout_field){24, 8, 0})
#define MEMORY2_timestamp ((struct layout_field){32, 8, 0})
#define MEMORY2_PC ((struct layout_field){40, 8, 0})
#define MEMORY2_processId ((struct layout_field){48, 4, 0})
#define MEMORY2_deviceId ((struct layout_field){52, 4, 0})
#define MEMORY2_contextId ((struct layout_field){56, 4, 0})
#define MEMORY2_streamId ((struct layout_field){60, 4, 0})
#define MEMORY2_name ((struct layout_field){64, 8, 0})
#define MEMORY2_isAsync ((struct layout_field){72, 4, 0})
#define MEMORY2_memoryPoolConfig ((struct layout_field){80, 40, 0})
#define MEMORY2_memoryPoolConfig_memoryPoolType ((struct layout_field){80, 4, 0})
#define MEMORY2_memoryPoolConfig_pad2 ((struct layout_field){84, 4, 0})
#define MEMORY2_memoryPoolConfig_address ((struct layout_field){88, 8, 0})
#define MEMORY2_memoryPoolConfig_releaseThreshold ((struct layout_field){96, 8, 0})
#define MEMORY2_memoryPoolConfig_pool ((struct layout_field){104, 8, 0})
#define MEMORY2_memoryPoolConfig_pool_size ((struct layout_field){104, 8, 0})
#define MEMORY2_memoryPoolConfig_pool_processId ((struct layout_field){104, 8, 0})
#define MEMORY2_memoryPoolConfig_utilizedSize ((struct layout_field){112, 8, 0})
#define MEMORY2_source ((struct layout_field){120, 8, 8})
#define EXTERNAL_CORRELATION_externalKind ((struct layout_field){4, 4, 0})
#define EXTERNAL_CORRELATION_externalId ((struct layout_field){8, 8, 0})
#define EXTERNAL_CORRELATION_correlationId ((struct layout_field){16, 4, 0})
#define GRAPH_TRACE_correlationId ((struct layout_field){4, 4, 0})
#define GRAPH_TRACE_start ((struct layout_field){8, 8, 0})
#define GRAPH_TRACE_end ((struct layout_field){16, 8, 0})
#define GRAPH_TRACE_deviceId ((struct layout_field){24, 4, 0})
#define GRAPH_TRACE_graphId ((struct layout_field){28, 4, 0})
#define GRAPH_TRACE_contextId ((struct layout_field){32, 4, 0})
#define GRAPH_TRACE_streamId ((struct layout_field){36, 4, 0})
#define GRAPH_TRACE_endDeviceId ((struct layout_field){48, 4, 5})
#define GRAPH_TRACE_endContextId ((struct layout_field){52, 4, 5})
#define JIT_jitEntryType ((struct layout_field){4, 4, 1})
#define JIT_jitOperationType ((struct layout_field){8, 4, 1})
#define JIT_deviceId ((struct layout_field){12, 4, 1})
#define JIT_start ((struct layout_field){16, 8, 1})
#define JIT_end ((struct layout_field){24, 8, 1})
#define JIT_correlationId ((struct layout_field){32, 4, 1})
#define JIT_jitOperationCorrelationId ((struct layout_field){40, 8, 1})
#define JIT_cacheSize ((struct layout_field){48, 8, 1})
#define JIT_cachePath ((struct layout_field){56, 8, 1})
#define JIT_processId ((struct layout_field){64, 4, 6})
#define JIT_threadId ((struct layout_field){68, 4, 6})
#define GRAPH_HOST_NODE_streamId ((struct layout_field){4, 4, 12})
#define GRAPH_HOST_NODE_contextId ((struct layout_field){8, 4, 12})
#define GRAPH_HOST_NODE_deviceId ((struct layout_field){12, 4, 12})
#define GRAPH_HOST_NODE_correlationId ((struct layout_field){16, 4, 12})
#define GRAPH_HOST_NODE_graphId ((struct layout_field){20, 4, 12})
#define GRAPH_HOST_NODE_graphNodeId ((struct layout_field){24, 8, 12})
#define GRAPH_HOST_NODE_processId ((struct layout_field){32, 4, 12})
#define GRAPH_HOST_NODE_threadId ((struct layout_field){36, 4, 12})
#define GRAPH_HOST_NODE_start ((struct layout_field){40, 8, 12})
#define GRAPH_HOST_NODE_end ((struct layout_field){48, 8, 12})
#define HOST_LAUNCH_streamId ((struct layout_field){4, 4, 12})
#define HOST_LAUNCH_contextId ((struct layout_field){8, 4, 12})
#define HOST_LAUNCH_deviceId ((struct layout_field){12, 4, 12})
#define HOST_LAUNCH_correlationId ((struct layout_field){16, 4, 12})
#define HOST_LAUNCH_processId ((struct layout_field){20, 4, 12})
#define HOST_LAUNCH_threadId ((struct layout_field){24, 4, 12})
#define HOST_LAUNCH_start ((struct layout_field){32, 8, 12})
#define HOST_LAUNCH_end ((struct layout_field){40, 8, 12})

// SPDX-License-Identifier: Apache-2.0
/*
 * decode.c - turns the bytes of CUPTI's activity records into records of kp_device.h
 *
 * Called by: lane.c, on CUPTI's worker thread or the thread that flushes (hot: every record of a window)
 * Memory:    none. Pure: reads the record, writes *out, calls nothing, follows no pointer.
 * Safe in:   signal handlers yes; after fork yes
 *
 * One function a record kind. Each field is read at its offset of layout.def. Later releases added fields at the end;
 * those are read only if the record is long enough.
 */
#include "preload/cupti/library/decode.h"

#include <string.h>

#include "collector/base/kp_poison.h"

#define GET(to, record, kind, field)                                                                          \
    do {                                                                                                      \
        _Static_assert(sizeof(to) >= KP_BYTES_##kind##_##field, "the field does not fit: " #kind "." #field); \
        memcpy(&(to), (record) + KP_AT_##kind##_##field, KP_BYTES_##kind##_##field);                          \
    } while (0)
#define HAS(bytes, kind, field) ((bytes) >= (uint32_t)KP_NEEDS_##kind##_##field)
#define HEAD(number, type) ((struct kp_rec){.kind = (number), .size = sizeof(type)})

static bool is_timed(uint64_t start, uint64_t end) { return start != 0 && end >= start; }

/* Device work without valid times is kept, since it shows that the work ran, and how often. */
static void mark_times(struct kp_decoded *out, uint64_t start, uint64_t end)
{
    out->is_invalid = !is_timed(start, end);
    if (out->is_invalid) out->head.flags |= KP_DEV_NO_TIME;
}

/* A host event without valid times is dropped. */
static void need_times(struct kp_decoded *out, uint64_t start, uint64_t end)
{
    out->is_invalid = !is_timed(start, end);
}

static void decode_api(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_api *to = &out->api;
    (void)bytes;
    *to = (struct kp_rec_api){.head = HEAD(KP_KIND_API, *to), .stream = KP_DEV_NONE};
    GET(to->start, r, API, start);
    GET(to->end, r, API, end);
    GET(to->correlation, r, API, correlationId);
    GET(to->cbid, r, API, cbid);
    GET(to->thread_id, r, API, threadId);
    GET(to->result, r, API, returnValue);
    if (kp_walk_kind(r) == KP_CUPTI_DRIVER) to->head.flags = KP_DEV_DRIVER;
    need_times(out, to->start, to->end);
}

static void decode_kernel(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_kernel *to = &out->kernel;
    uint16_t registers;
    *to = (struct kp_rec_kernel){.head = HEAD(KP_KIND_KERNEL, *to), .has = KP_KERNEL_CHANNEL | KP_KERNEL_SHAPE};
    GET(to->start, r, KERNEL, start);
    GET(to->end, r, KERNEL, end);
    GET(to->queued, r, KERNEL, queued);
    GET(to->correlation, r, KERNEL, correlationId);
    GET(to->device, r, KERNEL, deviceId);
    GET(to->context, r, KERNEL, contextId);
    GET(to->stream, r, KERNEL, streamId);
    GET(to->grid[0], r, KERNEL, gridX);
    GET(to->grid[1], r, KERNEL, gridY);
    GET(to->grid[2], r, KERNEL, gridZ);
    GET(to->block[0], r, KERNEL, blockX);
    GET(to->block[1], r, KERNEL, blockY);
    GET(to->block[2], r, KERNEL, blockZ);
    GET(to->static_smem, r, KERNEL, staticSharedMemory);
    GET(to->dynamic_smem, r, KERNEL, dynamicSharedMemory);
    GET(to->local_per_thread, r, KERNEL, localMemoryPerThread);
    GET(registers, r, KERNEL, registersPerThread);
    to->registers = registers;
    GET(to->graph_node, r, KERNEL, graphNodeId);
    GET(to->graph, r, KERNEL, graphId);
    GET(to->channel, r, KERNEL, channelID);
    to->channel_type = r[KP_AT_KERNEL_channelType];
    to->launch_type = r[KP_AT_KERNEL_launchType];
    to->has |= KP_KERNEL_GRAPH; /* 0 outside graphs, as Kineto shows it */
    if (HAS(bytes, KERNEL, priority)) {
        GET(to->priority, r, KERNEL, priority);
        to->has |= KP_KERNEL_PRIORITY;
    }
    GET(out->name, r, KERNEL, name);
    mark_times(out, to->start, to->end);
}

/* MEMCPY and MEMCPY2 agree on everything before correlationId. */
static void decode_copy(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_copy *to = &out->copy;
    (void)bytes;
    *to = (struct kp_rec_copy){.head = HEAD(KP_KIND_MEMCPY, *to), .has = KP_KERNEL_CHANNEL};
    GET(to->start, r, MEMCPY, start);
    GET(to->end, r, MEMCPY, end);
    GET(to->bytes, r, MEMCPY, bytes);
    GET(to->device, r, MEMCPY, deviceId);
    GET(to->context, r, MEMCPY, contextId);
    GET(to->stream, r, MEMCPY, streamId);
    to->kind = r[KP_AT_MEMCPY_copyKind];
    to->src_kind = r[KP_AT_MEMCPY_srcKind];
    to->dst_kind = r[KP_AT_MEMCPY_dstKind];
    to->is_async = r[KP_AT_MEMCPY_flags] & 1;
    to->is_peer = kp_walk_kind(r) == KP_CUPTI_MEMCPY2;
    if (to->is_peer) {
        GET(to->correlation, r, MEMCPY2, correlationId);
        GET(to->graph_node, r, MEMCPY2, graphNodeId);
        GET(to->graph, r, MEMCPY2, graphId);
        GET(to->channel, r, MEMCPY2, channelID);
        to->channel_type = r[KP_AT_MEMCPY2_channelType];
        GET(to->src_device, r, MEMCPY2, srcDeviceId);
        GET(to->src_context, r, MEMCPY2, srcContextId);
        GET(to->dst_device, r, MEMCPY2, dstDeviceId);
        GET(to->dst_context, r, MEMCPY2, dstContextId);
    } else {
        GET(to->correlation, r, MEMCPY, correlationId);
        GET(to->graph_node, r, MEMCPY, graphNodeId);
        GET(to->graph, r, MEMCPY, graphId);
        GET(to->channel, r, MEMCPY, channelID);
        to->channel_type = r[KP_AT_MEMCPY_channelType];
    }
    to->has |= KP_KERNEL_GRAPH; /* 0 outside graphs, as Kineto shows it */
    mark_times(out, to->start, to->end);
}

static void decode_memset(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_copy *to = &out->copy;
    (void)bytes;
    *to = (struct kp_rec_copy){.head = HEAD(KP_KIND_MEMSET, *to), .has = KP_KERNEL_CHANNEL};
    GET(to->start, r, MEMSET, start);
    GET(to->end, r, MEMSET, end);
    GET(to->bytes, r, MEMSET, bytes);
    GET(to->value, r, MEMSET, value);
    GET(to->device, r, MEMSET, deviceId);
    GET(to->context, r, MEMSET, contextId);
    GET(to->stream, r, MEMSET, streamId);
    GET(to->correlation, r, MEMSET, correlationId);
    GET(to->graph_node, r, MEMSET, graphNodeId);
    GET(to->graph, r, MEMSET, graphId);
    GET(to->channel, r, MEMSET, channelID);
    to->channel_type = r[KP_AT_MEMSET_channelType];
    to->dst_kind = r[KP_AT_MEMSET_memoryKind];
    to->is_async = r[KP_AT_MEMSET_flags] & 1;
    to->has |= KP_KERNEL_GRAPH; /* 0 outside graphs, as Kineto shows it */
    mark_times(out, to->start, to->end);
}

static void decode_sync(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_sync *to = &out->sync;
    *to = (struct kp_rec_sync){.head = HEAD(KP_KIND_SYNC, *to)};
    GET(to->type, r, SYNCHRONIZATION, type);
    GET(to->start, r, SYNCHRONIZATION, start);
    GET(to->end, r, SYNCHRONIZATION, end);
    GET(to->correlation, r, SYNCHRONIZATION, correlationId);
    GET(to->context, r, SYNCHRONIZATION, contextId);
    GET(to->stream, r, SYNCHRONIZATION, streamId);
    GET(to->event, r, SYNCHRONIZATION, cudaEventId);
    if (HAS(bytes, SYNCHRONIZATION, cudaEventSyncId)) GET(to->event_sync, r, SYNCHRONIZATION, cudaEventSyncId);
    if (HAS(bytes, SYNCHRONIZATION, returnValue)) GET(to->result, r, SYNCHRONIZATION, returnValue);
    need_times(out, to->start, to->end);
}

static void decode_event(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_cudaevent *to = &out->event;
    *to = (struct kp_rec_cudaevent){.head = HEAD(KP_KIND_CUDAEVENT, *to)};
    GET(to->correlation, r, CUDA_EVENT, correlationId);
    GET(to->context, r, CUDA_EVENT, contextId);
    GET(to->stream, r, CUDA_EVENT, streamId);
    GET(to->event, r, CUDA_EVENT, eventId);
    if (HAS(bytes, CUDA_EVENT, cudaEventSyncId)) GET(to->event_sync, r, CUDA_EVENT, cudaEventSyncId);
    if (HAS(bytes, CUDA_EVENT, deviceTimestamp)) GET(to->device_time, r, CUDA_EVENT, deviceTimestamp);
}

static void decode_overhead(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_overhead *to = &out->overhead;
    uint32_t object[3];
    *to = (struct kp_rec_overhead){.head = HEAD(KP_KIND_OVERHEAD, *to)};
    GET(to->type, r, OVERHEAD, overheadKind);
    GET(to->object, r, OVERHEAD, objectKind);
    GET(object, r, OVERHEAD, objectId);
    to->pid_or_device = object[0];
    to->tid_or_context = object[1];
    GET(to->start, r, OVERHEAD, start);
    GET(to->end, r, OVERHEAD, end);
    if (HAS(bytes, OVERHEAD, correlationId)) GET(to->correlation, r, OVERHEAD, correlationId);
    need_times(out, to->start, to->end);
}

static void decode_graphrun(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_graphrun *to = &out->graphrun;
    (void)bytes;
    *to = (struct kp_rec_graphrun){.head = HEAD(KP_KIND_GRAPHRUN, *to)};
    GET(to->start, r, GRAPH_TRACE, start);
    GET(to->end, r, GRAPH_TRACE, end);
    GET(to->correlation, r, GRAPH_TRACE, correlationId);
    GET(to->device, r, GRAPH_TRACE, deviceId);
    GET(to->context, r, GRAPH_TRACE, contextId);
    GET(to->stream, r, GRAPH_TRACE, streamId);
    GET(to->graph, r, GRAPH_TRACE, graphId);
    mark_times(out, to->start, to->end);
}

static void decode_context(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_context *to = &out->context;
    uint16_t half;
    *to = (struct kp_rec_context){.head = HEAD(KP_KIND_CONTEXT, *to)};
    GET(to->context, r, CONTEXT, contextId);
    GET(to->device, r, CONTEXT, deviceId);
    GET(half, r, CONTEXT, nullStreamId);
    to->null_stream = half;
    if (HAS(bytes, CONTEXT, numMultiprocessors)) {
        GET(half, r, CONTEXT, numMultiprocessors);
        to->sms = half;
    }
}

static void decode_device(const uint8_t *r, uint32_t bytes, struct kp_decoded *out)
{
    struct kp_rec_device *to = &out->device;
    (void)bytes;
    if (!r[KP_AT_DEVICE_isCudaVisible]) return; /* CUPTI gives those, too, that CUDA_VISIBLE_DEVICES hides */
    *to = (struct kp_rec_device){.head = HEAD(KP_KIND_DEVICE, *to)};
    GET(to->id, r, DEVICE, id);
    GET(to->major, r, DEVICE, computeCapabilityMajor);
    GET(to->minor, r, DEVICE, computeCapabilityMinor);
    GET(to->warp_size, r, DEVICE, numThreadsPerWarp);
    GET(to->total_memory, r, DEVICE, globalMemorySize);
    GET(to->max_threads_per_block, r, DEVICE, maxThreadsPerBlock);
    GET(to->regs_per_block, r, DEVICE, maxRegistersPerBlock);
    GET(to->regs_per_sm, r, DEVICE, maxRegistersPerMultiprocessor);
    GET(to->smem_per_block, r, DEVICE, maxSharedMemoryPerBlock);
    GET(to->smem_per_sm, r, DEVICE, maxSharedMemoryPerMultiprocessor);
    GET(to->sms, r, DEVICE, numMultiprocessors);
    GET(to->max_blocks_per_sm, r, DEVICE, maxBlocksPerMultiprocessor);
    GET(to->max_warps_per_sm, r, DEVICE, maxWarpsPerMultiprocessor);
    to->max_threads_per_sm = to->max_warps_per_sm * to->warp_size;
    GET(to->core_clock_khz, r, DEVICE, coreClockRate);
    to->mig = r[KP_AT_DEVICE_isMigEnabled];
    GET(to->bandwidth_kb, r, DEVICE, globalMemoryBandwidth);
    GET(to->uuid, r, DEVICE, uuid);
    GET(out->name, r, DEVICE, name);
}

typedef void (*decode_fn)(const uint8_t *record, uint32_t bytes, struct kp_decoded *out);
static const struct {
    decode_fn decode;
    uint32_t least; /* bytes of the shortest record of any release */
} rows[KP_CUPTI_KINDS] = {
#define KP_CUPTI_KIND(name, number, decode, least, enable) [KP_CUPTI_##name] = {decode, least},
#include "preload/cupti/cuptikind.def"
#undef KP_CUPTI_KIND
};

void kp_decode_record(const uint8_t *record, uint32_t bytes, struct kp_decoded *out)
{
    uint32_t kind = kp_walk_kind(record);
    out->head.kind = 0;
    out->name = NULL;
    out->is_invalid = false;
    if (kind < KP_CUPTI_KINDS && rows[kind].decode && bytes >= rows[kind].least) rows[kind].decode(record, bytes, out);
}

const uint8_t *kp_walk_next(struct kp_walk *walk, uint32_t *bytes)
{
    while (walk->end - walk->at >= 8) {
        uint32_t kind = kp_walk_kind(walk->at);
        uint32_t size = kind < KP_CUPTI_KINDS ? walk->sizes[kind] : 0;
        if (kind == 0) {
            walk->at += 8;
            walk->holes += 8;
            continue;
        }
        if (size == 0 || size > (size_t)(walk->end - walk->at)) break;
        const uint8_t *record = walk->at;
        walk->at += size;
        *bytes = size;
        return record;
    }
    walk->lost += (size_t)(walk->end - walk->at);
    walk->at = walk->end;
    return NULL;
}

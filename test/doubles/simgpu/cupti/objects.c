// SPDX-License-Identifier: Apache-2.0
/*
 * objects.c - records of waits, memory, contexts, streams and devices: each is whole as soon as it is told
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <string.h>
#include <unistd.h>

/* From 12.8 on queries have records too: of the kind a wait would have (there is none of their own), and also when the
 * answer was "not ready", until cuptiActivityEnableAllSyncRecords(0). */
static bool is_query_told(int result)
{
    return simcupti_has("cuptiActivityEnableAllSyncRecords") && (result == 0 || !simcupti.ready_syncs_only);
}

void simcupti_on_synced(const struct simgpu_sync *sync)
{
    if (simcupti_in_client) return;
    if (!sync->is_query && (sync->type == 3 || sync->type == 4)) simcupti_tell_sync(sync->type == 3 ? 1 : 2);
    if (!simcupti.kinds[KIND_SYNCHRONIZATION] || (sync->is_query && !is_query_told(sync->result))) return;
    uint64_t end = simcupti_host(sync->end_ns), length = sync->end_ns - sync->start_ns;
    uint64_t start = simcupti.clock ? simcupti_gpu(sync->start_ns) : end - length;
    pthread_mutex_lock(&simcupti_lock);
    struct simcupti_slot *slot = simcupti_reserve(KIND_SYNCHRONIZATION);
    uint8_t *record = simcupti_record(slot);
    simcupti_put(record, SYNCHRONIZATION_type, sync->type);
    simcupti_put(record, SYNCHRONIZATION_start, start);
    simcupti_put(record, SYNCHRONIZATION_end, end);
    simcupti_put(record, SYNCHRONIZATION_correlationId, sync->correlation);
    simcupti_put(record, SYNCHRONIZATION_contextId, sync->context);
    simcupti_put(record, SYNCHRONIZATION_streamId, sync->stream);
    simcupti_put(record, SYNCHRONIZATION_cudaEventId, sync->event);
    simcupti_put(record, SYNCHRONIZATION_cudaEventSyncId, sync->event_sync);
    simcupti_put(record, SYNCHRONIZATION_returnValue, (uint32_t)sync->result);
    simcupti_complete(slot);
    pthread_mutex_unlock(&simcupti_lock);
}

void simcupti_on_allocated(const struct simgpu_alloc *alloc)
{
    if (simcupti_in_client || !simcupti.kinds[KIND_MEMORY2]) return;
    uint64_t time = simcupti_host(alloc->host_ns);
    pthread_mutex_lock(&simcupti_lock);
    struct simcupti_slot *slot = simcupti_reserve(KIND_MEMORY2);
    uint8_t *record = simcupti_record(slot);
    simcupti_put(record, MEMORY2_memoryOperationType, alloc->is_free ? 2 : 1);
    simcupti_put(record, MEMORY2_memoryKind, alloc->kind);
    simcupti_put(record, MEMORY2_correlationId, alloc->correlation);
    simcupti_put(record, MEMORY2_address, alloc->address);
    simcupti_put(record, MEMORY2_bytes, alloc->bytes);
    simcupti_put(record, MEMORY2_timestamp, time);
    simcupti_put(record, MEMORY2_processId, (uint32_t)getpid());
    simcupti_put(record, MEMORY2_deviceId, alloc->device);
    simcupti_put(record, MEMORY2_contextId, alloc->context);
    simcupti_put(record, MEMORY2_streamId, alloc->stream);
    simcupti_complete(slot);
    pthread_mutex_unlock(&simcupti_lock);
}

static void put_context(void *unused, uint32_t context, uint32_t device, uint32_t null_stream)
{
    (void)unused;
    const struct simgpu_device *about = simcupti_core()->device((int)device);
    pthread_mutex_lock(&simcupti_lock);
    struct simcupti_slot *slot = simcupti_reserve(KIND_CONTEXT);
    uint8_t *record = simcupti_record(slot);
    simcupti_put(record, CONTEXT_contextId, context);
    simcupti_put(record, CONTEXT_deviceId, device);
    simcupti_put(record, CONTEXT_computeApiKind, 1);
    simcupti_put(record, CONTEXT_nullStreamId, null_stream);
    simcupti_put(record, CONTEXT_parentContextId, UINT32_MAX);
    simcupti_put(record, CONTEXT_numMultiprocessors, about ? about->sms : 0);
    simcupti_put(record, CONTEXT_processId, (uint32_t)getpid());
    simcupti_complete(slot);
    pthread_mutex_unlock(&simcupti_lock);
}

static void put_stream(uint32_t context, uint32_t stream, int32_t priority, uint32_t flag)
{
    pthread_mutex_lock(&simcupti_lock);
    struct simcupti_slot *slot = simcupti_reserve(KIND_STREAM);
    uint8_t *record = simcupti_record(slot);
    simcupti_put(record, STREAM_contextId, context);
    simcupti_put(record, STREAM_streamId, stream);
    simcupti_put(record, STREAM_priority, (uint32_t)priority);
    simcupti_put(record, STREAM_flag, flag);
    simcupti_complete(slot);
    pthread_mutex_unlock(&simcupti_lock);
}

static void put_device_sizes(uint8_t *record, const struct simgpu_device *device)
{
    simcupti_put(record, DEVICE_globalMemoryBandwidth, device->bandwidth_kb);
    simcupti_put(record, DEVICE_globalMemorySize, device->total_memory);
    simcupti_put(record, DEVICE_constantMemorySize, 65536);
    simcupti_put(record, DEVICE_l2CacheSize, device->l2_bytes);
    simcupti_put(record, DEVICE_numThreadsPerWarp, device->warp_size);
    simcupti_put(record, DEVICE_coreClockRate, device->clock_khz);
    simcupti_put(record, DEVICE_numMemcpyEngines, device->copy_engines);
    simcupti_put(record, DEVICE_numMultiprocessors, device->sms);
    simcupti_put(record, DEVICE_maxIPC, 4);
    simcupti_put(record, DEVICE_maxWarpsPerMultiprocessor,
                 device->max_threads_per_sm / (device->warp_size ? device->warp_size : 32));
    simcupti_put(record, DEVICE_maxBlocksPerMultiprocessor, device->max_blocks_per_sm);
    simcupti_put(record, DEVICE_maxSharedMemoryPerMultiprocessor, device->smem_per_sm);
    simcupti_put(record, DEVICE_maxRegistersPerMultiprocessor, device->regs_per_sm);
    simcupti_put(record, DEVICE_maxRegistersPerBlock, device->regs_per_block);
    simcupti_put(record, DEVICE_maxSharedMemoryPerBlock, device->smem_per_block);
    simcupti_put(record, DEVICE_maxThreadsPerBlock, device->max_threads_per_block);
}

static void put_device(uint32_t id, const struct simgpu_device *device, bool is_visible)
{
    pthread_mutex_lock(&simcupti_lock);
    struct simcupti_slot *slot = simcupti_reserve(KIND_DEVICE);
    uint8_t *record = simcupti_record(slot);
    simcupti_put(record, DEVICE_flags, 1); /* concurrent kernels */
    put_device_sizes(record, device);
    simcupti_put(record, DEVICE_computeCapabilityMajor, device->major);
    simcupti_put(record, DEVICE_computeCapabilityMinor, device->minor);
    simcupti_put(record, DEVICE_id, id);
    simcupti_put(record, DEVICE_eccEnabled, 1);
    if (record) memcpy(record + DEVICE_uuid.offset, device->uuid, sizeof device->uuid);
    simcupti_put(record, DEVICE_name, (uintptr_t)device->name);
    simcupti_put(record, DEVICE_isCudaVisible, is_visible);
    simcupti_put(record, DEVICE_gpuInstanceId, UINT32_MAX);
    simcupti_put(record, DEVICE_computeInstanceId, UINT32_MAX);
    simcupti_put(record, DEVICE_numaId, UINT32_MAX);
    simcupti_put(record, DEVICE_numTpcs, device->sms / 2);
    simcupti_complete(slot);
    pthread_mutex_unlock(&simcupti_lock);
}

void simcupti_on_context(uint32_t context, uint32_t device, uint32_t null_stream)
{
    simcupti_tell_resource(1, NULL);
    if (simcupti.kinds[KIND_CONTEXT]) put_context(NULL, context, device, null_stream);
}

void simcupti_on_stream(uint32_t context, uint32_t stream, int32_t priority, uint32_t flag)
{
    simcupti_tell_resource(3, NULL);
    if (simcupti.kinds[KIND_STREAM]) put_stream(context, stream, priority, flag);
}

static void dump_stream(void *unused, uint32_t context, uint32_t stream, int32_t priority)
{
    (void)unused;
    put_stream(context, stream, priority, 1);
}

static void dump_devices(const struct simgpu_core *core)
{
    const int count = core->device_count();
    for (int i = 0; i < count; i++) put_device((uint32_t)i, core->device(i), true);
    for (uint32_t i = 0; i < simcupti_set.invisible; i++) put_device((uint32_t)count + i, core->device(0), false);
}

int simcupti_dump(uint32_t kind)
{
    const struct simgpu_core *core = simcupti_core();
    if (kind == KIND_DEVICE) dump_devices(core);
    if (kind == KIND_CONTEXT) core->each_context(put_context, NULL);
    if (kind == KIND_STREAM) core->each_stream(dump_stream, NULL);
    return CUPTI_OK;
}

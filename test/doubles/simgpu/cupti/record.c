// SPDX-License-Identifier: Apache-2.0
/*
 * record.c - calls and work of the GPU, as the core reports them, become records
 *
 * A call's record is reserved when the call begins and complete when it returns. The record of GPU work is reserved on
 * the thread that enqueues it, inside its call, and complete when the core says that its end has passed: so a buffer
 * may hold finished records behind unfinished ones.
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct api_call { /* of one call, from enter to exit */
    struct simcupti_slot *slot;
    uint64_t start, correlation_data[SUBSCRIBERS];
};

struct gpu_record { /* of one piece of work, from enqueue to its end */
    struct simcupti_slot *slot;
    struct graph_launch *graph; /* a node of a graph that is traced as one */
    uint32_t kind;
    uint64_t start, end;
    uint64_t ends_ns; /* host clock, as told when it was enqueued */
    struct gpu_record *next, **link;
};
static struct gpu_record *untold; /* enqueued; the core has not said that they are done */

struct graph_launch {
    struct simcupti_slot *slot;
    uint32_t correlation, open; /* nodes not done yet */
    bool is_launched;           /* the call returned: no more nodes come */
    uint64_t start, end;
};

enum { EXTERNAL_KINDS = 6, EXTERNAL_DEPTH = 256 };
static _Thread_local struct external {
    uint64_t ids[EXTERNAL_KINDS][EXTERNAL_DEPTH];
    unsigned depth[EXTERNAL_KINDS];
    unsigned generation;
} * external; /* lives as long as the process: threads are few here */
static unsigned external_generation;
static _Thread_local uint32_t told_correlation; /* the last whose external ids were told */
static _Thread_local struct graph_launch *my_graph;
static uint32_t kernel_count;

/* --- external correlation --- */

static void external_refresh(void)
{
    if (!external) external = calloc(1, sizeof *external);
    if (external->generation == external_generation) return;
    memset(external->depth, 0, sizeof external->depth);
    external->generation = external_generation;
}

void simcupti_external_forget(void) { external_generation++; }

int simcupti_push(uint32_t kind, uint64_t id)
{
    external_refresh();
    if (!kind || kind >= EXTERNAL_KINDS) return CUPTI_INVALID_PARAMETER;
    if (external->depth[kind] == EXTERNAL_DEPTH) return CUPTI_MAX_LIMIT_REACHED;
    external->ids[kind][external->depth[kind]++] = id;
    return CUPTI_OK;
}

int simcupti_pop(uint32_t kind, uint64_t *id)
{
    external_refresh();
    if (!kind || kind >= EXTERNAL_KINDS) return CUPTI_INVALID_PARAMETER;
    if (!external->depth[kind]) return CUPTI_QUEUE_EMPTY;
    uint64_t last = external->ids[kind][--external->depth[kind]];
    if (id) *id = last;
    return CUPTI_OK;
}

static void tell_external(uint32_t correlation)
{
    external_refresh();
    if (!simcupti.kinds[KIND_EXTERNAL_CORRELATION] || told_correlation == correlation) return;
    told_correlation = correlation;
    for (uint32_t kind = 1; kind < EXTERNAL_KINDS; kind++) {
        if (!external->depth[kind]) continue;
        struct simcupti_slot *slot = simcupti_reserve(KIND_EXTERNAL_CORRELATION);
        uint8_t *record = simcupti_record(slot);
        simcupti_put(record, EXTERNAL_CORRELATION_externalKind, kind);
        simcupti_put(record, EXTERNAL_CORRELATION_externalId, external->ids[kind][external->depth[kind] - 1]);
        simcupti_put(record, EXTERNAL_CORRELATION_correlationId, correlation);
        simcupti_complete(slot);
    }
}

/* --- overhead --- */

static void tell_overhead(uint32_t what, uint64_t start, uint64_t end, uint32_t correlation)
{
    if (!simcupti.kinds[KIND_OVERHEAD]) return;
    struct simcupti_slot *slot = simcupti_reserve(KIND_OVERHEAD);
    uint8_t *record = simcupti_record(slot);
    simcupti_put(record, OVERHEAD_overheadKind, what);
    simcupti_put(record, OVERHEAD_objectKind, 2); /* a thread */
    simcupti_put(record, OVERHEAD_objectId_pt_processId, (uint32_t)getpid());
    simcupti_put(record, OVERHEAD_objectId_pt_threadId, simcupti_thread_id());
    simcupti_put(record, OVERHEAD_start, start);
    simcupti_put(record, OVERHEAD_end, end);
    simcupti_put(record, OVERHEAD_correlationId, correlation);
    simcupti_complete(slot);
}

/* Kernels whose code was loaded already: the first launch of each tells LAZY_FUNCTION_LOADING. */
static bool is_first_launch(const char *name)
{
    static const char *seen[4096];
    size_t at = ((uintptr_t)name >> 3) * 2654435761u % 4096;
    for (size_t i = 0; i < 4096; i++, at = (at + 1) % 4096) {
        if (seen[at] == name) return false;
        if (!seen[at]) return seen[at] = name, true;
    }
    return false;
}

/* --- calls of the APIs --- */

static bool wants_call(const struct simgpu_call *call)
{
    int filter = call->cbid < CBID_WORDS * 32 ? simcupti.filter[call->domain][call->cbid] : 0;
    if (filter < 0 || (filter > 0 && simcupti_set.singles)) return filter > 0;
    return simcupti.kinds[call->domain == SIMGPU_RUNTIME ? KIND_RUNTIME : KIND_DRIVER];
}

static void on_enter(struct simgpu_call *call)
{
    call->observer_data = NULL;
    if (simcupti_in_client) return;
    struct api_call *mine = calloc(1, sizeof *mine);
    call->observer_data = mine;
    simcupti_tell_api(call, false, mine->correlation_data);
    if (!wants_call(call)) return;
    mine->start = simcupti_host(call->enter_ns);
    pthread_mutex_lock(&simcupti_lock);
    tell_external(call->correlation);
    mine->slot = simcupti_reserve(call->domain == SIMGPU_RUNTIME ? KIND_RUNTIME : KIND_DRIVER);
    uint8_t *record = simcupti_record(mine->slot);
    simcupti_put(record, RUNTIME_cbid, call->cbid);
    simcupti_put(record, RUNTIME_processId, (uint32_t)getpid());
    simcupti_put(record, RUNTIME_threadId, simcupti_thread_id());
    simcupti_put(record, RUNTIME_correlationId, call->correlation);
    pthread_mutex_unlock(&simcupti_lock);
}

static void end_graph(struct graph_launch *graph)
{
    uint8_t *record = simcupti_record(graph->slot);
    simcupti_put(record, GRAPH_TRACE_start, graph->start);
    simcupti_put(record, GRAPH_TRACE_end, graph->end);
    simcupti_complete(graph->slot);
    free(graph);
}

static void tell_jit(const struct simgpu_call *call, uint64_t start, uint64_t end)
{
    bool is_load = call->domain == SIMGPU_DRIVER && call->name &&
                   (!strncmp(call->name, "cuModuleLoadData", 16) || !strncmp(call->name, "cuLibraryLoadData", 17));
    if (!is_load || !simcupti.kinds[KIND_JIT]) return;
    struct simcupti_slot *slot = simcupti_reserve(KIND_JIT);
    uint8_t *record = simcupti_record(slot);
    simcupti_put(record, JIT_jitEntryType, 1);     /* PTX to cubin */
    simcupti_put(record, JIT_jitOperationType, 3); /* compiled */
    simcupti_put(record, JIT_start, start);
    simcupti_put(record, JIT_end, end);
    simcupti_put(record, JIT_correlationId, call->correlation);
    simcupti_put(record, JIT_processId, (uint32_t)getpid());
    simcupti_put(record, JIT_threadId, simcupti_thread_id());
    simcupti_complete(slot);
}

static void on_exit_call(struct simgpu_call *call)
{
    struct api_call *mine = call->observer_data;
    if (!mine) return;
    call->observer_data = NULL;
    uint64_t end = mine->slot || simcupti.kinds[KIND_JIT] ? simcupti_host(call->exit_ns) : 0;
    pthread_mutex_lock(&simcupti_lock);
    uint8_t *record = simcupti_record(mine->slot);
    simcupti_put(record, RUNTIME_start, mine->start);
    simcupti_put(record, RUNTIME_end, end);
    simcupti_put(record, RUNTIME_returnValue, (uint32_t)call->result);
    simcupti_complete(mine->slot);
    tell_jit(call, mine->start ? mine->start : end, end);
    if (my_graph && my_graph->correlation == call->correlation) {
        my_graph->is_launched = true;
        if (!my_graph->open) end_graph(my_graph);
        my_graph = NULL;
    }
    pthread_mutex_unlock(&simcupti_lock);
    simcupti_tell_api(call, true, mine->correlation_data);
    free(mine);
}

/* --- GPU work: which kind, what is known at once, what comes with its end --- */

static uint32_t kind_of_work(const struct simgpu_work *work)
{
    const bool *on = simcupti.kinds;
    switch (work->kind) {
    case SIMGPU_KERNEL: return on[KIND_CONCURRENT_KERNEL] ? KIND_CONCURRENT_KERNEL : on[KIND_KERNEL] ? KIND_KERNEL : 0;
    case SIMGPU_MEMCPY:
        if (work->is_peer) return on[KIND_MEMCPY2] ? KIND_MEMCPY2 : 0;
        return on[KIND_MEMCPY] ? KIND_MEMCPY : 0;
    case SIMGPU_MEMSET: return on[KIND_MEMSET] ? KIND_MEMSET : 0;
    case SIMGPU_EVENT_RECORD: return on[KIND_SYNCHRONIZATION] ? KIND_CUDA_EVENT : 0;
    case SIMGPU_HOST_FUNCTION:
        if (work->graph) return on[KIND_GRAPH_HOST_NODE] ? KIND_GRAPH_HOST_NODE : 0;
        return on[KIND_HOST_LAUNCH] ? KIND_HOST_LAUNCH : 0;
    default: return 0;
    }
}

static void put_kernel(uint8_t *record, const struct simgpu_work *work)
{
    uint32_t smem = work->static_smem + work->dynamic_smem;
    uint64_t local = (uint64_t)work->local_per_thread * work->grid[0] * work->grid[1] * work->grid[2] * work->block[0] *
                     work->block[1] * work->block[2];
    simcupti_put(record, KERNEL_registersPerThread, work->registers);
    simcupti_put(record, KERNEL_deviceId, work->device);
    simcupti_put(record, KERNEL_contextId, work->context);
    simcupti_put(record, KERNEL_streamId, work->stream);
    bool is_odd = simcupti_set.odd && kernel_count + 1 == simcupti_set.odd;
    simcupti_put(record, KERNEL_gridX, is_odd ? 0 : work->grid[0]);
    simcupti_put(record, KERNEL_gridY, is_odd ? 0 : work->grid[1]);
    simcupti_put(record, KERNEL_gridZ, is_odd ? 0 : work->grid[2]);
    simcupti_put(record, KERNEL_blockX, work->block[0]);
    simcupti_put(record, KERNEL_blockY, work->block[1]);
    simcupti_put(record, KERNEL_blockZ, work->block[2]);
    simcupti_put(record, KERNEL_staticSharedMemory, work->static_smem);
    simcupti_put(record, KERNEL_dynamicSharedMemory, work->dynamic_smem);
    simcupti_put(record, KERNEL_localMemoryPerThread, work->local_per_thread);
    simcupti_put(record, KERNEL_localMemoryTotal, local);
    simcupti_put(record, KERNEL_localMemoryTotal_v2, local);
    simcupti_put(record, KERNEL_correlationId, work->correlation);
    simcupti_put(record, KERNEL_gridId, ++kernel_count);
    simcupti_put(record, KERNEL_name, (uintptr_t)work->name);
    simcupti_put(record, KERNEL_sharedMemoryExecuted, (smem + 1023) / 1024 * 1024);
    simcupti_put(record, KERNEL_graphNodeId, work->graph_node);
    simcupti_put(record, KERNEL_graphId, work->graph);
    simcupti_put(record, KERNEL_channelID, 8 + work->stream % 8);
    simcupti_put(record, KERNEL_channelType, 1);
    simcupti_put(record, KERNEL_clusterX, work->cluster[0]);
    simcupti_put(record, KERNEL_clusterY, work->cluster[1]);
    simcupti_put(record, KERNEL_clusterZ, work->cluster[2]);
    simcupti_put(record, KERNEL_priority, (uint32_t)work->priority);
    simcupti_put(record, KERNEL_sourceGraphId, work->source_graph);
    simcupti_put(record, KERNEL_sourceGraphNodeId, work->source_graph_node);
}

static void put_memcpy(uint8_t *record, const struct simgpu_work *work)
{
    simcupti_put(record, MEMCPY_copyKind, work->copy_kind);
    simcupti_put(record, MEMCPY_srcKind, work->src_kind);
    simcupti_put(record, MEMCPY_dstKind, work->dst_kind);
    simcupti_put(record, MEMCPY_flags, work->is_async);
    simcupti_put(record, MEMCPY_bytes, work->bytes);
    simcupti_put(record, MEMCPY_deviceId, work->device);
    simcupti_put(record, MEMCPY_contextId, work->context);
    simcupti_put(record, MEMCPY_streamId, work->stream);
    if (work->is_peer) {
        simcupti_put(record, MEMCPY2_srcDeviceId, work->peer_src_device);
        simcupti_put(record, MEMCPY2_srcContextId, work->peer_src_context);
        simcupti_put(record, MEMCPY2_dstDeviceId, work->peer_dst_device);
        simcupti_put(record, MEMCPY2_dstContextId, work->peer_dst_context);
        simcupti_put(record, MEMCPY2_correlationId, work->correlation);
        simcupti_put(record, MEMCPY2_graphNodeId, work->graph_node);
        simcupti_put(record, MEMCPY2_graphId, work->graph);
        simcupti_put(record, MEMCPY2_channelType, 2);
        return;
    }
    simcupti_put(record, MEMCPY_correlationId, work->correlation);
    simcupti_put(record, MEMCPY_graphNodeId, work->graph_node);
    simcupti_put(record, MEMCPY_graphId, work->graph);
    simcupti_put(record, MEMCPY_channelID, 16);
    simcupti_put(record, MEMCPY_channelType, 2);
    simcupti_put(record, MEMCPY_copyCount, 1);
    simcupti_put(record, MEMCPY_sourceGraphId, work->source_graph);
    simcupti_put(record, MEMCPY_sourceGraphNodeId, work->source_graph_node);
}

static void put_memset(uint8_t *record, const struct simgpu_work *work)
{
    simcupti_put(record, MEMSET_value, work->value);
    simcupti_put(record, MEMSET_bytes, work->bytes);
    simcupti_put(record, MEMSET_deviceId, work->device);
    simcupti_put(record, MEMSET_contextId, work->context);
    simcupti_put(record, MEMSET_streamId, work->stream);
    simcupti_put(record, MEMSET_correlationId, work->correlation);
    simcupti_put(record, MEMSET_flags, work->is_async);
    simcupti_put(record, MEMSET_memoryKind, work->dst_kind);
    simcupti_put(record, MEMSET_graphNodeId, work->graph_node);
    simcupti_put(record, MEMSET_graphId, work->graph);
    simcupti_put(record, MEMSET_channelID, 8 + work->stream % 8);
    simcupti_put(record, MEMSET_channelType, 1);
    simcupti_put(record, MEMSET_sourceGraphId, work->source_graph);
    simcupti_put(record, MEMSET_sourceGraphNodeId, work->source_graph_node);
}

static void put_event(uint8_t *record, const struct simgpu_work *work)
{
    simcupti_put(record, CUDA_EVENT_correlationId, work->correlation);
    simcupti_put(record, CUDA_EVENT_contextId, work->context);
    simcupti_put(record, CUDA_EVENT_streamId, work->stream);
    simcupti_put(record, CUDA_EVENT_eventId, work->event);
    simcupti_put(record, CUDA_EVENT_deviceId, work->device);
    simcupti_put(record, CUDA_EVENT_cudaEventSyncId, work->event_sync);
}

static void put_host_work(uint8_t *record, const struct simgpu_work *work, uint32_t kind)
{
    bool is_node = kind == KIND_GRAPH_HOST_NODE;
    simcupti_put(record, HOST_LAUNCH_streamId, work->stream); /* the first four lie alike in both */
    simcupti_put(record, HOST_LAUNCH_contextId, work->context);
    simcupti_put(record, HOST_LAUNCH_deviceId, work->device);
    simcupti_put(record, HOST_LAUNCH_correlationId, work->correlation);
    if (is_node) {
        simcupti_put(record, GRAPH_HOST_NODE_graphId, work->graph);
        simcupti_put(record, GRAPH_HOST_NODE_graphNodeId, work->graph_node);
    }
    simcupti_put(record, is_node ? GRAPH_HOST_NODE_processId : HOST_LAUNCH_processId, (uint32_t)getpid());
}

static void put_work(uint8_t *record, uint32_t kind, const struct simgpu_work *work)
{
    switch (kind) {
    case KIND_KERNEL:
    case KIND_CONCURRENT_KERNEL: put_kernel(record, work); break;
    case KIND_MEMCPY:
    case KIND_MEMCPY2: put_memcpy(record, work); break;
    case KIND_MEMSET: put_memset(record, work); break;
    case KIND_CUDA_EVENT: put_event(record, work); break;
    default: put_host_work(record, work, kind); break;
    }
}

/* The node of a graph launch that is told as one record. */
static void join_graph(struct gpu_record *mine, const struct simgpu_work *work)
{
    if (!my_graph || my_graph->correlation != work->correlation) {
        my_graph = calloc(1, sizeof *my_graph);
        my_graph->correlation = work->correlation;
        my_graph->start = UINT64_MAX;
        my_graph->slot = simcupti_reserve(KIND_GRAPH_TRACE);
        uint8_t *record = simcupti_record(my_graph->slot);
        simcupti_put(record, GRAPH_TRACE_correlationId, work->correlation);
        simcupti_put(record, GRAPH_TRACE_deviceId, work->device);
        simcupti_put(record, GRAPH_TRACE_graphId, work->graph);
        simcupti_put(record, GRAPH_TRACE_contextId, work->context);
        simcupti_put(record, GRAPH_TRACE_streamId, work->stream);
        simcupti_put(record, GRAPH_TRACE_endDeviceId, work->device);
        simcupti_put(record, GRAPH_TRACE_endContextId, work->context);
    }
    mine->graph = my_graph;
    my_graph->open++;
}

static void tell_loading(const struct simgpu_work *work, uint64_t now)
{
    if (!simcupti.has_resource_overhead) {
        simcupti.has_resource_overhead = true;
        tell_overhead(3u << 16, now - 2000, now, work->correlation); /* CUPTI's own buffers on the device */
    }
    if (work->kind == SIMGPU_KERNEL && simcupti_set.version >= 21 && is_first_launch(work->name))
        tell_overhead(5u << 16, now - 1000, now, work->correlation);
}

static void on_enqueued(struct simgpu_work *work)
{
    work->observer_data = NULL;
    if (simcupti_in_client) return;
    uint32_t kind = kind_of_work(work);
    bool is_node = work->graph && simcupti.is_graph_level && work->kind != SIMGPU_HOST_FUNCTION;
    if (is_node && !simcupti.kinds[KIND_GRAPH_TRACE])
        return; /* sticks: no nodes any more, and nobody wants the whole */
    if (!kind && !is_node) return;
    uint64_t now = simcupti.kinds[KIND_OVERHEAD] ? simcupti_now() : 0;
    struct gpu_record *mine = calloc(1, sizeof *mine);
    mine->kind = kind;
    mine->ends_ns = work->end_ns;
    work->observer_data = mine;
    pthread_mutex_lock(&simcupti_lock);
    mine->next = untold;
    mine->link = &untold;
    if (untold) untold->link = &mine->next;
    untold = mine;
    if (now) tell_loading(work, now);
    if (is_node) {
        join_graph(mine, work);
    } else {
        mine->slot = simcupti_reserve(kind);
        if (mine->slot) put_work(simcupti_record(mine->slot), kind, work);
        if (kind == KIND_CUDA_EVENT && !simcupti.event_timestamps) {
            simcupti_complete(mine->slot);
            mine->slot = NULL;
        }
    }
    pthread_mutex_unlock(&simcupti_lock);
}

static void put_times(struct simcupti_slot *slot, void *arg)
{
    struct gpu_record *mine = arg;
    uint8_t *record = simcupti_record(slot);
    static uint32_t kernels;
    bool is_kernel = mine->kind == KIND_KERNEL || mine->kind == KIND_CONCURRENT_KERNEL;
    if (is_kernel && simcupti_set.zero_every && ++kernels % simcupti_set.zero_every == 0) mine->start = mine->end = 0;
    if (mine->kind == KIND_CUDA_EVENT) {
        simcupti_put(record, CUDA_EVENT_deviceTimestamp, mine->end);
    } else if (mine->kind == KIND_GRAPH_HOST_NODE || mine->kind == KIND_HOST_LAUNCH) {
        bool is_node = mine->kind == KIND_GRAPH_HOST_NODE;
        simcupti_put(record, is_node ? GRAPH_HOST_NODE_start : HOST_LAUNCH_start, mine->start);
        simcupti_put(record, is_node ? GRAPH_HOST_NODE_end : HOST_LAUNCH_end, mine->end);
    } else { /* kernels, copies and fills have them in one place */
        simcupti_put(record, KERNEL_start, mine->start);
        simcupti_put(record, KERNEL_end, mine->end);
        if (is_kernel) simcupti_put(record, KERNEL_completed, mine->end);
    }
    free(mine);
}

static void end_node(struct gpu_record *mine)
{
    struct graph_launch *graph = mine->graph;
    if (mine->start < graph->start) graph->start = mine->start;
    if (mine->end > graph->end) graph->end = mine->end;
    if (--graph->open == 0 && graph->is_launched) end_graph(graph);
    free(mine);
}

static void on_done(struct simgpu_work *work)
{
    struct gpu_record *mine = work->observer_data;
    if (!mine) return;
    work->observer_data = NULL;
    bool is_spoiled = simcupti.spoiled && work->kind == SIMGPU_KERNEL;
    if (is_spoiled) simcupti.spoiled--;
    mine->start = (is_spoiled ? simcupti_spoiled : simcupti_gpu)(work->start_ns);
    mine->end = (is_spoiled ? simcupti_spoiled : simcupti_gpu)(work->end_ns);
    pthread_mutex_lock(&simcupti_lock);
    *mine->link = mine->next;
    if (mine->next) mine->next->link = mine->link;
    if (mine->graph) {
        end_node(mine);
    } else if (!mine->slot) {
        free(mine);
    } else if (simcupti_set.late_ms) {
        simcupti_complete_at(mine->slot, work->end_ns + simcupti_set.late_ms * 1000000ull, put_times, mine);
    } else {
        struct simcupti_slot *slot = mine->slot;
        put_times(slot, mine);
        simcupti_complete(slot);
    }
    pthread_mutex_unlock(&simcupti_lock);
}

/* The core tells what is done on a thread of its own. Whatever ended before a flush has to be in it, so wait (not for
 * ever) until told. */
void simcupti_catch_up(void)
{
    uint64_t now = simcupti_core()->host_ns();
    for (int i = 0; i < 400; i++) {
        bool is_behind = false;
        pthread_mutex_lock(&simcupti_lock);
        for (const struct gpu_record *record = untold; record; record = record->next)
            is_behind |= record->ends_ns <= now;
        pthread_mutex_unlock(&simcupti_lock);
        if (!is_behind) return;
        nanosleep(&(struct timespec){0, 250000}, NULL);
    }
}

void simcupti_wait_for_work(void)
{
    for (bool is_busy = true; is_busy; nanosleep(&(struct timespec){0, 1000000}, NULL)) {
        pthread_mutex_lock(&simcupti_lock);
        is_busy = untold != NULL;
        pthread_mutex_unlock(&simcupti_lock);
    }
}

/* --- all of it --- */

void simcupti_observe(void)
{
    static const struct simgpu_observer observer = {.enter = on_enter,
                                                    .exit = on_exit_call,
                                                    .work_enqueued = on_enqueued,
                                                    .work_done = on_done,
                                                    .synced = simcupti_on_synced,
                                                    .allocated = simcupti_on_allocated,
                                                    .context_made = simcupti_on_context,
                                                    .stream_made = simcupti_on_stream,
                                                    .process_exit = simcupti_exit_begins};
    simcupti_core()->observe(&observer);
}

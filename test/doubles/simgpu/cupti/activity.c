// SPDX-License-Identifier: Apache-2.0
/*
 * activity.c - the activity API: which kinds, whose buffers, when they are flushed
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <string.h>
#include <unistd.h>

/*
 * --- kinds ---
 *
 * cupti_activity.h of 13.0: single calls can be recorded "without using the activity kind"; a kind that is enabled or
 * disabled after that overrides what was set call by call.
 */

/* CUDA_EVENT comes along with SYNCHRONIZATION; the others are parts of what the profiler of counters gives. */
static bool is_enableable(uint32_t kind)
{
    static const unsigned char never[] = {6, 7, 14, 21, 23, 27, 31, 36, 41, 42, 43, 44};
    return kind && kind < KIND_COUNT && layout_sizes[kind][simcupti_set.layout] &&
           !memchr(never, (int)kind, sizeof never);
}

static void set_kind(uint32_t kind, bool is_on)
{
    simcupti.kinds[kind] = is_on;
    if (kind == KIND_RUNTIME)
        memset(simcupti.filter[SIMGPU_RUNTIME], simcupti_set.stuck && !is_on, sizeof simcupti.filter[SIMGPU_RUNTIME]);
    if (kind == KIND_DRIVER) memset(simcupti.filter[SIMGPU_DRIVER], 0, sizeof simcupti.filter[SIMGPU_DRIVER]);
}

int simcupti_enable(uint32_t kind)
{
    if (!is_enableable(kind)) return CUPTI_INVALID_KIND;
    simcupti_observe();
    simcupti_clock_latch();
    simcupti_clock_sample();
    pthread_mutex_lock(&simcupti_lock);
    simcupti_worker_start();
    simcupti.armed_pid = (int)getpid();
    set_kind(kind, true);
    if (kind == KIND_GRAPH_TRACE) simcupti.is_graph_level = true;
    pthread_mutex_unlock(&simcupti_lock);
    return CUPTI_OK;
}

int simcupti_disable(uint32_t kind)
{
    if (!is_enableable(kind)) return CUPTI_INVALID_KIND;
    pthread_mutex_lock(&simcupti_lock);
    set_kind(kind, false);
    pthread_mutex_unlock(&simcupti_lock);
    if (simcupti_set.amid) simcupti_core()->calls_disturb();
    return CUPTI_OK;
}

int simcupti_enable_and_dump(uint32_t kind)
{
    int error = simcupti_enable(kind);
    return error ? error : simcupti_dump(kind);
}

int simcupti_enable_call(uint32_t domain, uint32_t cbid, bool is_on)
{
    if (!cbid || cbid >= CBID_WORDS * 32) return CUPTI_INVALID_PARAMETER;
    simcupti_observe();
    pthread_mutex_lock(&simcupti_lock);
    simcupti_worker_start();
    simcupti.armed_pid = (int)getpid();
    simcupti.filter[domain][cbid] = is_on ? 1 : -1;
    pthread_mutex_unlock(&simcupti_lock);
    return CUPTI_OK;
}

static int v1(int answer)
{
    if (answer == CUPTI_OK) simcupti.v1_used = true;
    return answer;
}

CUPTI_API int cuptiActivityEnable(uint32_t kind) { API(CALL_V1, kind, 0, v1(simcupti_enable(kind))); }
CUPTI_API int cuptiActivityDisable(uint32_t kind) { API(CALL_V1, kind, 0, v1(simcupti_disable(kind))); }
CUPTI_API int cuptiActivityEnableAndDump(uint32_t kind) { API(CALL_V1, kind, 0, v1(simcupti_enable_and_dump(kind))); }

/* There is no telling contexts apart here: what is on for one is on for all. */
CUPTI_API int cuptiActivityEnableContext(void *context, uint32_t kind)
{
    API(CALL_V1, context, kind, context ? v1(simcupti_enable(kind)) : CUPTI_INVALID_PARAMETER);
}

CUPTI_API int cuptiActivityDisableContext(void *context, uint32_t kind)
{
    API(CALL_V1, context, kind, context ? v1(simcupti_disable(kind)) : CUPTI_INVALID_PARAMETER);
}

CUPTI_API int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
    API(CALL_V1, cbid, enable, v1(simcupti_enable_call(SIMGPU_RUNTIME, cbid, enable)));
}

CUPTI_API int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
    API(CALL_V1, cbid, enable, v1(simcupti_enable_call(SIMGPU_DRIVER, cbid, enable)));
}

/* --- buffers --- */

static int register_callbacks(simcupti_request_fn request, simcupti_complete_fn complete)
{
    if (!request || !complete) return CUPTI_INVALID_PARAMETER;
    pthread_mutex_lock(&simcupti_lock);
    simcupti.request = request;
    simcupti.complete = complete;
    pthread_mutex_unlock(&simcupti_lock);
    return v1(CUPTI_OK);
}

CUPTI_API int cuptiActivityRegisterCallbacks(simcupti_request_fn request, simcupti_complete_fn complete)
{
    int needs = simcupti_set.v2_used || simcupti.v2_used ? CALL_V1 : CALL_FREE | CALL_STUB_FAILS;
    API(needs, request, complete, register_callbacks(request, complete));
}

/* In a forked child the worker is gone; the real one waits for it without end. */
static int flush(uint32_t flag) { return simcupti_flush(flag & 1); }

CUPTI_API int cuptiActivityFlushAll(uint32_t flag)
{
    if (simcupti.armed_pid && simcupti.armed_pid != (int)getpid() && simcupti_hangs("fork")) {
        simcupti_answer("cuptiActivityFlushAll", 0, flag, 0, GO_ON);
        simcupti_hang();
    }
    API(CALL_GPU, flag, 0, flush(flag)); /* of both families: it flushes everybody */
}

CUPTI_API int cuptiActivityFlush(void *context, uint32_t stream, uint32_t flag)
{
    (void)context;
    API(CALL_V1, stream, flag, flush(flag));
}

CUPTI_API int cuptiActivityFlushPeriod(uint32_t ms) { API(CALL_GPU, ms, 0, (simcupti_flush_period(ms), CUPTI_OK)); }

int simcupti_take_dropped(size_t *dropped)
{
    if (!dropped) return CUPTI_INVALID_PARAMETER;
    pthread_mutex_lock(&simcupti_lock);
    *dropped = simcupti.dropped;
    simcupti.dropped = 0;
    pthread_mutex_unlock(&simcupti_lock);
    return CUPTI_OK;
}

CUPTI_API int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    API(CALL_V1, stream, 0, simcupti_take_dropped(dropped));
}

/* --- attributes and switches --- */

static size_t attribute_size(uint32_t attribute)
{
    if (attribute == 5 || attribute == 9 || attribute == 11 || (attribute >= 13 && attribute <= 20) || attribute == 23)
        return 1;
    return attribute == 8 || attribute == 12 || attribute == 21 ? 4 : 8;
}

static uint32_t known_attributes(void)
{
    uint32_t version = simcupti_set.version;
    return version >= 130500 ? 24 : version >= 130200 ? 23 : version >= 27 ? 10 : version >= 21 ? 9 : 8;
}

int simcupti_attribute(uint32_t attribute, size_t *size, void *value, bool is_set)
{
    if (!size || !value || attribute > known_attributes()) return CUPTI_INVALID_PARAMETER;
    size_t length = attribute_size(attribute);
    if (*size < length) return *size = length, CUPTI_PARAMETER_SIZE_NOT_SUFFICIENT;
    pthread_mutex_lock(&simcupti_lock);
    if (is_set) {
        simcupti.attributes[attribute] = 0;
        memcpy(&simcupti.attributes[attribute], value, length);
    } else {
        memcpy(value, &simcupti.attributes[attribute], length);
        *size = length;
    }
    pthread_mutex_unlock(&simcupti_lock);
    return CUPTI_OK;
}

CUPTI_API int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
    API(CALL_V1, attribute, value ? *(const uint8_t *)value : 0, simcupti_attribute(attribute, size, value, true));
}

CUPTI_API int cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value)
{
    API(CALL_V1, attribute, 0, simcupti_attribute(attribute, size, value, false));
}

static int set_flag(bool *flag, bool is_on) { return *flag = is_on, CUPTI_OK; }

CUPTI_API int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable)
{
    API(CALL_V1, enable, 0, set_flag(&simcupti.event_timestamps, enable));
}

CUPTI_API int cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    API(CALL_V1, enable, 0, set_flag(&simcupti.latency_timestamps, enable));
}
CUPTI_API int cuptiActivityEnableAllocationSource(uint8_t enable)
{
    API(CALL_V1, enable, 0, set_flag(&simcupti.allocation_source, enable));
}
CUPTI_API int cuptiActivityEnableLaunchAttributes(uint8_t enable) { API(CALL_V1, enable, 0, CUPTI_OK); }
CUPTI_API int cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
    API(CALL_V1, enable, 0, set_flag(&simcupti.ready_syncs_only, !enable));
}

CUPTI_API int cuptiActivityRegisterTimestampCallback(simcupti_time_fn clock)
{
    API(CALL_V1, clock, 0, clock ? (simcupti_clock_set(clock), v1(CUPTI_OK)) : CUPTI_INVALID_PARAMETER);
}

CUPTI_API int cuptiSetThreadIdType(uint32_t type)
{
    API(CALL_GPU, type, 0, type < 2 ? (simcupti.thread_id_type = type, CUPTI_OK) : CUPTI_INVALID_PARAMETER);
}

CUPTI_API int cuptiGetThreadIdType(uint32_t *type)
{
    API(CALL_GPU, type, 0, type ? (*type = simcupti.thread_id_type, CUPTI_OK) : CUPTI_INVALID_PARAMETER);
}

/* --- external correlation --- */

CUPTI_API int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id)
{
    API(CALL_V1, kind, id, simcupti_push(kind, id));
}
CUPTI_API int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *id)
{
    API(CALL_V1, kind, id ? 1 : 0, simcupti_pop(kind, id));
}

/* --- the end --- */

static int finalize(void)
{
    pthread_mutex_lock(&simcupti_lock);
    simcupti_buffers_forget();
    simcupti_unsubscribe_all();
    simcupti_external_forget();
    memset(&simcupti, 0, sizeof simcupti);
    simcupti.attributes[9] = simcupti_set.version >= 130000;
    pthread_mutex_unlock(&simcupti_lock);
    return CUPTI_OK;
}

CUPTI_API int cuptiFinalize(void) { API(CALL_FREE, 0, 0, finalize()); }

// SPDX-License-Identifier: Apache-2.0
/*
 * v2.c - the activity API of 13.2+ that names its subscriber
 *
 * Its subscribers share one set of kinds and the buffers of the last who registered callbacks. Whoever comes second of
 * v1 and v2 in a process is answered 14.
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <string.h>

static int begin(const void *subscriber)
{
    if (!simcupti_is_subscriber(subscriber)) return CUPTI_INVALID_PARAMETER;
    if (simcupti.v1_used) return CUPTI_NOT_COMPATIBLE;
    simcupti.v2_used = true;
    return CUPTI_OK;
}

static int register_callbacks(void *subscriber, simcupti_request_v2_fn request, simcupti_complete_v2_fn complete)
{
    int error = begin(subscriber);
    if (error) return error;
    if (!request || !complete) return CUPTI_INVALID_PARAMETER;
    pthread_mutex_lock(&simcupti_lock);
    simcupti.request_v2 = request;
    simcupti.complete_v2 = complete;
    pthread_mutex_unlock(&simcupti_lock);
    return CUPTI_OK;
}

static int after_begin(void *subscriber, uint32_t kind, int (*work)(uint32_t))
{
    int error = begin(subscriber);
    return error ? error : work(kind);
}

static int attribute(void *subscriber, uint32_t which, size_t *size, void *value, bool is_set)
{
    int error = begin(subscriber);
    return error ? error : simcupti_attribute(which, size, value, is_set);
}

static int enabled_kinds(const void *subscriber, uint32_t *kinds, uint32_t *size, uint32_t *count)
{
    if ((subscriber && !simcupti_is_subscriber(subscriber)) || !count) return CUPTI_INVALID_PARAMETER;
    uint32_t room = kinds && size ? *size / 4 : 0, found = 0;
    for (uint32_t kind = 1; kind < KIND_COUNT; kind++) {
        if (!simcupti.kinds[kind]) continue;
        if (found < room) kinds[found] = kind;
        found++;
    }
    *count = found;
    return kinds && found > room ? CUPTI_PARAMETER_SIZE_NOT_SUFFICIENT : CUPTI_OK;
}

CUPTI_API int cuptiActivityRegisterCallbacks_v2(void *subscriber, simcupti_request_v2_fn request,
                                                simcupti_complete_v2_fn complete)
{
    API(CALL_GPU, request, complete, register_callbacks(subscriber, request, complete));
}

CUPTI_API int cuptiActivityEnable_v2(void *subscriber, uint32_t kind, void *config)
{
    (void)config;
    API(CALL_GPU, kind, 0, after_begin(subscriber, kind, simcupti_enable));
}

CUPTI_API int cuptiActivityDisable_v2(void *subscriber, uint32_t kind, void *config)
{
    (void)config;
    API(CALL_GPU, kind, 0, after_begin(subscriber, kind, simcupti_disable));
}

CUPTI_API int cuptiActivityEnableAndDump_v2(void *subscriber, uint32_t kind, void *config)
{
    (void)config;
    API(CALL_GPU, kind, 0, after_begin(subscriber, kind, simcupti_enable_and_dump));
}

CUPTI_API int cuptiActivitySetAttribute_v2(void *subscriber, uint32_t which, size_t *size, void *value)
{
    API(CALL_GPU, which, 0, attribute(subscriber, which, size, value, true));
}

CUPTI_API int cuptiActivityGetAttribute_v2(void *subscriber, uint32_t which, size_t *size, void *value)
{
    API(CALL_GPU, which, 0, attribute(subscriber, which, size, value, false));
}

CUPTI_API int cuptiActivityGetEnabledKinds(void *subscriber, uint32_t *kinds, uint32_t *size, uint32_t *count)
{
    API(CALL_GPU, subscriber, 0, enabled_kinds(subscriber, kinds, size, count));
}

/* --- from 13.3 on --- */

CUPTI_API int cuptiActivityEnableRuntimeApi_v2(void *subscriber, uint32_t cbid, uint8_t enable)
{
    int error;
    API(CALL_GPU, cbid, enable,
        (error = begin(subscriber)) ? error : simcupti_enable_call(SIMGPU_RUNTIME, cbid, enable));
}

CUPTI_API int cuptiActivityEnableDriverApi_v2(void *subscriber, uint32_t cbid, uint8_t enable)
{
    int error;
    API(CALL_GPU, cbid, enable,
        (error = begin(subscriber)) ? error : simcupti_enable_call(SIMGPU_DRIVER, cbid, enable));
}

CUPTI_API int cuptiActivityPushExternalCorrelationId_v2(void *subscriber, uint32_t kind, uint64_t id)
{
    int error;
    API(CALL_GPU, kind, id, (error = begin(subscriber)) ? error : simcupti_push(kind, id));
}

CUPTI_API int cuptiActivityPopExternalCorrelationId_v2(void *subscriber, uint32_t kind, uint64_t *id)
{
    int error;
    API(CALL_GPU, kind, id ? 1 : 0, (error = begin(subscriber)) ? error : simcupti_pop(kind, id));
}

CUPTI_API int cuptiActivityGetNumDroppedRecords_v2(void *subscriber, void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    int error;
    API(CALL_GPU, stream, 0, (error = begin(subscriber)) ? error : simcupti_take_dropped(dropped));
}

CUPTI_API int cuptiActivityGetNextRecord_v2(void *subscriber, uint8_t *buffer, size_t valid, uint8_t **record)
{
    int error;
    API(CALL_GPU | CALL_QUIET, valid, 0,
        (error = begin(subscriber)) ? error : simcupti_next_record(buffer, valid, record));
}

CUPTI_API int cuptiGetTimestamp_v2(void *subscriber, uint64_t *timestamp)
{
    int error;
    API(CALL_GPU, subscriber, 0,
        (error = begin(subscriber)) ? error
        : timestamp                 ? (*timestamp = simcupti_now(), CUPTI_OK)
                                    : CUPTI_INVALID_PARAMETER);
}

static int is_running(uint8_t *is)
{
    if (!is) return CUPTI_INVALID_PARAMETER;
    *is = 0;
    for (int kind = 1; kind < KIND_COUNT; kind++) *is |= simcupti.kinds[kind];
    return CUPTI_OK;
}

CUPTI_API int cuptiIsTracingSessionRunning(uint8_t *is) { API(CALL_GPU, is, 0, is_running(is)); }

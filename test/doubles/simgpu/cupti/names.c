// SPDX-License-Identifier: Apache-2.0
/*
 * names.c - what can be asked of libcupti: version, names, sizes, the next record, ids, the time
 */
#include "test/doubles/simgpu/cbids.h"
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <dlfcn.h>
#include <string.h>

/* --- names --- */

static const struct {
    int result;
    const char *name;
} results[] = {
#define RESULT(result, name) {result, name},
#include "test/doubles/simgpu/cupti/results.def"
#undef RESULT
};

static int callback_name(uint32_t domain, uint32_t cbid, const char **name)
{
    if (!name) return CUPTI_INVALID_PARAMETER;
    const char *found = sim_cbid_name((int)domain, cbid);
    if (!found) return CUPTI_INVALID_PARAMETER;
    return *name = found, CUPTI_OK;
}

static int result_name(int result, const char **name)
{
    if (!name) return CUPTI_INVALID_PARAMETER;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].result == result) return *name = results[i].name, CUPTI_OK;
    return CUPTI_INVALID_PARAMETER;
}

CUPTI_API int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
    API(CALL_QUIET, domain, cbid, callback_name(domain, cbid, name));
}

CUPTI_API int cuptiGetResultString(int result, const char **name)
{
    API(CALL_QUIET, result, 0, result_name(result, name));
}
CUPTI_API int cuptiGetErrorMessage(int result, const char **name)
{
    API(CALL_QUIET, result, 0, result_name(result, name));
}

CUPTI_API int cuptiGetVersion(uint32_t *version)
{
    API(CALL_FREE, 0, 0, version ? (*version = simcupti_set.version, CUPTI_OK) : CUPTI_INVALID_PARAMETER);
}

CUPTI_API int cuptiGetTimestamp(uint64_t *timestamp)
{
    int flags = simcupti.v2_used || simcupti_set.v2_used ? CALL_V1 : CALL_FREE;
    API(flags, 0, 0, timestamp ? (*timestamp = simcupti_now(), CUPTI_OK) : CUPTI_INVALID_PARAMETER);
}

/* --- sizes, the next record --- */

static size_t size_of(uint32_t kind) { return kind < KIND_COUNT ? layout_sizes[kind][simcupti_set.layout] : 0; }

static uint32_t kind_at(const uint8_t *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    return kind;
}

/* As measured: an unknown kind ends the walk with an error, a record that is cut off like the normal end. */
int simcupti_next_record(uint8_t *buffer, size_t valid, uint8_t **record)
{
    if (!buffer || !record) return CUPTI_INVALID_PARAMETER;
    int unknown = simcupti_set.version <= 21 ? CUPTI_UNKNOWN : CUPTI_INVALID_KIND;
    uint8_t *next = buffer;
    if (*record) {
        size_t size = size_of(kind_at(*record));
        if (!size) return unknown;
        next = *record + size;
    }
    size_t left = next < buffer + valid ? (size_t)(buffer + valid - next) : 0;
    if (left < sizeof(uint32_t)) return CUPTI_MAX_LIMIT_REACHED;
    size_t size = size_of(kind_at(next));
    if (!size) return unknown;
    if (left < size) return CUPTI_MAX_LIMIT_REACHED;
    *record = next;
    return CUPTI_OK;
}

CUPTI_API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    API(CALL_QUIET, valid, 0, simcupti_next_record(buffer, valid, record));
}

static int struct_size(uint32_t kind, size_t *size)
{
    if (!size) return CUPTI_INVALID_PARAMETER;
    if (!size_of(kind)) return CUPTI_INVALID_KIND;
    return *size = size_of(kind), CUPTI_OK;
}

CUPTI_API int cuptiActivityGetStructSize(uint32_t kind, uint32_t version, size_t *size)
{
    API(CALL_FREE, kind, version, struct_size(kind, size));
}

/* --- ids --- */

static int (*driver(const char *name))(void *)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*function)(void *) = NULL;
    if (library) *(void **)&function = dlsym(library, name);
    return function;
}

/* The ids of a context are told by its null stream, so it has to be current for a moment. */
static int in_context(void *context, int (*ask)(uint32_t *), uint32_t *id)
{
    if (!id) return CUPTI_INVALID_PARAMETER;
    int (*push)(void *) = driver("cuCtxPushCurrent_v2"), (*pop)(void *) = driver("cuCtxPopCurrent_v2");
    if (context && (!push || !pop)) return CUPTI_NOT_SUPPORTED;
    simcupti_in_client++;
    int error = context ? push(context) : 0;
    int answer = error ? 3 : ask(id);
    void *was = NULL;
    if (context && !error) pop(&was);
    simcupti_in_client--;
    return answer;
}

static int ask_context(uint32_t *id)
{
    simcupti_core()->stream_id(NULL, id);
    return *id ? CUPTI_OK : 3;
}

static int ask_device(uint32_t *id)
{
    int (*get)(void *) = driver("cuCtxGetDevice");
    return get && !get(id) ? CUPTI_OK : 3;
}

CUPTI_API int cuptiGetContextId(void *context, uint32_t *id)
{
    API(CALL_GPU, context, 0, in_context(context, ask_context, id));
}
CUPTI_API int cuptiGetDeviceId(void *context, uint32_t *id)
{
    API(CALL_GPU, context, 0, in_context(context, ask_device, id));
}

static int stream_id(void *stream, uint32_t *id)
{
    if (!id) return CUPTI_INVALID_PARAMETER;
    uint32_t context = 0;
    simcupti_in_client++;
    *id = (uint32_t)simcupti_core()->stream_id(stream, &context);
    simcupti_in_client--;
    return CUPTI_OK;
}

CUPTI_API int cuptiGetStreamId(void *context, void *stream, uint32_t *id)
{
    API(CALL_GPU, context, stream, stream_id(stream, id));
}

CUPTI_API int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
    (void)per_thread;
    API(CALL_GPU, context, stream, stream_id(stream, id));
}

static int yes(int *is) { return is ? (*is = 1, CUPTI_OK) : CUPTI_INVALID_PARAMETER; }
CUPTI_API int cuptiDeviceSupported(int device, int *is) { API(CALL_GPU, device, 0, yes(is)); }
CUPTI_API int cuptiComputeCapabilitySupported(int major, int minor, int *is) { API(CALL_FREE, major, minor, yes(is)); }

/* NVTX is not simulated; whoever is pointed here is told that all is well. */
CUPTI_API int InitializeInjectionNvtx2(void *get_export_table) { return get_export_table != NULL; }

// SPDX-License-Identifier: Apache-2.0
/* cu_misc.c - calls that libraries make on the way and whose effect nothing here depends on; hints; log callbacks */
#include <string.h>

#include "test/doubles/simgpu/cuda/cu.h"

/* Nothing is ever logged here: a handle is all that the caller needs to unregister again. */
CU_API cuLogsRegisterCallback(void *callback, void *arg, void **handle)
{
    static int registration;
    (void)callback, (void)arg;
    if (handle) *handle = &registration;
    return SIM_OK;
}

CU_API cuLogsUnregisterCallback(void *handle)
{
    (void)handle;
    return SIM_OK;
}

/* --- managed memory: hints, and prefetches that are work in a stream --- */
static int prefetch(void *at, size_t bytes, void *stream)
{
    struct sim_stream *s = sim_stream_of(stream);
    struct sim_block block;
    if (s == NULL) return SIM_INVALID_HANDLE;
    return sim_memory_find(at, &block) && block.kind == SIM_MANAGED && bytes <= block.bytes ? SIM_OK
                                                                                            : SIM_INVALID_VALUE;
}

struct location {
    int type, id;
};

CU_API cuMemPrefetchAsync(void *at, size_t bytes, int device, void *stream)
{
    CU_CALL(cuMemPrefetchAsync, at, bytes, device, stream);
    return DONE(prefetch(at, bytes, stream));
}

CU_API cuMemPrefetchAsync_v2(void *at, size_t bytes, struct location location, unsigned flags, void *stream)
{
    CU_CALL(cuMemPrefetchAsync_v2, at, bytes, location, flags, stream);
    return DONE(prefetch(at, bytes, stream));
}

CU_API cuMemAdvise(void *at, size_t bytes, int advice, int device)
{
    CU_CALL(cuMemAdvise, at, bytes, advice, device);
    struct sim_block block;
    return DONE(sim_memory_find(at, &block) && block.kind == SIM_MANAGED ? SIM_OK : SIM_INVALID_VALUE);
}

CU_API cuMemAdvise_v2(void *at, size_t bytes, int advice, struct location location)
{
    CU_CALL(cuMemAdvise_v2, at, bytes, advice, location);
    struct sim_block block;
    return DONE(sim_memory_find(at, &block) && block.kind == SIM_MANAGED ? SIM_OK : SIM_INVALID_VALUE);
}

/* --- attributes of streams: taken and forgotten; memory of graphs: there is none --- */
CU_API cuStreamSetAttribute(struct sim_stream *stream, int attribute, const void *value)
{
    CU_CALL(cuStreamSetAttribute, stream, attribute, value);
    CU_STREAM(s, stream);
    return DONE(SIM_OK);
}

CU_API cuStreamGetAttribute(struct sim_stream *stream, int attribute, void *value)
{
    CU_CALL(cuStreamGetAttribute, stream, attribute, value);
    CU_STREAM(s, stream);
    memset(value, 0, 64);
    return DONE(SIM_OK);
}

CU_API cuDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    CU_CALL(cuDeviceGetGraphMemAttribute, device, attribute, value);
    CU_NEEDS(sim_device_at(device), SIM_INVALID_DEVICE);
    *(uint64_t *)value = 0;
    return DONE(SIM_OK);
}

CU_API cuDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
    CU_CALL(cuDeviceSetGraphMemAttribute, device, attribute, value);
    return DONE(sim_device_at(device) ? SIM_OK : SIM_INVALID_DEVICE);
}

CU_API cuDeviceGraphMemTrim(int device)
{
    CU_CALL(cuDeviceGraphMemTrim, device);
    return DONE(sim_device_at(device) ? SIM_OK : SIM_INVALID_DEVICE);
}

CU_API cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    CU_CALL(cuDeviceGetP2PAttribute, value, attribute, from, to);
    CU_NEEDS(sim_device_at(from) && sim_device_at(to) && from != to, SIM_INVALID_DEVICE);
    *value = attribute == 1 ? 0 : 1;
    return DONE(SIM_OK);
}

CU_API cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *at, const void *sizes, const void *strides,
                              const void *box, const void *steps, int interleave, int swizzle, int promotion)
{
    CU_CALL(cuTensorMapEncodeTiled, map, type, rank, at, sizes, strides, box, steps, interleave, swizzle, promotion);
    memset(map, 0, 128);
    return DONE(SIM_OK);
}

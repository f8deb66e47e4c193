// SPDX-License-Identifier: Apache-2.0
/* cu_memory.c - allocation on the device and the host, pools, and what lies behind a pointer */
#include <string.h>

#include "test/doubles/simgpu/core/graph.h"
#include "test/doubles/simgpu/cuda/cu.h"

CU_API cuMemAlloc_v2(void **out, size_t bytes)
{
    CU_CALL(cuMemAlloc_v2, out, bytes);
    CU_CONTEXT(context);
    CU_NEEDS(sim_capture_unsafe() == 0, SIM_CAPTURE_UNSUPPORTED);
    CU_NEEDS(out && bytes, SIM_INVALID_VALUE);
    return DONE(sim_memory_alloc(context, SIM_DEVICE_MEMORY, bytes, 0, NULL, SIM_NOT_APPLICABLE, out));
}

CU_API cuMemAllocPitch_v2(void **out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    CU_CALL(cuMemAllocPitch_v2, out, pitch, width, height, element);
    CU_CONTEXT(context);
    CU_NEEDS(out && pitch && width && height, SIM_INVALID_VALUE);
    *pitch = (width + 511) & ~(size_t)511;
    return DONE(sim_memory_alloc(context, SIM_DEVICE_MEMORY, *pitch * height, 0, NULL, SIM_NOT_APPLICABLE, out));
}

CU_API cuMemAllocManaged(void **out, size_t bytes, unsigned flags)
{
    CU_CALL(cuMemAllocManaged, out, bytes, flags);
    CU_CONTEXT(context);
    CU_NEEDS(out && bytes, SIM_INVALID_VALUE);
    return DONE(sim_memory_alloc(context, SIM_MANAGED, bytes, flags, NULL, SIM_NOT_APPLICABLE, out));
}

/* The real one waits for the device, so that no work still uses the memory. */
CU_API cuMemFree_v2(void *at)
{
    CU_CALL(cuMemFree_v2, at);
    CU_CONTEXT(context);
    CU_NEEDS(sim_capture_unsafe() == 0, SIM_CAPTURE_UNSUPPORTED);
    CU_NEEDS(at, SIM_OK);
    sim_lock();
    uint64_t ready = sim_stream_ready_ns(&context->null_stream);
    sim_unlock();
    sim_sleep_until(ready);
    return DONE(sim_memory_free(at, 0, SIM_NOT_APPLICABLE));
}

static int host_alloc(void **out, size_t bytes, unsigned flags)
{
    struct sim_context *context = cu_context();
    if (context == NULL) return SIM_INVALID_CONTEXT;
    if (out == NULL || bytes == 0) return SIM_INVALID_VALUE;
    return sim_memory_alloc(context, SIM_PINNED, bytes, flags, NULL, SIM_NOT_APPLICABLE, out);
}

CU_API cuMemAllocHost_v2(void **out, size_t bytes)
{
    CU_CALL(cuMemAllocHost_v2, out, bytes);
    return DONE(host_alloc(out, bytes, 0));
}

CU_API cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    CU_CALL(cuMemHostAlloc, out, bytes, flags);
    return DONE(host_alloc(out, bytes, flags));
}

CU_API cuMemFreeHost(void *at)
{
    CU_CALL(cuMemFreeHost, at);
    return DONE(sim_memory_free(at, SIM_PINNED, SIM_NOT_APPLICABLE));
}

CU_API cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    CU_CALL(cuMemHostRegister_v2, at, bytes, flags);
    CU_CONTEXT(context);
    return DONE(sim_memory_register(context, at, bytes, flags));
}

CU_API cuMemHostUnregister(void *at)
{
    CU_CALL(cuMemHostUnregister, at);
    return DONE(sim_memory_unregister(at));
}

CU_API cuMemHostGetDevicePointer_v2(void **out, void *at, unsigned flags)
{
    CU_CALL(cuMemHostGetDevicePointer_v2, out, at, flags);
    struct sim_block block;
    CU_NEEDS(sim_memory_find(at, &block) && block.kind == SIM_PINNED, SIM_INVALID_VALUE);
    *out = at;
    return DONE(SIM_OK);
}

CU_API cuMemHostGetFlags(unsigned *flags, void *at)
{
    CU_CALL(cuMemHostGetFlags, flags, at);
    struct sim_block block;
    CU_NEEDS(sim_memory_find(at, &block) && block.kind == SIM_PINNED, SIM_INVALID_VALUE);
    *flags = block.flags;
    return DONE(SIM_OK);
}

CU_API cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    CU_CALL(cuMemGetInfo_v2, free_bytes, total_bytes);
    CU_CONTEXT(context);
    sim_memory_info(context->device, free_bytes, total_bytes);
    return DONE(SIM_OK);
}

CU_API cuMemGetAddressRange_v2(uintptr_t *base, size_t *bytes, void *at)
{
    CU_CALL(cuMemGetAddressRange_v2, base, bytes, at);
    struct sim_block block;
    CU_NEEDS(sim_memory_find(at, &block) && block.kind != SIM_PINNED, SIM_NOT_FOUND);
    if (base) *base = block.base;
    if (bytes) *bytes = block.bytes;
    return DONE(SIM_OK);
}

/* --- in the order of a stream --- */
static int alloc_async(void **out, size_t bytes, struct sim_pool *pool, void *stream)
{
    struct sim_stream *s = sim_stream_of(stream);
    if (s == NULL) return SIM_INVALID_HANDLE;
    if (out == NULL || bytes == 0) return SIM_INVALID_VALUE;
    int error = s->capture ? sim_capture_node(s, SIM_NODE_ALLOC) : SIM_OK;
    if (error) return error;
    if (pool == NULL) pool = sim_pool_default(s->context->device);
    return sim_memory_alloc(s->context, SIM_DEVICE_MEMORY, bytes, 0, pool, s->id, out);
}

CU_API cuMemAllocAsync(void **out, size_t bytes, void *stream)
{
    CU_CALL(cuMemAllocAsync, out, bytes, stream);
    return DONE(alloc_async(out, bytes, NULL, stream));
}

CU_API cuMemAllocFromPoolAsync(void **out, size_t bytes, struct sim_pool *pool, void *stream)
{
    CU_CALL(cuMemAllocFromPoolAsync, out, bytes, pool, stream);
    CU_NEEDS(sim_pool_is(pool), SIM_INVALID_VALUE);
    return DONE(alloc_async(out, bytes, pool, stream));
}

/* Copies were done when they were enqueued: nothing uses the memory any more. What a graph takes it keeps for good. */
CU_API cuMemFreeAsync(void *at, void *stream)
{
    CU_CALL(cuMemFreeAsync, at, stream);
    CU_STREAM(s, stream);
    if (s->capture) return DONE(sim_capture_node(s, SIM_NODE_FREE));
    return DONE(sim_memory_free(at, SIM_DEVICE_MEMORY, s->id));
}

/* --- pools --- */
CU_API cuDeviceGetDefaultMemPool(struct sim_pool **pool, int device)
{
    CU_CALL(cuDeviceGetDefaultMemPool, pool, device);
    CU_NEEDS(sim_device_at(device), SIM_INVALID_DEVICE);
    *pool = sim_pool_default(device);
    return DONE(SIM_OK);
}

CU_API cuDeviceGetMemPool(struct sim_pool **pool, int device)
{
    CU_CALL(cuDeviceGetMemPool, pool, device);
    CU_NEEDS(sim_device_at(device), SIM_INVALID_DEVICE);
    *pool = sim_pool_default(device);
    return DONE(SIM_OK);
}

CU_API cuMemPoolCreate(struct sim_pool **pool, const void *properties)
{
    CU_CALL(cuMemPoolCreate, pool, properties);
    CU_CONTEXT(context);
    *pool = sim_pool_create(context->device);
    return DONE(*pool ? SIM_OK : SIM_OUT_OF_MEMORY);
}

CU_API cuMemPoolDestroy(struct sim_pool *pool)
{
    CU_CALL(cuMemPoolDestroy, pool);
    CU_NEEDS(sim_pool_is(pool) && !pool->is_default, SIM_INVALID_VALUE);
    sim_pool_destroy(pool);
    return DONE(SIM_OK);
}

/* 1-3 reuse policies (int), 4 release threshold, 5 reserved, 6 its high mark, 7 used, 8 its high mark */
CU_API cuMemPoolGetAttribute(struct sim_pool *pool, int number, void *value)
{
    CU_CALL(cuMemPoolGetAttribute, pool, number, value);
    CU_NEEDS(sim_pool_is(pool) && number >= 1 && number <= 8, SIM_INVALID_VALUE);
    if (number <= 3) {
        *(int *)value = (int)pool->flags[number];
        return DONE(SIM_OK);
    }
    *(uint64_t *)value = number == 4 ? pool->release_threshold : number & 1 ? pool->used : pool->used_high;
    return DONE(SIM_OK);
}

CU_API cuMemPoolSetAttribute(struct sim_pool *pool, int number, void *value)
{
    CU_CALL(cuMemPoolSetAttribute, pool, number, value);
    CU_NEEDS(sim_pool_is(pool) && number >= 1 && number <= 8, SIM_INVALID_VALUE);
    if (number <= 3) pool->flags[number] = (uint64_t) * (int *)value;
    if (number == 4) pool->release_threshold = *(uint64_t *)value;
    if (number == 6 || number == 8) pool->used_high = pool->used;
    return DONE(SIM_OK);
}

CU_API cuMemPoolSetAccess(struct sim_pool *pool, const void *map, size_t count)
{
    CU_CALL(cuMemPoolSetAccess, pool, map, count);
    return DONE(sim_pool_is(pool) ? SIM_OK : SIM_INVALID_VALUE);
}

CU_API cuMemPoolTrimTo(struct sim_pool *pool, size_t bytes)
{
    CU_CALL(cuMemPoolTrimTo, pool, bytes);
    return DONE(sim_pool_is(pool) ? SIM_OK : SIM_INVALID_VALUE);
}

/* --- pointers: 1 context, 2 memory type, 3 device pointer, 4 host pointer, 7 id, 8 managed, 9 device, 11 base, 12
 * size, 13 mapped --- */
static int pointer_attribute(void *value, int number, const void *at)
{
    struct sim_block b;
    if (!sim_memory_find(at, &b)) return SIM_INVALID_VALUE;
    switch (number) {
    case 1: *(void **)value = b.context; return SIM_OK;
    case 2: *(unsigned *)value = b.kind == SIM_PINNED ? 1 : 2; return SIM_OK;
    case 3: *(const void **)value = at; return SIM_OK;
    case 4:
        if (b.kind == SIM_DEVICE_MEMORY) return SIM_INVALID_VALUE;
        *(const void **)value = at;
        return SIM_OK;
    case 6: return SIM_OK;
    case 7: *(unsigned long long *)value = b.id; return SIM_OK;
    case 8: *(unsigned *)value = b.kind == SIM_MANAGED; return SIM_OK;
    case 9: *(int *)value = b.device; return SIM_OK;
    case 10: *(unsigned *)value = 0; return SIM_OK;
    case 11: *(uintptr_t *)value = b.base; return SIM_OK;
    case 12: *(size_t *)value = b.bytes; return SIM_OK;
    case 13: *(unsigned *)value = 1; return SIM_OK;
    case 17: *(void **)value = b.pool; return SIM_OK;
    default: return SIM_INVALID_VALUE;
    }
}

CU_API cuPointerGetAttribute(void *value, int number, void *at)
{
    CU_CALL(cuPointerGetAttribute, value, number, at);
    return DONE(pointer_attribute(value, number, at));
}

static size_t attribute_bytes(int number)
{
    switch (number) {
    case 2:
    case 8:
    case 9:
    case 10:
    case 13: return sizeof(int);
    default: return sizeof(void *);
    }
}

/* Where an attribute is not there the real one writes nothing and succeeds; for pointers it does not know it zeroes. */
CU_API cuPointerGetAttributes(unsigned count, const int *numbers, void **values, void *at)
{
    CU_CALL(cuPointerGetAttributes, count, numbers, values, at);
    for (unsigned i = 0; i < count; i++)
        if (pointer_attribute(values[i], numbers[i], at) != SIM_OK) memset(values[i], 0, attribute_bytes(numbers[i]));
    return DONE(SIM_OK);
}

// SPDX-License-Identifier: Apache-2.0
/* rt_memory.c - allocation, copies and fills of the runtime's API */
#include <string.h>

#include "test/doubles/simgpu/cudart/rt.h"

RT_API cudaMalloc(void **out, size_t bytes)
{
    RT_CALL(cudaMalloc, RT_CONTEXT, out, bytes);
    RT_NEEDS(out, RT_INVALID_VALUE);
    if (bytes == 0) *out = NULL;
    return DONE(bytes ? drv.cuMemAlloc_v2(out, bytes) : RT_OK);
}

RT_API cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    RT_CALL(cudaMallocPitch, RT_CONTEXT, out, pitch, width, height);
    return DONE(drv.cuMemAllocPitch_v2(out, pitch, width, height, 4));
}

RT_API cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
    RT_CALL(cudaMallocManaged, RT_CONTEXT, out, bytes, flags);
    return DONE(drv.cuMemAllocManaged(out, bytes, flags));
}

RT_API cudaFree(void *at)
{
    RT_CALL(cudaFree, RT_CONTEXT, at);
    return DONE(at ? drv.cuMemFree_v2(at) : RT_OK);
}

RT_API cudaMallocHost(void **out, size_t bytes)
{
    RT_CALL(cudaMallocHost, RT_CONTEXT, out, bytes);
    return DONE(drv.cuMemHostAlloc(out, bytes, 0));
}

RT_API cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    RT_CALL(cudaHostAlloc, RT_CONTEXT, out, bytes, flags);
    return DONE(drv.cuMemHostAlloc(out, bytes, flags));
}

RT_API cudaFreeHost(void *at)
{
    RT_CALL(cudaFreeHost, RT_CONTEXT, at);
    return DONE(at ? drv.cuMemFreeHost(at) : RT_OK);
}

RT_API cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
    RT_CALL(cudaHostRegister, RT_CONTEXT, at, bytes, flags);
    return DONE(drv.cuMemHostRegister_v2(at, bytes, flags));
}

RT_API cudaHostUnregister(void *at)
{
    RT_CALL(cudaHostUnregister, RT_CONTEXT, at);
    return DONE(drv.cuMemHostUnregister(at));
}

RT_API cudaHostGetDevicePointer(void **out, void *at, unsigned flags)
{
    RT_CALL(cudaHostGetDevicePointer, RT_CONTEXT, out, at, flags);
    return DONE(drv.cuMemHostGetDevicePointer_v2(out, at, flags));
}

RT_API cudaHostGetFlags(unsigned *flags, void *at)
{
    RT_CALL(cudaHostGetFlags, RT_CONTEXT, flags, at);
    return DONE(drv.cuMemHostGetFlags(flags, at));
}

RT_API cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    RT_CALL(cudaMemGetInfo, RT_CONTEXT, free_bytes, total_bytes);
    return DONE(drv.cuMemGetInfo_v2(free_bytes, total_bytes));
}

/* --- copies: 0 host to host, 1 to the device, 2 from it, 3 within it, 4 find out --- */
static int copy(void *dst, const void *src, size_t bytes, int kind)
{
    switch (kind) {
    case 1: return drv.cuMemcpyHtoD_v2(dst, src, bytes);
    case 2: return drv.cuMemcpyDtoH_v2(dst, src, bytes);
    case 3: return drv.cuMemcpyDtoD_v2(dst, src, bytes);
    case 0:
    case 4: return drv.cuMemcpy(dst, src, bytes);
    default: return RT_INVALID_DIRECTION;
    }
}

static int copy_async(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
    switch (kind) {
    case 1: return drv.cuMemcpyHtoDAsync_v2(dst, src, bytes, stream);
    case 2: return drv.cuMemcpyDtoHAsync_v2(dst, src, bytes, stream);
    case 3: return drv.cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
    case 0:
    case 4: return drv.cuMemcpyAsync(dst, src, bytes, stream);
    default: return RT_INVALID_DIRECTION;
    }
}

RT_API cudaMemcpy(void *dst, const void *src, size_t bytes, int kind)
{
    RT_CALL(cudaMemcpy, RT_CONTEXT, dst, src, bytes, kind);
    return DONE(copy(dst, src, bytes, kind));
}

RT_API cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
    RT_CALL(cudaMemcpyAsync, RT_CONTEXT, dst, src, bytes, kind, stream);
    return DONE(copy_async(dst, src, bytes, kind, stream));
}

static int contexts_of(int dst_device, int src_device, void **dst_context, void **src_context)
{
    int error = drv.cuDevicePrimaryCtxRetain(dst_context, dst_device);
    return error ? error : drv.cuDevicePrimaryCtxRetain(src_context, src_device);
}

RT_API cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes)
{
    RT_CALL(cudaMemcpyPeer, RT_CONTEXT, dst, dst_device, src, src_device, bytes);
    void *to, *from;
    int error = contexts_of(dst_device, src_device, &to, &from);
    return DONE(error ? error : drv.cuMemcpyPeer(dst, to, src, from, bytes));
}

RT_API cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes, void *stream)
{
    RT_CALL(cudaMemcpyPeerAsync, RT_CONTEXT, dst, dst_device, src, src_device, bytes, stream);
    void *to, *from;
    int error = contexts_of(dst_device, src_device, &to, &from);
    return DONE(error ? error : drv.cuMemcpyPeerAsync(dst, to, src, from, bytes, stream));
}

/* The driver's description of a rectangle; both sides as "unified" addresses. */
struct side {
    size_t x, y;
    unsigned type;
    const void *host, *device;
    void *array;
    size_t pitch;
};
struct rectangle {
    struct side src, dst;
    size_t width, height;
};
enum { UNIFIED = 4 };

static struct rectangle rectangle_of(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                                     size_t height)
{
    return (struct rectangle){.src = {.type = UNIFIED, .device = src, .pitch = src_pitch},
                              .dst = {.type = UNIFIED, .device = dst, .pitch = dst_pitch},
                              .width = width,
                              .height = height};
}

RT_API cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                    int kind)
{
    RT_CALL(cudaMemcpy2D, RT_CONTEXT, dst, dst_pitch, src, src_pitch, width, height, kind);
    struct rectangle r = rectangle_of(dst, dst_pitch, src, src_pitch, width, height);
    return DONE(drv.cuMemcpy2DUnaligned_v2(&r));
}

RT_API cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         int kind, void *stream)
{
    RT_CALL(cudaMemcpy2DAsync, RT_CONTEXT, dst, dst_pitch, src, src_pitch, width, height, kind, stream);
    struct rectangle r = rectangle_of(dst, dst_pitch, src, src_pitch, width, height);
    return DONE(drv.cuMemcpy2DAsync_v2(&r, stream));
}

RT_API cudaMemset(void *at, int value, size_t bytes)
{
    RT_CALL(cudaMemset, RT_CONTEXT, at, value, bytes);
    return DONE(drv.cuMemsetD8_v2(at, (unsigned char)value, bytes));
}

RT_API cudaMemsetAsync(void *at, int value, size_t bytes, void *stream)
{
    RT_CALL(cudaMemsetAsync, RT_CONTEXT, at, value, bytes, stream);
    return DONE(drv.cuMemsetD8Async(at, (unsigned char)value, bytes, stream));
}

RT_API cudaMemset2D(void *at, size_t pitch, int value, size_t width, size_t height)
{
    RT_CALL(cudaMemset2D, RT_CONTEXT, at, pitch, value, width, height);
    return DONE(drv.cuMemsetD2D8_v2(at, pitch, (unsigned char)value, width, height));
}

RT_API cudaMemset2DAsync(void *at, size_t pitch, int value, size_t width, size_t height, void *stream)
{
    RT_CALL(cudaMemset2DAsync, RT_CONTEXT, at, pitch, value, width, height, stream);
    return DONE(drv.cuMemsetD2D8Async(at, pitch, (unsigned char)value, width, height, stream));
}

/* --- in the order of a stream, from pools --- */
RT_API cudaMallocAsync(void **out, size_t bytes, void *stream)
{
    RT_CALL(cudaMallocAsync, RT_CONTEXT, out, bytes, stream);
    return DONE(drv.cuMemAllocAsync(out, bytes, stream));
}

RT_API cudaMallocFromPoolAsync(void **out, size_t bytes, void *pool, void *stream)
{
    RT_CALL(cudaMallocFromPoolAsync, RT_CONTEXT, out, bytes, pool, stream);
    return DONE(drv.cuMemAllocFromPoolAsync(out, bytes, pool, stream));
}

RT_API cudaFreeAsync(void *at, void *stream)
{
    RT_CALL(cudaFreeAsync, RT_CONTEXT, at, stream);
    return DONE(drv.cuMemFreeAsync(at, stream));
}

RT_API cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    RT_CALL(cudaDeviceGetDefaultMemPool, RT_DRIVER, pool, device);
    return DONE(drv.cuDeviceGetDefaultMemPool(pool, device));
}

RT_API cudaDeviceGetMemPool(void **pool, int device)
{
    RT_CALL(cudaDeviceGetMemPool, RT_DRIVER, pool, device);
    return DONE(drv.cuDeviceGetMemPool(pool, device));
}

RT_API cudaMemPoolCreate(void **pool, const void *properties)
{
    RT_CALL(cudaMemPoolCreate, RT_CONTEXT, pool, properties);
    return DONE(drv.cuMemPoolCreate(pool, properties));
}

RT_API cudaMemPoolDestroy(void *pool)
{
    RT_CALL(cudaMemPoolDestroy, RT_CONTEXT, pool);
    return DONE(drv.cuMemPoolDestroy(pool));
}

RT_API cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    RT_CALL(cudaMemPoolGetAttribute, RT_CONTEXT, pool, attribute, value);
    return DONE(drv.cuMemPoolGetAttribute(pool, attribute, value));
}

RT_API cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    RT_CALL(cudaMemPoolSetAttribute, RT_CONTEXT, pool, attribute, value);
    return DONE(drv.cuMemPoolSetAttribute(pool, attribute, value));
}

RT_API cudaMemPoolSetAccess(void *pool, const void *map, size_t count)
{
    RT_CALL(cudaMemPoolSetAccess, RT_CONTEXT, pool, map, count);
    return DONE(drv.cuMemPoolSetAccess(pool, map, count));
}

RT_API cudaMemPoolTrimTo(void *pool, size_t bytes)
{
    RT_CALL(cudaMemPoolTrimTo, RT_CONTEXT, pool, bytes);
    return DONE(drv.cuMemPoolTrimTo(pool, bytes));
}

/* --- what a pointer is: 0 the program's own memory, 1 pinned, 2 of a device, 3 managed --- */
struct pointer {
    int type, device;
    void *device_pointer, *host_pointer;
#if SIM_CUDART >= 13
    long reserved[8];
#endif
};

RT_API cudaPointerGetAttributes(struct pointer *out, const void *at)
{
    RT_CALL(cudaPointerGetAttributes, RT_CONTEXT, out, at);
    unsigned type = 0, is_managed = 0;
    int device = 0;
    void *host = NULL;
    const int numbers[] = {2, 8, 9};
    void *values[] = {&type, &is_managed, &device};
    memset(out, 0, sizeof *out);
    int error = drv.cuPointerGetAttributes(3, numbers, values, at);
    if (error) return DONE(error);
    if (type == 0) {
        out->device = -2;
        return DONE(RT_OK);
    }
    out->type = is_managed ? 3 : (int)type;
    out->device = device;
    out->device_pointer = (void *)at;
    if (out->type != 2) host = (void *)at;
    out->host_pointer = host;
    return DONE(RT_OK);
}

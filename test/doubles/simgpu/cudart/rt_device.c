// SPDX-License-Identifier: Apache-2.0
/* rt_device.c - devices, versions, errors in words, limits, the profiler switches, entry points of the driver */
#include <stdio.h>
#include <string.h>

#include "test/doubles/simgpu/cudart/rt.h"

RT_API cudaGetDeviceCount(int *count)
{
    RT_CALL(cudaGetDeviceCount, RT_DRIVER, count);
    return DONE(drv.cuDeviceGetCount(count));
}

RT_API cudaGetDevice(int *device)
{
    RT_CALL(cudaGetDevice, RT_DRIVER, device);
    *device = rt_device();
    return DONE(RT_OK);
}

RT_API cudaSetDevice(int device)
{
    RT_CALL(cudaSetDevice, RT_DRIVER, device);
    return DONE(rt_device_set(device));
}

RT_API cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    RT_CALL(cudaInitDevice, RT_DRIVER, device, device_flags, flags);
    void *context;
    return DONE(drv.cuDevicePrimaryCtxRetain(&context, device));
}

RT_API cudaSetDeviceFlags(unsigned flags)
{
    RT_CALL(cudaSetDeviceFlags, RT_DRIVER, flags);
    return DONE(RT_OK);
}

RT_API cudaGetDeviceFlags(unsigned *flags)
{
    RT_CALL(cudaGetDeviceFlags, RT_DRIVER, flags);
    *flags = 0;
    return DONE(RT_OK);
}

RT_API cudaDeviceReset(void)
{
    RT_NOARGS(cudaDeviceReset, RT_DRIVER);
    rt_last_error_set(RT_OK);
    return DONE(drv.cuDevicePrimaryCtxReset_v2(rt_device()));
}

RT_API cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    RT_CALL(cudaDeviceGetAttribute, RT_DRIVER, value, attribute, device);
    return DONE(drv.cuDeviceGetAttribute(value, attribute, device));
}

RT_API cudaDeviceGetPCIBusId(char *id, int length, int device)
{
    RT_CALL(cudaDeviceGetPCIBusId, RT_DRIVER, id, length, device);
    return DONE(drv.cuDeviceGetPCIBusId(id, length, device));
}

RT_API cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    RT_CALL(cudaDeviceCanAccessPeer, RT_DRIVER, can, device, peer);
    return DONE(drv.cuDeviceCanAccessPeer(can, device, peer));
}

RT_API cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    RT_CALL(cudaDeviceEnablePeerAccess, RT_CONTEXT, peer, flags);
    void *context;
    int error = drv.cuDevicePrimaryCtxRetain(&context, peer);
    return DONE(error ? error : drv.cuCtxEnablePeerAccess(context, flags));
}

RT_API cudaDeviceDisablePeerAccess(int peer)
{
    RT_CALL(cudaDeviceDisablePeerAccess, RT_CONTEXT, peer);
    void *context;
    int error = drv.cuDevicePrimaryCtxRetain(&context, peer);
    return DONE(error ? error : drv.cuCtxDisablePeerAccess(context));
}

RT_API cudaDeviceGetLimit(size_t *value, unsigned limit)
{
    RT_CALL(cudaDeviceGetLimit, RT_CONTEXT, value, limit);
    return DONE(drv.cuCtxGetLimit(value, limit));
}

RT_API cudaDeviceSetLimit(unsigned limit, size_t value)
{
    RT_CALL(cudaDeviceSetLimit, RT_CONTEXT, limit, value);
    return DONE(drv.cuCtxSetLimit(limit, value));
}

/* --- properties (props.def); the form before 12 ends before the fields marked NEW --- */
struct properties {
    char name[256];
    uint8_t uuid[16];
    char luid[8];
    unsigned luid_mask;
#define PROP(type, field, count, value) type field[count];
#define NEW(type, field, count, value) type field[count];
#if SIM_CUDART >= 13
#define OLD(type, field, count, value)
#else
#define OLD(type, field, count, value) type field[count];
#endif
#include "test/doubles/simgpu/cudart/props.def"
#undef PROP
#undef NEW
#undef OLD
};

static int attribute_of(int number, int device)
{
    int value = 0;
    drv.cuDeviceGetAttribute(&value, number, device);
    return value;
}

static int fill_properties(struct properties *out, size_t size, int device)
{
    struct properties p;
    size_t total = 0;
    memset(&p, 0, sizeof p);
    int error = drv.cuDeviceGetName(p.name, sizeof p.name, device);
    if (error) return error;
    drv.cuDeviceGetUuid_v2(p.uuid, device);
    drv.cuDeviceTotalMem_v2(&total, device);
#define A(number) attribute_of(number, device)
#define PROP(type, field, count, value) p.field[0] = value;
#define NEW(type, field, count, value) p.field[0] = value;
#if SIM_CUDART >= 13
#define OLD(type, field, count, value)
#else
#define OLD(type, field, count, value) p.field[0] = value;
#endif
#include "test/doubles/simgpu/cudart/props.def"
#undef PROP
#undef NEW
#undef OLD
    memcpy(out, &p, size);
    return RT_OK;
}

#if SIM_CUDART >= 13
RT_API cudaGetDeviceProperties(struct properties *out, int device)
{
    RT_CALL(cudaGetDeviceProperties, RT_DRIVER, out, device);
    return DONE(fill_properties(out, sizeof *out, device));
}
#else
RT_API cudaGetDeviceProperties(struct properties *out, int device)
{
    RT_CALL(cudaGetDeviceProperties_v3020, RT_DRIVER, out, device);
    return DONE(fill_properties(out, offsetof(struct properties, hostRegisterSupported), device));
}

RT_API cudaGetDeviceProperties_v2(struct properties *out, int device)
{
    RT_CALL(cudaGetDeviceProperties, RT_DRIVER, out, device);
    return DONE(fill_properties(out, sizeof *out, device));
}
#endif

/* --- versions and errors --- */
RT_API cudaRuntimeGetVersion(int *version)
{
    RT_CALL(cudaRuntimeGetVersion, RT_NOTHING, version);
    *version = SIM_RUNTIME_VERSION;
    return DONE(RT_OK);
}

RT_API cudaDriverGetVersion(int *version)
{
    RT_CALL(cudaDriverGetVersion, RT_NOTHING, version);
    return DONE(drv.cuDriverGetVersion(version));
}

RT_API cudaGetLastError(void)
{
    if (rt_core() == NULL) return rt_last_error(true);
    RT_NOARGS(cudaGetLastError, RT_NOTHING);
    int error = rt_last_error(true);
    rt_core()->call_exit(&call_, error);
    return error;
}

RT_API cudaPeekAtLastError(void)
{
    if (rt_core() == NULL) return rt_last_error(false);
    RT_NOARGS(cudaPeekAtLastError, RT_NOTHING);
    int error = rt_last_error(false);
    rt_core()->call_exit(&call_, error);
    return error;
}

static const struct {
    int number;
    const char *name, *words;
} errors[] = {
#define ERROR(number, driver, runtime, words) {number, #runtime, words},
#include "test/doubles/simgpu/errors.def"
#undef ERROR
};

RT_EXPORT const char *cudaGetErrorName(int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error) return errors[i].name;
    return "unrecognized error code";
}

RT_EXPORT const char *cudaGetErrorString(int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error) return errors[i].words;
    return "unrecognized error code";
}

RT_API cudaProfilerStart(void)
{
    RT_NOARGS(cudaProfilerStart, RT_CONTEXT);
    return DONE(drv.cuProfilerStart());
}

RT_API cudaProfilerStop(void)
{
    RT_NOARGS(cudaProfilerStop, RT_CONTEXT);
    return DONE(drv.cuProfilerStop());
}

/* --- functions of the driver by name --- */
static int entry_point(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
    int found = 0, error = drv.cuGetProcAddress_v2(symbol, fn, version, flags, &found);
    if (status) *status = found;
    return error;
}

RT_API cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags, int *status)
{
    RT_CALL(cudaGetDriverEntryPoint, RT_DRIVER, symbol, fn, flags, status);
    return DONE(entry_point(symbol, fn, SIM_RUNTIME_VERSION, flags, status));
}

RT_API cudaGetDriverEntryPointByVersion(const char *symbol, void **fn, unsigned version, unsigned long long flags,
                                        int *status)
{
    RT_CALL(cudaGetDriverEntryPointByVersion, RT_DRIVER, symbol, fn, version, flags, status);
    return DONE(entry_point(symbol, fn, (int)version, flags, status));
}

// SPDX-License-Identifier: Apache-2.0
/* rt_library.c - code loaded at run time through the runtime's API; hints about managed memory; memory of graphs */
#include "test/doubles/simgpu/cudart/rt.h"

RT_API cudaLibraryLoadData(void **library, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                           int *options, void **values, unsigned count)
{
    RT_CALL(cudaLibraryLoadData, RT_CONTEXT, library, code, jit_options, jit_values, jit_count, options, values, count);
    return DONE(drv.cuLibraryLoadData(library, code, jit_options, jit_values, jit_count, options, values, count));
}

RT_API cudaLibraryLoadFromFile(void **library, const char *path, int *jit_options, void **jit_values,
                               unsigned jit_count, int *options, void **values, unsigned count)
{
    RT_CALL(cudaLibraryLoadFromFile, RT_CONTEXT, library, path, jit_options, jit_values, jit_count, options, values,
            count);
    return DONE(drv.cuLibraryLoadFromFile(library, path, jit_options, jit_values, jit_count, options, values, count));
}

RT_API cudaLibraryUnload(void *library)
{
    RT_CALL(cudaLibraryUnload, RT_CONTEXT, library);
    return DONE(drv.cuLibraryUnload(library));
}

RT_API cudaLibraryGetKernel(void **kernel, void *library, const char *name)
{
    RT_CALL(cudaLibraryGetKernel, RT_CONTEXT, kernel, library, name);
    return DONE(drv.cuLibraryGetKernel(kernel, library, name));
}

RT_API cudaLibraryGetKernelCount(unsigned *count, void *library)
{
    RT_CALL(cudaLibraryGetKernelCount, RT_CONTEXT, count, library);
    return DONE(drv.cuLibraryGetKernelCount(count, library));
}

RT_API cudaLibraryEnumerateKernels(void **kernels, unsigned count, void *library)
{
    RT_CALL(cudaLibraryEnumerateKernels, RT_CONTEXT, kernels, count, library);
    return DONE(drv.cuLibraryEnumerateKernels(kernels, count, library));
}

RT_API cudaLibraryGetGlobal(void **at, size_t *bytes, void *library, const char *name)
{
    RT_CALL(cudaLibraryGetGlobal, RT_CONTEXT, at, bytes, library, name);
    return DONE(drv.cuLibraryGetGlobal(at, bytes, library, name));
}

RT_API cudaLibraryGetManaged(void **at, size_t *bytes, void *library, const char *name)
{
    RT_CALL(cudaLibraryGetManaged, RT_CONTEXT, at, bytes, library, name);
    return DONE(drv.cuLibraryGetManaged(at, bytes, library, name));
}

/* --- hints --- */
#if SIM_CUDART >= 13
RT_API cudaMemPrefetchAsync(const void *at, size_t bytes, struct location location, unsigned flags, void *stream)
{
    RT_CALL(cudaMemPrefetchAsync, RT_CONTEXT, at, bytes, location, flags, stream);
    return DONE(drv.cuMemPrefetchAsync_v2((void *)at, bytes, location, flags, stream));
}

RT_API cudaMemAdvise(const void *at, size_t bytes, int advice, struct location location)
{
    RT_CALL(cudaMemAdvise, RT_CONTEXT, at, bytes, advice, location);
    return DONE(drv.cuMemAdvise((void *)at, bytes, advice, location.id));
}
#else
RT_API cudaMemPrefetchAsync(const void *at, size_t bytes, int device, void *stream)
{
    RT_CALL(cudaMemPrefetchAsync_v8000, RT_CONTEXT, at, bytes, device, stream);
    return DONE(drv.cuMemPrefetchAsync((void *)at, bytes, device, stream));
}

RT_API cudaMemAdvise(const void *at, size_t bytes, int advice, int device)
{
    RT_CALL(cudaMemAdvise_v8000, RT_CONTEXT, at, bytes, advice, device);
    return DONE(drv.cuMemAdvise((void *)at, bytes, advice, device));
}
#endif

/* --- memory of graphs, attributes of streams --- */
RT_API cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    RT_CALL(cudaDeviceGetGraphMemAttribute, RT_DRIVER, device, attribute, value);
    return DONE(drv.cuDeviceGetGraphMemAttribute(device, attribute, value));
}

RT_API cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
    RT_CALL(cudaDeviceSetGraphMemAttribute, RT_DRIVER, device, attribute, value);
    return DONE(drv.cuDeviceSetGraphMemAttribute(device, attribute, value));
}

RT_API cudaDeviceGraphMemTrim(int device)
{
    RT_CALL(cudaDeviceGraphMemTrim, RT_DRIVER, device);
    return DONE(drv.cuDeviceGraphMemTrim(device));
}

RT_API cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    RT_CALL(cudaDeviceGetP2PAttribute, RT_DRIVER, value, attribute, from, to);
    return DONE(drv.cuDeviceGetP2PAttribute(value, attribute, from, to));
}

RT_API cudaStreamSetAttribute(void *stream, int attribute, const void *value)
{
    RT_CALL(cudaStreamSetAttribute, RT_CONTEXT, stream, attribute, value);
    return DONE(drv.cuStreamSetAttribute(stream, attribute, value));
}

RT_API cudaStreamGetAttribute(void *stream, int attribute, void *value)
{
    RT_CALL(cudaStreamGetAttribute, RT_CONTEXT, stream, attribute, value);
    return DONE(drv.cuStreamGetAttribute(stream, attribute, value));
}

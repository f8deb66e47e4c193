// SPDX-License-Identifier: Apache-2.0
/* rt_launch.c - launches by host stub or by kernel handle, attributes of functions, occupancy */
#include <string.h>

#include "test/doubles/simgpu/cudart/rt.h"

#if SIM_CUDART >= 13
enum { HANDLE_LAUNCH_CBID = SIM_CBID___cudaLaunchKernel };
#else
enum { HANDLE_LAUNCH_CBID = SIM_CBID_cudaLaunchKernel };
#endif

/* The driver calls a bad shape an invalid value; the runtime has a name of its own for it. */
static int in_words_of_runtime(int error) { return error == RT_INVALID_VALUE ? RT_INVALID_CONFIGURATION : error; }

static int launch(void *kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t smem, void *stream)
{
    if (kernel == NULL) return RT_INVALID_FUNCTION;
    return in_words_of_runtime(drv.cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                  (unsigned)smem, stream, arguments, NULL));
}

RT_API cudaLaunchKernel(const void *func, struct dim3 grid, struct dim3 block, void **arguments, size_t smem,
                        void *stream)
{
    RT_LAUNCH(cudaLaunchKernel, SIM_CBID_cudaLaunchKernel, rt_kernel_name(func), func, grid, block, arguments, smem,
              stream);
    return DONE(launch(rt_kernel(func), grid, block, arguments, smem, stream));
}

RT_API cudaLaunchCooperativeKernel(const void *func, struct dim3 grid, struct dim3 block, void **arguments, size_t smem,
                                   void *stream)
{
    RT_LAUNCH(cudaLaunchCooperativeKernel, SIM_CBID_cudaLaunchCooperativeKernel, rt_kernel_name(func), func, grid,
              block, arguments, smem, stream);
    void *kernel = rt_kernel(func);
    RT_NEEDS(kernel, RT_INVALID_FUNCTION);
    return DONE(in_words_of_runtime(drv.cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y,
                                                                  block.z, (unsigned)smem, stream, arguments)));
}

/* The runtime's configuration has 64 bits of shared memory where the driver's has 32. */
struct rt_config {
    struct dim3 grid, block;
    size_t dynamic_smem;
    void *stream, *attributes;
    unsigned attribute_count;
};
struct cu_config {
    struct dim3 grid, block;
    unsigned dynamic_smem;
    void *stream, *attributes;
    unsigned attribute_count;
};

RT_API cudaLaunchKernelExC(const struct rt_config *config, const void *func, void **arguments)
{
    RT_LAUNCH(cudaLaunchKernelExC, SIM_CBID_cudaLaunchKernelExC, rt_kernel_name(func), config, func, arguments);
    void *kernel = rt_kernel(func);
    RT_NEEDS(config, RT_INVALID_VALUE);
    RT_NEEDS(kernel, RT_INVALID_FUNCTION);
    struct cu_config c = {config->grid,   config->block,      (unsigned)config->dynamic_smem,
                          config->stream, config->attributes, config->attribute_count};
    return DONE(in_words_of_runtime(drv.cuLaunchKernelEx(&c, kernel, arguments, NULL)));
}

/* Host stubs of nvcc 13 ask for the handle once and launch by it. */
RT_API __cudaGetKernel(void **kernel, const void *host_function)
{
    if (rt_core() == NULL) return rt_without_driver("__cudaGetKernel");
    *kernel = rt_kernel(host_function);
    return *kernel ? RT_OK : RT_INVALID_FUNCTION;
}

RT_API __cudaLaunchKernel(void *kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t smem,
                          void *stream)
{
    RT_LAUNCH(__cudaLaunchKernel, HANDLE_LAUNCH_CBID, rt_kernel_name(kernel), kernel, grid, block, arguments, smem,
              stream);
    return DONE(launch(kernel, grid, block, arguments, smem, stream));
}

RT_API cudaGetKernel(void **kernel, const void *host_function)
{
    RT_CALL(cudaGetKernel, RT_CONTEXT, kernel, host_function);
    *kernel = rt_kernel(host_function);
    return DONE(*kernel ? RT_OK : RT_INVALID_FUNCTION);
}

RT_API cudaGetFuncBySymbol(void **function, const void *symbol)
{
    RT_CALL(cudaGetFuncBySymbol, RT_CONTEXT, function, symbol);
    *function = rt_kernel(symbol);
    return DONE(*function ? RT_OK : RT_INVALID_FUNCTION);
}

RT_API cudaFuncGetName(const char **name, const void *func)
{
    RT_CALL(cudaFuncGetName, RT_CONTEXT, name, func);
    *name = rt_kernel_name(func);
    return DONE(*name ? RT_OK : RT_INVALID_FUNCTION);
}

struct attributes {
    size_t static_smem, constant, local;
    int max_threads, registers, ptx, binary, cache_mode, max_dynamic_smem, carve_out;
#if SIM_CUDART >= 12
    int must_set_cluster, cluster[3], cluster_policy, can_be_bigger, reserved[16];
#endif
};

RT_API cudaFuncGetAttributes(struct attributes *out, const void *func)
{
    RT_CALL(cudaFuncGetAttributes, RT_CONTEXT, out, func);
    void *kernel = rt_kernel(func);
    int smem = 0, local = 0;
    RT_NEEDS(kernel, RT_INVALID_FUNCTION);
    memset(out, 0, sizeof *out);
    drv.cuFuncGetAttribute(&out->max_threads, 0, kernel);
    drv.cuFuncGetAttribute(&smem, 1, kernel);
    drv.cuFuncGetAttribute(&local, 3, kernel);
    drv.cuFuncGetAttribute(&out->registers, 4, kernel);
    drv.cuFuncGetAttribute(&out->ptx, 5, kernel);
    drv.cuFuncGetAttribute(&out->binary, 6, kernel);
    drv.cuFuncGetAttribute(&out->max_dynamic_smem, 8, kernel);
    out->static_smem = (size_t)smem;
    out->local = (size_t)local;
    return DONE(RT_OK);
}

RT_API cudaFuncSetAttribute(const void *func, int attribute, int value)
{
    RT_CALL(cudaFuncSetAttribute, RT_CONTEXT, func, attribute, value);
    void *kernel = rt_kernel(func);
    RT_NEEDS(kernel, RT_INVALID_FUNCTION);
    return DONE(drv.cuFuncSetAttribute(kernel, attribute, value));
}

RT_API cudaFuncSetCacheConfig(const void *func, int config)
{
    RT_CALL(cudaFuncSetCacheConfig, RT_CONTEXT, func, config);
    void *kernel = rt_kernel(func);
    RT_NEEDS(kernel, RT_INVALID_FUNCTION);
    return DONE(drv.cuFuncSetCacheConfig(kernel, config));
}

RT_API cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device)
{
    RT_CALL(cudaKernelSetAttributeForDevice, RT_CONTEXT, kernel, attribute, value, device);
    return DONE(drv.cuKernelSetAttribute(attribute, value, kernel, device));
}

RT_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func, int block_size, size_t smem)
{
    RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, RT_CONTEXT, blocks, func, block_size, smem);
    void *kernel = rt_kernel(func);
    RT_NEEDS(kernel, RT_INVALID_FUNCTION);
    return DONE(drv.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, block_size, smem));
}

RT_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func, int block_size,
                                                              size_t smem, unsigned flags)
{
    RT_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, RT_CONTEXT, blocks, func, block_size, smem, flags);
    void *kernel = rt_kernel(func);
    RT_NEEDS(kernel, RT_INVALID_FUNCTION);
    return DONE(drv.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size, smem, flags));
}

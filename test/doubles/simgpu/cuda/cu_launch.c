// SPDX-License-Identifier: Apache-2.0
/* cu_launch.c - launches of kernels, what a function says of itself, occupancy */
#include <string.h>

#include "test/doubles/simgpu/cuda/cu.h"

static bool is_kernel(const struct sim_kernel *k) { return k != NULL && k->magic == SIM_MAGIC_KERNEL; }
static const char *name_of(const struct sim_kernel *k) { return is_kernel(k) ? k->name : NULL; }

struct dim {
    unsigned x, y, z;
};

struct launch {
    struct dim grid, block, cluster;
    unsigned dynamic_smem;
    void *stream;
    bool has_priority;
    int priority;
};

static bool is_right(const struct launch *l, const struct sim_kernel *k)
{
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    return threads > 0 && threads <= k->max_threads && l->block.z <= 64 && l->grid.x && l->grid.y && l->grid.z &&
           l->dynamic_smem <= k->max_dynamic_smem;
}

static int launch(const struct sim_kernel *k, const struct launch *l)
{
    struct sim_stream *s = sim_stream_of(l->stream);
    if (!is_kernel(k) || s == NULL) return SIM_INVALID_HANDLE;
    if (!is_right(l, k)) return SIM_INVALID_VALUE;
    struct sim_op op = {.work = {.kind = SIMGPU_KERNEL,
                                 .name = k->name,
                                 .grid = {l->grid.x, l->grid.y, l->grid.z},
                                 .block = {l->block.x, l->block.y, l->block.z},
                                 .cluster = {l->cluster.x, l->cluster.y, l->cluster.z},
                                 .static_smem = k->static_smem,
                                 .dynamic_smem = l->dynamic_smem,
                                 .registers = k->registers,
                                 .local_per_thread = k->local_bytes,
                                 .is_async = 1}};
    return sim_enqueue(s, &op);
}

CU_API cuLaunchKernel(struct sim_kernel *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned smem, void *stream, void **arguments, void **extra)
{
    CU_LAUNCH(cuLaunchKernel, name_of(f), f, gx, gy, gz, bx, by, bz, smem, stream, arguments, extra);
    struct launch l = {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic_smem = smem, .stream = stream};
    return DONE(launch(f, &l));
}

CU_API cuLaunchCooperativeKernel(struct sim_kernel *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned smem, void *stream, void **arguments)
{
    CU_LAUNCH(cuLaunchCooperativeKernel, name_of(f), f, gx, gy, gz, bx, by, bz, smem, stream, arguments);
    struct launch l = {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic_smem = smem, .stream = stream};
    return DONE(launch(f, &l));
}

enum { ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_PRIORITY = 8 };

struct launch_attribute {
    uint32_t id;
    char pad[4];
    union {
        struct dim dim;
        int number;
        char bytes[64];
    } value;
};

struct launch_config {
    struct dim grid, block;
    unsigned dynamic_smem;
    void *stream;
    struct launch_attribute *attributes;
    unsigned attribute_count;
};

CU_API cuLaunchKernelEx(const struct launch_config *config, struct sim_kernel *f, void **arguments, void **extra)
{
    CU_LAUNCH(cuLaunchKernelEx, name_of(f), config, f, arguments, extra);
    CU_NEEDS(config, SIM_INVALID_VALUE);
    struct launch l = {
        .grid = config->grid, .block = config->block, .dynamic_smem = config->dynamic_smem, .stream = config->stream};
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id == ATTRIBUTE_CLUSTER) l.cluster = config->attributes[i].value.dim;
    return DONE(launch(f, &l));
}

/* --- attributes: 0 threads a block, 1 static shared, 2 constant, 3 local, 4 registers, 5 PTX, 6 binary, 8 dynamic
 * shared --- */
static int get_attribute(int *value, int number, const struct sim_kernel *k)
{
    switch (number) {
    case 0: *value = (int)k->max_threads; return SIM_OK;
    case 1: *value = (int)k->static_smem; return SIM_OK;
    case 3: *value = (int)k->local_bytes; return SIM_OK;
    case 4: *value = (int)k->registers; return SIM_OK;
    case 5:
    case 6: *value = 90; return SIM_OK;
    case 8: *value = (int)k->max_dynamic_smem; return SIM_OK;
    default: *value = 0; return number < 0 || number > 20 ? SIM_INVALID_VALUE : SIM_OK;
    }
}

static int set_attribute(struct sim_kernel *k, int number, int value)
{
    if (number != 8) return number == 9 || number >= 10 ? SIM_OK : SIM_INVALID_VALUE;
    if (value < 0 || (uint32_t)value + k->static_smem > sim_device_at(0)->facts.smem_per_block_optin)
        return SIM_INVALID_VALUE;
    k->max_dynamic_smem = (uint32_t)value;
    return SIM_OK;
}

CU_API cuFuncGetAttribute(int *value, int number, struct sim_kernel *f)
{
    CU_CALL(cuFuncGetAttribute, value, number, f);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    return DONE(get_attribute(value, number, f));
}

CU_API cuFuncSetAttribute(struct sim_kernel *f, int number, int value)
{
    CU_CALL(cuFuncSetAttribute, f, number, value);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    return DONE(set_attribute(f, number, value));
}

CU_API cuKernelGetAttribute(int *value, int number, struct sim_kernel *f, int device)
{
    CU_CALL(cuKernelGetAttribute, value, number, f, device);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    return DONE(get_attribute(value, number, f));
}

CU_API cuKernelSetAttribute(int number, int value, struct sim_kernel *f, int device)
{
    CU_CALL(cuKernelSetAttribute, number, value, f, device);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    return DONE(set_attribute(f, number, value));
}

CU_API cuFuncSetCacheConfig(struct sim_kernel *f, int config)
{
    CU_CALL(cuFuncSetCacheConfig, f, config);
    return DONE(is_kernel(f) ? SIM_OK : SIM_INVALID_HANDLE);
}

CU_API cuFuncGetName(const char **name, struct sim_kernel *f)
{
    CU_CALL(cuFuncGetName, name, f);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    *name = f->name;
    return DONE(SIM_OK);
}

CU_API cuKernelGetName(const char **name, struct sim_kernel *f)
{
    CU_CALL(cuKernelGetName, name, f);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    *name = f->name;
    return DONE(SIM_OK);
}

CU_API cuKernelGetFunction(struct sim_kernel **function, struct sim_kernel *kernel)
{
    CU_CALL(cuKernelGetFunction, function, kernel);
    CU_NEEDS(is_kernel(kernel), SIM_INVALID_HANDLE);
    *function = kernel;
    return DONE(SIM_OK);
}

/* --- occupancy: what registers, shared memory, threads and the block limit allow --- */
static int blocks_per_sm(const struct sim_kernel *k, int block_size, size_t dynamic_smem)
{
    const struct simgpu_device *d = &sim_device_at(0)->facts;
    if (block_size <= 0 || (uint32_t)block_size > d->max_threads_per_block) return 0;
    uint32_t warps = ((uint32_t)block_size + 31) / 32;
    uint32_t by_threads = d->max_threads_per_sm / (warps * 32);
    uint32_t by_registers = d->regs_per_sm / (warps * 32 * k->registers);
    size_t smem = k->static_smem + dynamic_smem + 1024;
    uint32_t by_smem = (uint32_t)(d->smem_per_sm / smem), least = d->max_blocks_per_sm;
    if (by_threads < least) least = by_threads;
    if (by_registers < least) least = by_registers;
    return (int)(by_smem < least ? by_smem : least);
}

CU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct sim_kernel *f, int block_size,
                                                   size_t dynamic_smem)
{
    CU_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, f, block_size, dynamic_smem);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    *blocks = blocks_per_sm(f, block_size, dynamic_smem);
    return DONE(SIM_OK);
}

CU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, struct sim_kernel *f, int block_size,
                                                            size_t dynamic_smem, unsigned flags)
{
    CU_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, f, block_size, dynamic_smem, flags);
    CU_NEEDS(is_kernel(f), SIM_INVALID_HANDLE);
    *blocks = blocks_per_sm(f, block_size, dynamic_smem);
    return DONE(SIM_OK);
}

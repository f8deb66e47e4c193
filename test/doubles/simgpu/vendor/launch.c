// SPDX-License-Identifier: Apache-2.0
/*
 * launch.c - launches of the vendor doubles, through what libcuda.so.1 exports
 *
 * Runs in: the host, on the thread that called the vendor library. One copy in each of the doubles.
 */
#include "test/doubles/simgpu/vendor/launch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

enum { CBID_LAUNCH_KERNEL = 211, SMEM_WITHOUT_ASKING = 48 << 10, MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };

struct dim {
    uint32_t x, y, z;
};

/* cudaLaunchKernel_v7000_params, as CUPTI's callbacks hand it out */
struct launch_params {
    const void *function;
    struct dim grid, block;
    void **args;
    size_t shared;
    void *stream;
};

/* CUlaunchConfig */
struct launch_config {
    uint32_t grid[3], block[3], shared;
    void *stream, *attributes;
    uint32_t attributes_n;
};

typedef int launch_fn(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                      void **);
typedef int launch_ex_fn(const struct launch_config *, void *, void **, void **);
typedef int attribute_fn(void *function, int attribute, int value);
typedef const struct simgpu_core *core_fn(void);

static struct {
    void *handle;
    const struct simgpu_core *core;
    launch_fn *launch;
    launch_ex_fn *launch_ex;
    attribute_fn *set_attribute;
} driver;

static void driver_find(void)
{
    driver.handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver.handle == NULL) return;
    *(void **)&driver.launch = dlsym(driver.handle, "cuLaunchKernel");
    *(void **)&driver.launch_ex = dlsym(driver.handle, "cuLaunchKernelEx");
    *(void **)&driver.set_attribute = dlsym(driver.handle, "cuFuncSetAttribute");
    core_fn *core = NULL;
    *(void **)&core = dlsym(driver.handle, "simgpu_core");
    driver.core = core != NULL ? core() : NULL;
}

static void driver_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, driver_find);
}

const struct simgpu_core *sim_core(void)
{
    driver_ready();
    return driver.core;
}

void *sim_driver(const char *symbol)
{
    driver_ready();
    return driver.handle != NULL ? dlsym(driver.handle, symbol) : NULL;
}

uint32_t sim_tiles(int64_t items, int64_t per_tile)
{
    return items <= per_tile ? 1 : (uint32_t)((items + per_tile - 1) / per_tile);
}

static int launch_by_driver(const struct sim_launch *launch, void *function)
{
    struct launch_config config = {{launch->grid[0], launch->grid[1], launch->grid[2]},
                                   {launch->block[0], launch->block[1], launch->block[2]},
                                   launch->dynamic_smem,
                                   launch->stream,
                                   NULL,
                                   0};
    return driver.launch_ex(&config, function, NULL, NULL);
}

static int launch_by_runtime(const struct sim_launch *launch, void *function)
{
    struct launch_params params = {function,
                                   {launch->grid[0], launch->grid[1], launch->grid[2]},
                                   {launch->block[0], launch->block[1], launch->block[2]},
                                   NULL,
                                   launch->dynamic_smem,
                                   launch->stream};
    struct simgpu_call call = {.domain = SIMGPU_RUNTIME,
                               .cbid = CBID_LAUNCH_KERNEL,
                               .name = "cudaLaunchKernel_v7000",
                               .params = &params,
                               .symbol = launch->kernel};
    driver.core->call_enter(&call);
    if (launch->before != NULL) launch->before(launch->arg);
    int result = call.result; /* an injected error: nothing is launched */
    if (result == 0)
        result = driver.launch(function, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                               launch->block[1], launch->block[2], launch->dynamic_smem, launch->stream, NULL, NULL);
    driver.core->call_exit(&call, result);
    return result;
}

/* Asked once a function, as the real ones do when they load it. */
static void smem_allow(void *function, uint32_t bytes)
{
    enum { FUNCTIONS = 64 };
    static void *_Atomic asked[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++) {
        void *nobody = NULL;
        if (asked[i] == function) return;
        if (asked[i] == NULL && atomic_compare_exchange_strong(&asked[i], &nobody, function)) break;
    }
    driver.set_attribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
}

int sim_vendor_launch(const struct sim_launch *launch)
{
    driver_ready();
    if (driver.core == NULL || driver.launch == NULL) return 3; /* CUDA_ERROR_NOT_INITIALIZED */
    void *function = driver.core->function(launch->kernel);
    if (launch->dynamic_smem > SMEM_WITHOUT_ASKING && driver.set_attribute != NULL)
        smem_allow(function, launch->dynamic_smem);
    return launch->is_driver && driver.launch_ex != NULL ? launch_by_driver(launch, function)
                                                         : launch_by_runtime(launch, function);
}

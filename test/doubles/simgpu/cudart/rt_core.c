// SPDX-License-Identifier: Apache-2.0
/* rt_core.c - finds the driver, begins and ends each call, keeps the device and the last error of each thread */
#include <dlfcn.h>
#include <pthread.h>

#include "test/doubles/simgpu/cudart/rt.h"

enum { DEVICES_UNAVAILABLE = 46 };

struct rt_driver drv;
static const struct simgpu_core *core;
static void *library;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int current_device, last_error;
static _Thread_local uint32_t alias;
static bool was_initialised; /* in this process or in a parent of it */

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define DRV(name, arguments) {#name, offsetof(struct rt_driver, name)},
#include "test/doubles/simgpu/cudart/rt_driver.def"
#undef DRV
};

static void find_driver(void)
{
    const struct simgpu_core *(*get)(void);
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    *(void **)&get = dlsym(library, "simgpu_core");
    if (get == NULL) return; /* some other libcuda: not ours to drive */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        *(void **)((char *)&drv + functions[i].offset) = dlsym(library, functions[i].name);
    core = get();
}

const struct simgpu_core *rt_core(void)
{
    pthread_once(&once, find_driver);
    return core;
}

void *rt_driver_symbol(const char *name) { return rt_core() ? dlsym(library, name) : NULL; }

int rt_without_driver(const char *name)
{
    (void)name;
    last_error = RT_INSUFFICIENT_DRIVER;
    return RT_INSUFFICIENT_DRIVER;
}

/* In a child of a process that used the GPU cuInit says 3; the runtime passes that on as 3 too. */
static int init_driver(void)
{
    if (core->is_initialised()) return RT_OK;
    int error = drv.cuInit(0);
    if (error == 0) was_initialised = true;
    return error;
}

static int init_context(void)
{
    if (core->current_context() == NULL) {
        int error = core->use_device(current_device);
        if (error) return error;
    }
    return core->sticky_error();
}

void rt_alias(uint32_t cbid) { alias = cbid; }

int rt_begin(struct simgpu_call *call, enum rt_need need)
{
    if (alias) {
        call->cbid = alias;
        call->name = sim_cbid_name(SIMGPU_RUNTIME, alias);
        alias = 0;
    }
    core->call_enter(call);
    if (call->result != 0) return call->result;
    int error = need >= RT_DRIVER ? init_driver() : RT_OK;
    if (error == 0 && need >= RT_CONTEXT) error = init_context();
    /* A forked child that goes on with a device it had: the runtime finds it taken away. */
    if (error == RT_INITIALIZATION && need >= RT_CONTEXT && was_initialised) error = DEVICES_UNAVAILABLE;
    return error;
}

int rt_end(struct simgpu_call *call, int result)
{
    if (result != 0) last_error = result;
    core->call_exit(call, result);
    return result;
}

int rt_device(void) { return current_device; }

int rt_device_set(int device)
{
    int error = core->use_device(device);
    if (error == 0) current_device = device;
    return error;
}

int rt_last_error(bool is_taken)
{
    int error = last_error;
    if (is_taken) last_error = RT_OK;
    return error;
}

void rt_last_error_set(int error) { last_error = error; }

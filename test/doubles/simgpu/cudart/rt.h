// SPDX-License-Identifier: Apache-2.0
/*
 * rt.h - what the files of the simulated CUDA runtime share
 *
 * One source, built for SIM_CUDART = 11, 12 and 13. The runtime knows kernels by the address of their host stub, the
 * device of each thread and its last error; everything else it asks of libcuda.so.1, as the real one does, by dlopen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/doubles/simgpu/cbids.h"
#include "test/doubles/simgpu/params.h"
#include "test/doubles/simgpu/simgpu.h"

#ifdef SIM_STATIC /* the archive for programs that have the runtime inside: nothing of it can be interposed */
#define RT_EXPORT __attribute__((visibility("hidden")))
#else
#define RT_EXPORT __attribute__((visibility("default")))
#endif
#define RT_API RT_EXPORT int

enum {
    RT_OK = 0,
    RT_INVALID_VALUE = 1,
    RT_OUT_OF_MEMORY = 2,
    RT_INITIALIZATION = 3,
    RT_UNLOADING = 4,
    RT_INVALID_CONFIGURATION = 9,
    RT_INVALID_DIRECTION = 21,
    RT_INSUFFICIENT_DRIVER = 35,
    RT_INVALID_FUNCTION = 98,
    RT_NO_DEVICE = 100,
    RT_INVALID_DEVICE = 101,
    RT_INVALID_HANDLE = 400,
    RT_SYMBOL_NOT_FOUND = 500,
    RT_NOT_READY = 600,
    RT_NOT_SUPPORTED = 801,
};

struct dim3 {
    unsigned x, y, z;
};

struct location { /* of memory: 1 a device, 2 the host */
    int type, id;
};

/* What a call needs before it can work. */
enum rt_need { RT_NOTHING, RT_DRIVER, RT_CONTEXT };

/* The functions of libcuda.so.1 (rt_driver.def), found by name. */
struct rt_driver {
#define DRV(name, arguments) int(*name) arguments;
#include "test/doubles/simgpu/cudart/rt_driver.def"
#undef DRV
};
extern struct rt_driver drv;

const struct simgpu_core *rt_core(void); /* NULL: there is no libcuda.so.1 */
int rt_begin(struct simgpu_call *call, enum rt_need need);
int rt_end(struct simgpu_call *call, int result);
void rt_alias(uint32_t cbid);            /* the next call is reported under this number */
int rt_without_driver(const char *name); /* the answer of any call when there is no libcuda.so.1 */
int rt_device(void);                     /* the thread's */
int rt_device_set(int device);
int rt_last_error(bool is_taken);
void rt_last_error_set(int error);
const char *rt_kernel_name(const void *host_function); /* NULL: never registered */
void *rt_kernel(const void *host_function);            /* its CUfunction, or NULL */
void *rt_driver_symbol(const char *name);

/* Begins an exported function: brackets the call, and returns from it at once when it must fail. */
#define RT_BEGIN(fn, number, params_address, symbol_name, needs)               \
    struct simgpu_call call_ = {.domain = SIMGPU_RUNTIME,                      \
                                .cbid = number,                                \
                                .params = params_address,                      \
                                .name = sim_cbid_name(SIMGPU_RUNTIME, number), \
                                .symbol = symbol_name};                        \
    if (rt_core() == NULL) return rt_without_driver(#fn);                      \
    {                                                                          \
        int error_ = rt_begin(&call_, needs);                                  \
        if (error_ != 0) return DONE(error_);                                  \
    }
#define RT_CALL(fn, needs, ...) \
    SIM_PARAMS(__VA_ARGS__);    \
    RT_BEGIN(fn, SIM_CBID_##fn, &params_, NULL, needs)
#define RT_NOARGS(fn, needs) RT_BEGIN(fn, SIM_CBID_##fn, NULL, NULL, needs)
#define RT_LAUNCH(fn, number, symbol_name, ...) \
    SIM_PARAMS(__VA_ARGS__);                    \
    RT_BEGIN(fn, number, &params_, symbol_name, RT_CONTEXT)
#define DONE(result) rt_end(&call_, (result))
#define RT_NEEDS(condition, error) \
    if (!(condition)) return DONE(error)

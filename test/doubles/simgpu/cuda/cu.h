// SPDX-License-Identifier: Apache-2.0
/* cu.h - how each exported function of libcuda.so.1 begins and ends; which device and context it works on */
#pragma once

#include "test/doubles/simgpu/cbids.h"
#include "test/doubles/simgpu/core/core.h"
#include "test/doubles/simgpu/core/memory.h"
#include "test/doubles/simgpu/params.h"

#define CU_API __attribute__((visibility("default"))) int

#define CU_BEGIN(fn, params_address, symbol_name)                                    \
    struct simgpu_call call_ = {.domain = SIMGPU_DRIVER,                             \
                                .cbid = SIM_CBID_##fn,                               \
                                .params = params_address,                            \
                                .name = sim_cbid_name(SIMGPU_DRIVER, SIM_CBID_##fn), \
                                .symbol = symbol_name};                              \
    sim_call_enter(&call_);                                                          \
    if (call_.result != 0) return DONE(call_.result)

/* CU_EARLY: works before cuInit. CU_CALL: answers 3 there. CU_NOARGS: as CU_CALL. */
#define CU_EARLY(fn, ...)    \
    SIM_PARAMS(__VA_ARGS__); \
    CU_BEGIN(fn, &params_, NULL)
#define CU_CALL(fn, ...)       \
    CU_EARLY(fn, __VA_ARGS__); \
    if (sim_init_state() != 0) return DONE(sim_init_state())
#define CU_LAUNCH(fn, symbol_name, ...)  \
    SIM_PARAMS(__VA_ARGS__);             \
    CU_BEGIN(fn, &params_, symbol_name); \
    if (sim_init_state() != 0) return DONE(sim_init_state())
#define CU_NOARGS(fn)         \
    CU_BEGIN(fn, NULL, NULL); \
    if (sim_init_state() != 0) return DONE(sim_init_state())
#define DONE(result) cu_done(&call_, (result))

static inline int cu_done(struct simgpu_call *call, int result)
{
    sim_call_exit(call, result);
    return result;
}

/* Statements at the head of a function: `context` is the thread's, `s` the stream that a handle stands for. */
#define CU_CONTEXT(context)                     \
    struct sim_context *context = cu_context(); \
    if (context == NULL) return DONE(SIM_INVALID_CONTEXT)
#define CU_STREAM(s, handle)                      \
    struct sim_stream *s = sim_stream_of(handle); \
    if (s == NULL) return DONE(SIM_INVALID_HANDLE)
#define CU_NEEDS(condition, error) \
    if (!(condition)) return DONE(error)

static inline struct sim_context *cu_context(void)
{
    struct sim_context *c = sim_context_current();
    return c && c->is_primary && !c->is_made ? sim_context_primary(c->device) : c;
}

struct cu_export {
    const char *name;
    void *fn;
};
void *cu_export_find(const char *name); /* exports.c */

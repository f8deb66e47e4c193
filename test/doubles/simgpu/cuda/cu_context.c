// SPDX-License-Identifier: Apache-2.0
/* cu_context.c - contexts: made, current, on the thread's stack; the profiler switches */
#include "test/doubles/simgpu/cuda/cu.h"

static int create(struct sim_context **out, unsigned flags, int device)
{
    if (out == NULL) return SIM_INVALID_VALUE;
    if (sim_device_at(device) == NULL) return SIM_INVALID_DEVICE;
    *out = sim_context_create(device, flags);
    return *out ? sim_context_push(*out) : SIM_OUT_OF_MEMORY;
}

CU_API cuCtxCreate_v2(struct sim_context **out, unsigned flags, int device)
{
    CU_CALL(cuCtxCreate_v2, out, flags, device);
    return DONE(create(out, flags, device));
}

CU_API cuCtxCreate_v4(struct sim_context **out, void *params, unsigned flags, int device)
{
    CU_CALL(cuCtxCreate_v4, out, params, flags, device);
    return DONE(create(out, flags, device));
}

CU_API cuCtxDestroy_v2(struct sim_context *context)
{
    CU_CALL(cuCtxDestroy_v2, context);
    CU_NEEDS(context && context->magic == SIM_MAGIC_CONTEXT && !context->is_primary, SIM_INVALID_CONTEXT);
    sim_context_destroy(context);
    return DONE(SIM_OK);
}

CU_API cuCtxGetCurrent(struct sim_context **out)
{
    CU_CALL(cuCtxGetCurrent, out);
    *out = sim_context_current();
    return DONE(SIM_OK);
}

CU_API cuCtxSetCurrent(struct sim_context *context)
{
    CU_CALL(cuCtxSetCurrent, context);
    return DONE(sim_context_bind(context));
}

CU_API cuCtxPushCurrent_v2(struct sim_context *context)
{
    CU_CALL(cuCtxPushCurrent_v2, context);
    return DONE(sim_context_push(context));
}

CU_API cuCtxPopCurrent_v2(struct sim_context **out)
{
    CU_CALL(cuCtxPopCurrent_v2, out);
    struct sim_context *was = sim_context_pop();
    if (out) *out = was;
    return DONE(was ? SIM_OK : SIM_INVALID_CONTEXT);
}

CU_API cuCtxGetDevice(int *device)
{
    CU_CALL(cuCtxGetDevice, device);
    CU_CONTEXT(context);
    *device = context->device;
    return DONE(SIM_OK);
}

CU_API cuCtxGetFlags(unsigned *flags)
{
    CU_CALL(cuCtxGetFlags, flags);
    CU_CONTEXT(context);
    *flags = context->flags;
    return DONE(SIM_OK);
}

CU_API cuCtxGetId(struct sim_context *context, unsigned long long *id)
{
    CU_CALL(cuCtxGetId, context, id);
    if (context == NULL) context = cu_context();
    CU_NEEDS(context, SIM_INVALID_CONTEXT);
    *id = context->id;
    return DONE(SIM_OK);
}

CU_API cuCtxGetApiVersion(struct sim_context *context, unsigned *version)
{
    CU_CALL(cuCtxGetApiVersion, context, version);
    *version = 3020;
    return DONE(SIM_OK);
}

CU_API cuCtxSynchronize(void)
{
    CU_NOARGS(cuCtxSynchronize);
    CU_CONTEXT(context);
    return DONE(sim_context_synchronize(context));
}

CU_API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CU_CALL(cuCtxGetStreamPriorityRange, least, greatest);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return DONE(SIM_OK);
}

CU_API cuCtxGetLimit(size_t *value, unsigned limit)
{
    CU_CALL(cuCtxGetLimit, value, limit);
    CU_CONTEXT(context);
    CU_NEEDS(limit < 8, SIM_INVALID_VALUE);
    *value = context->limits[limit];
    return DONE(SIM_OK);
}

CU_API cuCtxSetLimit(unsigned limit, size_t value)
{
    CU_CALL(cuCtxSetLimit, limit, value);
    CU_CONTEXT(context);
    CU_NEEDS(limit < 8, SIM_INVALID_VALUE);
    context->limits[limit] = value;
    return DONE(SIM_OK);
}

CU_API cuProfilerStart(void)
{
    CU_NOARGS(cuProfilerStart);
    sim_truth_note("profiler", "start");
    return DONE(SIM_OK);
}

CU_API cuProfilerStop(void)
{
    CU_NOARGS(cuProfilerStop);
    sim_truth_note("profiler", "stop");
    return DONE(SIM_OK);
}

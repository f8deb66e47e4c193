// SPDX-License-Identifier: Apache-2.0
/* rt_stream.c - streams, events and host functions of the runtime's API */
#include "test/doubles/simgpu/cudart/rt.h"

RT_API cudaStreamCreate(void **out)
{
    RT_CALL(cudaStreamCreate, RT_CONTEXT, out);
    return DONE(drv.cuStreamCreate(out, 0));
}

RT_API cudaStreamCreateWithFlags(void **out, unsigned flags)
{
    RT_CALL(cudaStreamCreateWithFlags, RT_CONTEXT, out, flags);
    return DONE(drv.cuStreamCreate(out, flags));
}

RT_API cudaStreamCreateWithPriority(void **out, unsigned flags, int priority)
{
    RT_CALL(cudaStreamCreateWithPriority, RT_CONTEXT, out, flags, priority);
    return DONE(drv.cuStreamCreateWithPriority(out, flags, priority));
}

RT_API cudaStreamDestroy(void *stream)
{
    RT_CALL(cudaStreamDestroy, RT_CONTEXT, stream);
    return DONE(drv.cuStreamDestroy_v2(stream));
}

RT_API cudaStreamQuery(void *stream)
{
    RT_CALL(cudaStreamQuery, RT_CONTEXT, stream);
    return DONE(drv.cuStreamQuery(stream));
}

RT_API cudaStreamSynchronize(void *stream)
{
    RT_CALL(cudaStreamSynchronize, RT_CONTEXT, stream);
    return DONE(drv.cuStreamSynchronize(stream));
}

RT_API cudaDeviceSynchronize(void)
{
    RT_NOARGS(cudaDeviceSynchronize, RT_CONTEXT);
    return DONE(drv.cuCtxSynchronize());
}

RT_API cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    RT_CALL(cudaStreamWaitEvent, RT_CONTEXT, stream, event, flags);
    return DONE(drv.cuStreamWaitEvent(stream, event, flags));
}

RT_API cudaStreamGetPriority(void *stream, int *priority)
{
    RT_CALL(cudaStreamGetPriority, RT_CONTEXT, stream, priority);
    return DONE(drv.cuStreamGetPriority(stream, priority));
}

RT_API cudaStreamGetFlags(void *stream, unsigned *flags)
{
    RT_CALL(cudaStreamGetFlags, RT_CONTEXT, stream, flags);
    return DONE(drv.cuStreamGetFlags(stream, flags));
}

RT_API cudaStreamGetId(void *stream, unsigned long long *id)
{
    RT_CALL(cudaStreamGetId, RT_CONTEXT, stream, id);
    return DONE(drv.cuStreamGetId(stream, id));
}

RT_API cudaStreamGetDevice(void *stream, int *device)
{
    RT_CALL(cudaStreamGetDevice, RT_CONTEXT, stream, device);
    return DONE(drv.cuStreamGetDevice(stream, device));
}

RT_API cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    RT_CALL(cudaDeviceGetStreamPriorityRange, RT_CONTEXT, least, greatest);
    return DONE(drv.cuCtxGetStreamPriorityRange(least, greatest));
}

RT_API cudaStreamAddCallback(void *stream, void (*fn)(void *, int, void *), void *arg, unsigned flags)
{
    RT_CALL(cudaStreamAddCallback, RT_CONTEXT, stream, fn, arg, flags);
    return DONE(drv.cuStreamAddCallback(stream, fn, arg, flags));
}

RT_API cudaLaunchHostFunc(void *stream, void (*fn)(void *), void *arg)
{
    RT_CALL(cudaLaunchHostFunc, RT_CONTEXT, stream, fn, arg);
    return DONE(drv.cuLaunchHostFunc(stream, fn, arg));
}

/* --- events --- */
RT_API cudaEventCreate(void **out)
{
    RT_CALL(cudaEventCreate, RT_CONTEXT, out);
    return DONE(drv.cuEventCreate(out, 0));
}

RT_API cudaEventCreateWithFlags(void **out, unsigned flags)
{
    RT_CALL(cudaEventCreateWithFlags, RT_CONTEXT, out, flags);
    return DONE(drv.cuEventCreate(out, flags));
}

RT_API cudaEventDestroy(void *event)
{
    RT_CALL(cudaEventDestroy, RT_CONTEXT, event);
    return DONE(drv.cuEventDestroy_v2(event));
}

RT_API cudaEventRecord(void *event, void *stream)
{
    RT_CALL(cudaEventRecord, RT_CONTEXT, event, stream);
    return DONE(drv.cuEventRecord(event, stream));
}

RT_API cudaEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    RT_CALL(cudaEventRecordWithFlags, RT_CONTEXT, event, stream, flags);
    return DONE(drv.cuEventRecordWithFlags(event, stream, flags));
}

RT_API cudaEventQuery(void *event)
{
    RT_CALL(cudaEventQuery, RT_CONTEXT, event);
    return DONE(drv.cuEventQuery(event));
}

RT_API cudaEventSynchronize(void *event)
{
    RT_CALL(cudaEventSynchronize, RT_CONTEXT, event);
    return DONE(drv.cuEventSynchronize(event));
}

#if SIM_CUDART >= 13
enum { ELAPSED_CBID = SIM_CBID_cudaEventElapsedTime };
#else
enum { ELAPSED_CBID = SIM_CBID_cudaEventElapsedTime_v3020 };
#endif

RT_API cudaEventElapsedTime(float *ms, void *from, void *to)
{
    SIM_PARAMS(ms, from, to);
    RT_BEGIN(cudaEventElapsedTime, ELAPSED_CBID, &params_, NULL, RT_CONTEXT);
    return DONE(drv.cuEventElapsedTime(ms, from, to));
}

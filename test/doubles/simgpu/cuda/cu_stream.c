// SPDX-License-Identifier: Apache-2.0
/* cu_stream.c - streams, events and host functions of the driver's API */
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/cuda/cu.h"

static int create(struct sim_stream **out, unsigned flags, int priority)
{
    struct sim_context *context = cu_context();
    if (context == NULL) return SIM_INVALID_CONTEXT;
    if (out == NULL || flags > 1) return SIM_INVALID_VALUE;
    *out = sim_stream_create(context, flags, priority);
    return *out ? SIM_OK : SIM_OUT_OF_MEMORY;
}

CU_API cuStreamCreate(struct sim_stream **out, unsigned flags)
{
    CU_CALL(cuStreamCreate, out, flags);
    return DONE(create(out, flags, 0));
}

CU_API cuStreamCreateWithPriority(struct sim_stream **out, unsigned flags, int priority)
{
    CU_CALL(cuStreamCreateWithPriority, out, flags, priority);
    return DONE(create(out, flags, priority));
}

CU_API cuStreamDestroy_v2(struct sim_stream *stream)
{
    CU_CALL(cuStreamDestroy_v2, stream);
    CU_STREAM(s, stream);
    CU_NEEDS((uintptr_t)stream > 2, SIM_INVALID_HANDLE);
    sim_stream_destroy(s);
    return DONE(SIM_OK);
}

CU_API cuStreamQuery(struct sim_stream *stream)
{
    CU_CALL(cuStreamQuery, stream);
    CU_STREAM(s, stream);
    return DONE(sim_stream_query(s));
}

CU_API cuStreamSynchronize(struct sim_stream *stream)
{
    CU_CALL(cuStreamSynchronize, stream);
    CU_STREAM(s, stream);
    return DONE(sim_stream_synchronize(s));
}

CU_API cuStreamGetPriority(struct sim_stream *stream, int *priority)
{
    CU_CALL(cuStreamGetPriority, stream, priority);
    CU_STREAM(s, stream);
    *priority = s->priority;
    return DONE(SIM_OK);
}

CU_API cuStreamGetFlags(struct sim_stream *stream, unsigned *flags)
{
    CU_CALL(cuStreamGetFlags, stream, flags);
    CU_STREAM(s, stream);
    *flags = s->flags;
    return DONE(SIM_OK);
}

CU_API cuStreamGetId(struct sim_stream *stream, unsigned long long *id)
{
    CU_CALL(cuStreamGetId, stream, id);
    CU_STREAM(s, stream);
    *id = s->uid;
    return DONE(SIM_OK);
}

CU_API cuStreamGetCtx(struct sim_stream *stream, struct sim_context **context)
{
    CU_CALL(cuStreamGetCtx, stream, context);
    CU_STREAM(s, stream);
    *context = s->context;
    return DONE(SIM_OK);
}

CU_API cuStreamGetDevice(struct sim_stream *stream, int *device)
{
    CU_CALL(cuStreamGetDevice, stream, device);
    CU_STREAM(s, stream);
    *device = s->context->device;
    return DONE(SIM_OK);
}

CU_API cuStreamWaitEvent(struct sim_stream *stream, struct sim_event *event, unsigned flags)
{
    CU_CALL(cuStreamWaitEvent, stream, event, flags);
    CU_STREAM(s, stream);
    CU_NEEDS(sim_event_is(event), SIM_INVALID_HANDLE);
    return DONE(sim_event_wait(s, event, flags & 1));
}

CU_API cuStreamWriteValue32_v2(struct sim_stream *stream, void *at, uint32_t value, unsigned flags)
{
    CU_CALL(cuStreamWriteValue32_v2, stream, at, value, flags);
    CU_STREAM(s, stream);
    memcpy(at, &value, sizeof value);
    return DONE(SIM_OK);
}

CU_API cuStreamWriteValue64_v2(struct sim_stream *stream, void *at, uint64_t value, unsigned flags)
{
    CU_CALL(cuStreamWriteValue64_v2, stream, at, value, flags);
    CU_STREAM(s, stream);
    memcpy(at, &value, sizeof value);
    return DONE(SIM_OK);
}

/* --- host functions --- */
static int add_host_function(struct sim_stream *s, void (*fn)(void *), void *arg)
{
    struct sim_op op = {.work = {.kind = SIMGPU_HOST_FUNCTION}, .host_fn = fn, .host_arg = arg};
    return sim_enqueue(s, &op);
}

CU_API cuLaunchHostFunc(struct sim_stream *stream, void (*fn)(void *), void *arg)
{
    CU_CALL(cuLaunchHostFunc, stream, fn, arg);
    CU_STREAM(s, stream);
    CU_NEEDS(fn, SIM_INVALID_VALUE);
    return DONE(add_host_function(s, fn, arg));
}

struct callback {
    void (*fn)(void *stream, int status, void *arg);
    void *stream, *arg;
};

static void run_callback(void *arg)
{
    struct callback c = *(struct callback *)arg;
    free(arg);
    c.fn(c.stream, SIM_OK, c.arg);
}

CU_API cuStreamAddCallback(struct sim_stream *stream, void (*fn)(void *, int, void *), void *arg, unsigned flags)
{
    CU_CALL(cuStreamAddCallback, stream, fn, arg, flags);
    CU_STREAM(s, stream);
    CU_NEEDS(fn && flags == 0, SIM_INVALID_VALUE);
    CU_NEEDS(!s->capture, SIM_CAPTURE_UNSUPPORTED);
    struct callback *c = malloc(sizeof *c);
    CU_NEEDS(c, SIM_OUT_OF_MEMORY);
    *c = (struct callback){fn, stream, arg};
    return DONE(add_host_function(s, run_callback, c));
}

/* --- events --- */
CU_API cuEventCreate(struct sim_event **out, unsigned flags)
{
    CU_CALL(cuEventCreate, out, flags);
    CU_CONTEXT(context);
    CU_NEEDS(out && flags < 8, SIM_INVALID_VALUE);
    *out = sim_event_create(context, flags);
    return DONE(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

CU_API cuEventDestroy_v2(struct sim_event *event)
{
    CU_CALL(cuEventDestroy_v2, event);
    CU_NEEDS(sim_event_is(event), SIM_INVALID_HANDLE);
    sim_event_destroy(event);
    return DONE(SIM_OK);
}

CU_API cuEventRecord(struct sim_event *event, struct sim_stream *stream)
{
    CU_CALL(cuEventRecord, event, stream);
    CU_STREAM(s, stream);
    CU_NEEDS(sim_event_is(event), SIM_INVALID_HANDLE);
    return DONE(sim_event_record(event, s, false));
}

CU_API cuEventRecordWithFlags(struct sim_event *event, struct sim_stream *stream, unsigned flags)
{
    CU_CALL(cuEventRecordWithFlags, event, stream, flags);
    CU_STREAM(s, stream);
    CU_NEEDS(sim_event_is(event), SIM_INVALID_HANDLE);
    return DONE(sim_event_record(event, s, flags & 1));
}

CU_API cuEventQuery(struct sim_event *event)
{
    CU_CALL(cuEventQuery, event);
    CU_NEEDS(sim_event_is(event), SIM_INVALID_HANDLE);
    return DONE(sim_event_query(event));
}

CU_API cuEventSynchronize(struct sim_event *event)
{
    CU_CALL(cuEventSynchronize, event);
    CU_NEEDS(sim_event_is(event), SIM_INVALID_HANDLE);
    return DONE(sim_event_synchronize(event));
}

CU_API cuEventElapsedTime(float *ms, struct sim_event *from, struct sim_event *to)
{
    CU_CALL(cuEventElapsedTime, ms, from, to);
    CU_NEEDS(ms && sim_event_is(from) && sim_event_is(to), SIM_INVALID_HANDLE);
    return DONE(sim_event_elapsed_ms(ms, from, to));
}

CU_API cuEventElapsedTime_v2(float *ms, struct sim_event *from, struct sim_event *to)
{
    CU_CALL(cuEventElapsedTime_v2, ms, from, to);
    CU_NEEDS(ms && sim_event_is(from) && sim_event_is(to), SIM_INVALID_HANDLE);
    return DONE(sim_event_elapsed_ms(ms, from, to));
}

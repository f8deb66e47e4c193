// SPDX-License-Identifier: Apache-2.0
/* event.c - events: each recording has its number and its time; waits add a dependency, queries compare with now */
#include <stdlib.h>

#include "test/doubles/simgpu/core/graph.h"

enum { DISABLE_TIMING = 2 };

/* Destroyed events are used again but never given back: a dead handle stays readable, and is told by its magic. */
static struct sim_event *spare;

struct sim_event *sim_event_create(struct sim_context *context, uint32_t flags)
{
    sim_lock();
    struct sim_event *e = spare;
    if (e) spare = (struct sim_event *)(void *)e->stream;
    else e = calloc(1, sizeof *e);
    if (e)
        *e = (struct sim_event){
            .magic = SIM_MAGIC_EVENT, .id = ++context->next_event_id, .flags = flags, .context = context};
    sim_unlock();
    return e;
}

bool sim_event_is(const struct sim_event *event) { return event != NULL && event->magic == SIM_MAGIC_EVENT; }

void sim_event_destroy(struct sim_event *event)
{
    sim_lock();
    event->magic = 0;
    free(event->nodes.at);
    event->nodes = (struct sim_nodes){0};
    event->stream = (struct sim_stream *)(void *)spare;
    spare = event;
    sim_unlock();
}

int sim_event_record(struct sim_event *event, struct sim_stream *stream, bool is_external)
{
    struct sim_op op = {
        .work = {.kind = SIMGPU_EVENT_RECORD, .event = event->id}, .event = event, .is_external = is_external};
    return sim_enqueue(stream, &op);
}

int sim_event_wait(struct sim_stream *stream, struct sim_event *event, bool is_external)
{
    uint64_t start = sim_now();
    struct sim_op op = {.work = {.kind = SIMGPU_EVENT_WAIT, .event = event->id, .event_sync = event->sync_id},
                        .event = event,
                        .is_external = is_external};
    bool is_captured = stream->capture != NULL || event->capture != NULL;
    int error = sim_enqueue(stream, &op);
    if (error == 0 && !is_captured) sim_synced(2, stream->context, stream->id, event, start);
    return error;
}

int sim_event_query(struct sim_event *event)
{
    if (event->capture) return SIM_CAPTURED_EVENT;
    if (sim_capture_unsafe()) return SIM_CAPTURE_UNSUPPORTED;
    int error = sim_context_error(event->context);
    if (error) return error;
    bool is_behind = event->stream && event->stream->host_returned < event->host_asked;
    error = sim_now() < event->time || is_behind ? SIM_NOT_READY : SIM_OK;
    sim_queried(1, event->context, event->stream ? event->stream_id : SIM_NOT_APPLICABLE, event, error);
    return error;
}

int sim_event_synchronize(struct sim_event *event)
{
    uint64_t start = sim_now();
    if (event->capture) return SIM_CAPTURED_EVENT;
    sim_sleep_until(event->time);
    if (event->stream) sim_host_functions_wait(event->stream, event->host_asked);
    sim_synced(1, event->context, event->stream ? event->stream_id : SIM_NOT_APPLICABLE, event, start);
    return sim_context_error(event->context);
}

int sim_event_elapsed_ms(float *ms, struct sim_event *from, struct sim_event *to)
{
    if ((from->flags & DISABLE_TIMING) || (to->flags & DISABLE_TIMING) || !from->time || !to->time)
        return SIM_INVALID_HANDLE;
    uint64_t now = sim_now();
    if (now < from->time || now < to->time) return SIM_NOT_READY;
    int64_t ns = (int64_t)(sim_device_ns(to->time) - sim_device_ns(from->time));
    *ms = (float)((double)ns / 1e6);
    return SIM_OK;
}

// SPDX-License-Identifier: Apache-2.0
/* stream.c - streams: their numbers, what must come before what, and waits that really last until the end */
#include <pthread.h>
#include <stdlib.h>

#include "test/doubles/simgpu/core/graph.h"

static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t host_returned = PTHREAD_COND_INITIALIZER;
static uint64_t last_uid = 16;

/* The stream of this thread alone that handle 2 stands for; one per context, made at first use. */
static struct sim_stream *per_thread(struct sim_context *context)
{
    static _Thread_local struct sim_stream *mine;
    if (mine == NULL || mine->context != context || mine->magic != SIM_MAGIC_STREAM)
        mine = sim_stream_create(context, 0, 0);
    return mine;
}

static struct sim_stream *null_stream(struct sim_context *c)
{
    if (c->is_primary && !c->is_made) c = sim_context_primary(c->device); /* used again after a reset */
    return c ? &c->null_stream : NULL;
}

struct sim_stream *sim_stream_of(void *handle)
{
    uintptr_t number = (uintptr_t)handle;
    if (number <= 2) {
        struct sim_context *c = sim_context_current();
        if (c == NULL) return NULL;
        return number == 2 ? per_thread(null_stream(c)->context) : null_stream(c);
    }
    struct sim_stream *s = handle;
    return s->magic == SIM_MAGIC_STREAM ? s : NULL;
}

struct sim_stream *sim_stream_create(struct sim_context *context, uint32_t flags, int priority)
{
    struct sim_stream *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    sim_lock();
    *s = (struct sim_stream){
        .magic = SIM_MAGIC_STREAM, .id = context->next_stream_id++, .context = context, .flags = flags};
    s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    s->uid = ++last_uid;
    struct sim_stream **end = &context->streams;
    while (*end) end = &(*end)->next;
    *end = s;
    sim_unlock();
    const struct simgpu_observer *o = sim_observer();
    if (o && o->stream_made) o->stream_made(context->id, s->id, s->priority, flags & 1 ? 2 : 1);
    return s;
}

/* Work that is under way goes on (its end is known); the struct is kept, for host functions that count in it. */
void sim_stream_destroy(struct sim_stream *stream)
{
    sim_lock();
    for (struct sim_stream **at = &stream->context->streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    stream->magic = 0;
    sim_unlock();
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The null stream follows all blocking streams, and they follow it. */
uint64_t sim_stream_ready_ns(const struct sim_stream *stream)
{
    struct sim_context *c = stream->context;
    uint64_t ready = stream->busy_until;
    if (stream->flags & 1) return ready;
    if (stream != &c->null_stream) return later(ready, c->null_stream.busy_until);
    for (struct sim_stream *s = c->streams; s; s = s->next)
        if (!(s->flags & 1)) ready = later(ready, s->busy_until);
    return ready;
}

void sim_host_function_returned(struct sim_stream *stream)
{
    pthread_mutex_lock(&host_lock);
    stream->host_returned++;
    pthread_cond_broadcast(&host_returned);
    pthread_mutex_unlock(&host_lock);
}

void sim_host_functions_wait(struct sim_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&host_lock);
    while (stream->host_returned < ticket) pthread_cond_wait(&host_returned, &host_lock);
    pthread_mutex_unlock(&host_lock);
}

static void tell_sync(struct simgpu_sync sync, const struct sim_event *event)
{
    sync.event = event ? event->id : SIM_NOT_APPLICABLE;
    sync.event_sync = event ? event->sync_id : 0;
    sync.correlation = sim_correlation();
    sync.end_ns = sim_now();
    sim_truth_sync(&sync);
    const struct simgpu_observer *o = sim_observer();
    if (o && o->synced) o->synced(&sync);
}

void sim_synced(uint32_t type, const struct sim_context *context, uint32_t stream, const struct sim_event *event,
                uint64_t start_ns)
{
    tell_sync((struct simgpu_sync){.type = type, .context = context->id, .stream = stream, .start_ns = start_ns},
              event);
}

void sim_queried(uint32_t type, const struct sim_context *context, uint32_t stream, const struct sim_event *event,
                 int result)
{
    tell_sync((struct simgpu_sync){.type = type,
                                   .is_query = true,
                                   .result = result,
                                   .context = context->id,
                                   .stream = stream,
                                   .start_ns = sim_now()},
              event);
}

int sim_stream_synchronize(struct sim_stream *stream)
{
    uint64_t start = sim_now();
    if (stream->capture) return sim_capture_break(stream, SIM_CAPTURE_UNSUPPORTED);
    sim_lock();
    uint64_t ready = sim_stream_ready_ns(stream), ticket = stream->host_asked;
    sim_unlock();
    sim_sleep_until(ready);
    sim_host_functions_wait(stream, ticket);
    sim_synced(3, stream->context, stream->id, NULL, start);
    return sim_context_error(stream->context);
}

int sim_stream_query(struct sim_stream *stream)
{
    if (stream->capture) return sim_capture_break(stream, SIM_CAPTURE_UNSUPPORTED);
    sim_lock();
    uint64_t ready = sim_stream_ready_ns(stream);
    sim_unlock();
    pthread_mutex_lock(&host_lock);
    bool is_behind = stream->host_returned < stream->host_asked;
    pthread_mutex_unlock(&host_lock);
    int error = sim_context_error(stream->context);
    if (error) return error;
    error = sim_now() < ready || is_behind ? SIM_NOT_READY : SIM_OK;
    sim_queried(3, stream->context, stream->id, NULL, error);
    return error;
}

int sim_context_synchronize(struct sim_context *context)
{
    uint64_t start = sim_now(), ready;
    if (sim_capture_unsafe()) return SIM_CAPTURE_UNSUPPORTED;
    sim_lock();
    ready = context->null_stream.busy_until;
    for (struct sim_stream *s = context->streams; s; s = s->next) ready = later(ready, s->busy_until);
    sim_unlock();
    sim_sleep_until(ready);
    sim_host_functions_wait(&context->null_stream, context->null_stream.host_asked);
    /* One stream at a time, from the front again after each wait: the list may change meanwhile. */
    for (bool is_waiting = true; is_waiting;) {
        struct sim_stream *behind = NULL;
        sim_lock();
        for (struct sim_stream *s = context->streams; s && !behind; s = s->next)
            if (s->host_returned < s->host_asked && s->busy_until <= ready) behind = s;
        sim_unlock();
        is_waiting = behind != NULL;
        if (behind) sim_host_functions_wait(behind, behind->host_asked);
    }
    sim_synced(4, context, SIM_NOT_APPLICABLE, NULL, start);
    return sim_context_error(context);
}

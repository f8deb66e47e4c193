// SPDX-License-Identifier: Apache-2.0
/* capture.c - work of streams that are being captured becomes nodes of a graph; what breaks a capture */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/doubles/simgpu/core/graph.h"

enum { ILLEGAL_STATE = 401, CAPTURE_IMPLICIT = 906, MAX_CAPTURES = 64 };

/* The captures under way, few: to find those that a call from outside would break. Under the core's lock. */
static struct sim_capture *active[MAX_CAPTURES];
static int active_count;
static uint64_t last_id;
static _Thread_local int mode_of_thread = SIM_MODE_GLOBAL;

static long tid(void) { return syscall(SYS_gettid); }

int sim_capture_exchange_mode(int mode)
{
    int was = mode_of_thread;
    mode_of_thread = mode;
    return was;
}

int sim_capture_break(struct sim_stream *stream, int error)
{
    if (stream->capture) stream->capture->status = SIM_CAPTURE_BROKEN;
    return error;
}

/* Allocation, queries of events: not allowed beside a capture of mode "global" of any thread, or one of ours. */
int sim_capture_unsafe(void)
{
    int error = SIM_OK;
    if (active_count == 0 || mode_of_thread == SIM_MODE_RELAXED) return SIM_OK;
    sim_lock();
    for (int i = 0; i < active_count; i++) {
        struct sim_capture *c = active[i];
        bool is_mine = c->thread == tid();
        if (c->mode == SIM_MODE_RELAXED ||
            (!is_mine && (c->mode == SIM_MODE_THREAD || mode_of_thread == SIM_MODE_THREAD)))
            continue;
        c->status = SIM_CAPTURE_BROKEN;
        error = SIM_CAPTURE_UNSUPPORTED;
    }
    sim_unlock();
    return error;
}

int sim_capture_begin(struct sim_stream *stream, struct sim_graph *graph, enum sim_capture_mode mode)
{
    if (stream == &stream->context->null_stream) return SIM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return ILLEGAL_STATE;
    struct sim_capture *c = calloc(1, sizeof *c);
    if (c == NULL) return SIM_OUT_OF_MEMORY;
    *c = (struct sim_capture){.status = SIM_CAPTURE_ACTIVE, .mode = mode, .origin = stream, .thread = tid()};
    c->graph = graph ? graph : sim_graph_create();
    sim_lock();
    bool is_room = active_count < MAX_CAPTURES;
    if (is_room) {
        c->id = ++last_id;
        active[active_count++] = c;
        stream->capture = c;
        sim_nodes_clear(&stream->tail);
    }
    sim_unlock();
    if (!is_room) free(c);
    return is_room ? SIM_OK : SIM_OUT_OF_MEMORY;
}

/* --- nodes --- */
static int record(struct sim_stream *stream, struct sim_event *event)
{
    event->capture = stream->capture;
    event->stream = stream;
    sim_nodes_clear(&event->nodes);
    for (size_t i = 0; i < stream->tail.count; i++) sim_nodes_add(&event->nodes, stream->tail.at[i]);
    return SIM_OK;
}

/* A stream that waits for an event of a capture takes part in it from then on. */
static int join(struct sim_stream *stream, const struct sim_event *event)
{
    if (event->capture == NULL) return event->time == 0 ? SIM_OK : sim_capture_break(stream, SIM_CAPTURE_ISOLATION);
    if (event->capture->status == SIM_CAPTURE_NONE) return SIM_CAPTURED_EVENT; /* of a capture that has ended */
    if (stream->capture && stream->capture != event->capture) {
        event->capture->status = SIM_CAPTURE_BROKEN;
        return sim_capture_break(stream, 902); /* two captures would merge */
    }
    if (stream->capture == NULL) {
        stream->capture = event->capture;
        sim_nodes_clear(&stream->tail);
    }
    for (size_t i = 0; i < event->nodes.count; i++) sim_nodes_add(&stream->tail, event->nodes.at[i]);
    return SIM_OK;
}

static int add(struct sim_stream *stream, enum sim_node_type type, const struct sim_op *op)
{
    struct sim_node *n = sim_node_create(stream->capture->graph, type, op, stream->tail.at, stream->tail.count);
    if (n == NULL) return SIM_OUT_OF_MEMORY;
    stream->tail.count = 0;
    sim_nodes_add(&stream->tail, n);
    return SIM_OK;
}

int sim_capture_op(struct sim_stream *stream, const struct sim_op *op)
{
    int error;
    sim_lock();
    if (stream->capture && stream->capture->status == SIM_CAPTURE_BROKEN) error = SIM_CAPTURE_INVALIDATED;
    else if (op->work.kind == SIMGPU_EVENT_RECORD && !op->is_external) error = record(stream, op->event);
    else if (op->work.kind == SIMGPU_EVENT_WAIT && !op->is_external) error = join(stream, op->event);
    else error = add(stream, sim_node_type_of(op), op);
    sim_unlock();
    return error;
}

int sim_capture_node(struct sim_stream *stream, enum sim_node_type type)
{
    sim_lock();
    int error = stream->capture->status == SIM_CAPTURE_BROKEN ? SIM_CAPTURE_INVALIDATED : add(stream, type, NULL);
    sim_unlock();
    return error;
}

/* The null stream would wait for a blocking stream that is being captured: that breaks the capture. Lock held. */
int sim_capture_implicit(const struct sim_stream *stream)
{
    struct sim_context *c = stream->context;
    int error = SIM_OK;
    if (active_count == 0 || stream != &c->null_stream) return SIM_OK;
    for (struct sim_stream *s = c->streams; s; s = s->next)
        if (s->capture && !(s->flags & 1) && s->capture->mode != SIM_MODE_RELAXED)
            error = sim_capture_break(s, CAPTURE_IMPLICIT);
    return error;
}

/* --- the end --- */
static bool reaches(const struct sim_nodes *from, const struct sim_node *node, struct sim_nodes *seen)
{
    for (size_t i = 0; i < from->count; i++) {
        if (from->at[i] == node) return true;
        if (sim_nodes_has(seen, from->at[i])) continue;
        sim_nodes_add(seen, from->at[i]);
        if (reaches(&from->at[i]->needs, node, seen)) return true;
    }
    return false;
}

/* All that the other streams put in must come before the end of the one that began. */
static bool is_joined(const struct sim_stream *origin, const struct sim_stream *other)
{
    for (size_t i = 0; i < other->tail.count; i++) {
        struct sim_nodes seen = {0};
        bool is_behind = reaches(&origin->tail, other->tail.at[i], &seen);
        sim_nodes_clear(&seen);
        if (!is_behind) return false;
    }
    return true;
}

static int leave(struct sim_stream *stream)
{
    struct sim_capture *c = stream->capture;
    bool is_whole = true;
    for (struct sim_context *context = sim_contexts(); context; context = context->next)
        for (struct sim_stream *s = context->streams; s; s = s->next) {
            if (s->capture != c) continue;
            if (s != stream && !is_joined(stream, s)) is_whole = false;
            s->capture = NULL;
        }
    for (int i = 0; i < active_count; i++)
        if (active[i] == c) active[i] = active[--active_count];
    bool is_broken = c->status == SIM_CAPTURE_BROKEN;
    c->status = SIM_CAPTURE_NONE;
    if (is_broken) return SIM_CAPTURE_INVALIDATED;
    return is_whole ? SIM_OK : SIM_CAPTURE_UNJOINED;
}

/* The capture itself stays allocated: events that were recorded in it still point there. */
int sim_capture_end(struct sim_stream *stream, struct sim_graph **out)
{
    struct sim_capture *c = stream->capture;
    if (c == NULL) return ILLEGAL_STATE;
    if (c->origin != stream) return sim_capture_break(stream, SIM_CAPTURE_UNMATCHED);
    if (c->mode != SIM_MODE_RELAXED && c->thread != tid()) return sim_capture_break(stream, SIM_CAPTURE_WRONG_THREAD);
    sim_lock();
    int error = leave(stream);
    sim_unlock();
    *out = error ? NULL : c->graph;
    return error;
}

// SPDX-License-Identifier: Apache-2.0
/* work.c - puts work into a stream: decides its times, does its copies, tells the observer now and at its end */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/core/core.h"

/* --- copies and fills, for real --- */
static void fill(unsigned char *at, size_t width, uint32_t value, uint32_t value_bytes)
{
    if (value_bytes <= 1) memset(at, (int)(value & 0xff), width);
    else
        for (size_t i = 0; i + value_bytes <= width; i += value_bytes) memcpy(at + i, &value, value_bytes);
}

void sim_data_apply(const struct sim_data *d)
{
    size_t depth = d->depth ? d->depth : 1;
    for (size_t i = 0; d->dst && i < d->height * depth; i++) {
        size_t row = i % d->height, slice = i / d->height;
        unsigned char *to = (unsigned char *)d->dst + row * d->dst_pitch + slice * d->dst_slice;
        if (d->src) memmove(to, (const unsigned char *)d->src + row * d->src_pitch + slice * d->src_slice, d->width);
        else fill(to, d->width, d->value, d->value_bytes);
    }
}

/* --- when it starts and ends; lock held --- */
static uint64_t *engine_of(struct sim_device *device, const struct simgpu_work *work)
{
    if (work->kind == SIMGPU_MEMCPY) return &device->copy_busy[work->copy_kind == 1 ? 0 : work->copy_kind == 2 ? 1 : 2];
    if (work->kind != SIMGPU_KERNEL) return NULL;
    uint64_t *least = &device->kernel_busy[0];
    for (int i = 1; i < sim_settings()->kernel_slots; i++)
        if (device->kernel_busy[i] < *least) least = &device->kernel_busy[i];
    return least;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void break_context(struct sim_context *context, int error, uint64_t at_ns)
{
    if (context->error != 0) return;
    context->error = error;
    context->error_at = at_ns;
}

/* Times that a library gave for the next kernel of this thread (a collective, that ends when its slowest rank says). */
static _Thread_local struct {
    bool is_given;
    uint64_t start_ns, end_ns;
} next;

void sim_next_kernel(uint64_t start_ns, uint64_t end_ns)
{
    next.is_given = true;
    next.start_ns = start_ns;
    next.end_ns = end_ns;
}

/* A given start may lie in the past: the launch has been waiting, inside its call, for the other ranks. */
static bool take_given_times(const struct simgpu_work *w)
{
    bool is_given = w->kind == SIMGPU_KERNEL && next.is_given && w->graph == 0;
    if (is_given) next.is_given = false;
    return is_given;
}

static void schedule(struct sim_stream *s, struct sim_op *op, uint64_t not_before_ns)
{
    struct simgpu_work *w = &op->work;
    struct sim_device *device = sim_device_at(s->context->device);
    bool is_hanging = false;
    int error = w->kind == SIMGPU_KERNEL ? sim_fault_of_kernel(&is_hanging) : 0;
    bool is_mark = w->kind == SIMGPU_EVENT_RECORD || w->kind == SIMGPU_EVENT_WAIT;
    bool is_given = take_given_times(w);
    uint64_t start = not_before_ns; /* nodes of a graph: their launch has counted the latency already */
    if (w->graph == 0)
        start = later(start, is_given ? next.start_ns : sim_now() + (is_mark ? 0 : sim_settings()->latency_ns));
    uint64_t *engine = engine_of(device, w);
    if (engine) start = later(start, *engine);
    if (w->kind == SIMGPU_EVENT_WAIT) start = later(start, op->event->time);
    w->start_ns = start;
    uint64_t end = is_given ? later(start, next.end_ns) : start + sim_duration(op, &device->facts);
    w->end_ns = start == SIM_NEVER || is_hanging ? SIM_NEVER : end; /* what is behind a hang hangs */
    if (engine && w->end_ns != SIM_NEVER) *engine = w->end_ns;
    if (error) break_context(s->context, error, w->end_ns);
}

/* --- telling --- */
struct told {
    struct simgpu_work work;
    const struct simgpu_observer *observer;
};

static void tell_done(void *arg)
{
    struct told *t = arg;
    const struct simgpu_observer *o = sim_observer();
    if (o == t->observer && o->work_done) o->work_done(&t->work);
    free(t);
}

static void tell(const struct simgpu_work *work)
{
    sim_truth_work(work);
    const struct simgpu_observer *o = sim_observer();
    if (o == NULL || o->work_enqueued == NULL) return;
    struct told *t = malloc(sizeof *t);
    if (t == NULL) return;
    *t = (struct told){*work, o};
    o->work_enqueued(&t->work);
    sim_timeline_add(t->work.end_ns, tell_done, t, false);
}

struct hosted {
    struct sim_stream *stream;
    void (*fn)(void *arg);
    void *arg;
};

static void run_host_function(void *arg)
{
    struct hosted *h = arg;
    h->fn(h->arg);
    sim_host_function_returned(h->stream);
    free(h);
}

static void add_host_function(struct sim_stream *stream, const struct sim_op *op)
{
    struct hosted *h = malloc(sizeof *h);
    if (h == NULL) abort();
    *h = (struct hosted){stream, op->host_fn, op->host_arg};
    sim_timeline_add(op->work.start_ns, run_host_function, h, true);
}

/* --- enqueue --- */
static void note_event(struct sim_stream *s, struct sim_op *op)
{
    struct sim_event *e = op->event;
    e->stream = s;
    e->stream_id = s->id;
    e->time = op->work.end_ns;
    e->sync_id = ++s->context->next_sync_id;
    e->host_asked = s->host_asked;
    e->capture = NULL;
    op->work.event_sync = e->sync_id;
}

uint64_t sim_enqueue_now(struct sim_stream *s, struct sim_op *op, uint64_t not_before_ns)
{
    struct simgpu_work *w = &op->work;
    w->device = (uint32_t)s->context->device;
    w->context = s->context->id;
    w->stream = s->id;
    w->priority = s->priority;
    w->correlation = sim_correlation();
    sim_lock();
    schedule(s, op, w->graph ? not_before_ns : later(not_before_ns, sim_stream_ready_ns(s)));
    if (w->graph == 0) s->busy_until = w->end_ns;
    if (w->kind == SIMGPU_EVENT_RECORD) note_event(s, op);
    if (w->kind == SIMGPU_HOST_FUNCTION) s->host_asked++;
    sim_unlock();
    sim_data_apply(&op->data);
    tell(w);
    if (w->kind == SIMGPU_HOST_FUNCTION) add_host_function(s, op);
    return w->end_ns;
}

int sim_enqueue(struct sim_stream *stream, struct sim_op *op)
{
    int error = sim_context_error(stream->context);
    if (error) return error;
    if (stream->capture || (op->work.kind == SIMGPU_EVENT_WAIT && op->event->capture))
        return sim_capture_op(stream, op);
    sim_lock();
    error = sim_capture_implicit(stream);
    sim_unlock();
    if (error == 0) sim_enqueue_now(stream, op, 0);
    return error;
}

/* --- kernels by name --- */
enum { BUCKETS = 4096 };
static struct sim_kernel *kernels[BUCKETS];

static uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

/* Registers and shared memory come from the name, so that they differ between kernels and never between runs. */
static struct sim_kernel *make_kernel(const char *name, uint32_t hash)
{
    struct sim_kernel *k = calloc(1, sizeof *k);
    char *copy = strdup(name);
    if (k == NULL || copy == NULL) abort();
    *k = (struct sim_kernel){.magic = SIM_MAGIC_KERNEL,
                             .name = copy,
                             .registers = 16 + 8 * (hash >> 8 & 7),
                             .max_threads = 1024,
                             .max_dynamic_smem = 49152};
    k->static_smem = (hash >> 12 & 3) * 1024;
    return k;
}

struct sim_kernel *sim_kernel_of(const char *name)
{
    uint32_t hash = hash_of(name);
    sim_lock();
    struct sim_kernel **at = &kernels[hash % BUCKETS];
    while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    if (*at == NULL) *at = make_kernel(name, hash);
    struct sim_kernel *found = *at;
    sim_unlock();
    return found;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * streams.c - keeps the streams and devices that worked in a trace: their rows, and the order of work
 *
 * Called by: activity.c, cuda_sync.c (hot), export.c
 */
#include <string.h>

#include "collector/base/kp_log.h"
#include "export/write/gpu/gpu.h"
#include "collector/base/kp_poison.h"

#define GPU_SORT 5000000u /* as Kineto: devices below all processes */
#define OVERHEAD_SORT 16777226u
#define SYNC_ROW 1000000u /* "Stream Sync" overlaps the kernels it waits for, so it has its own row */

struct kp_stream *kp_stream_get(struct kp_gpu *g, uint32_t device, uint32_t stream)
{
    uint32_t at = (device * 0x85ebca6bu ^ stream) * 0x9e3779b1u >> 7;
    for (;; at++) {
        struct kp_stream *s = &g->streams[at & (KP_STREAMS - 1)];
        if (s->is_there && s->device == device && s->stream == stream) return s;
        if (s->is_there) continue;
        if (g->streams_n * 2 >= KP_STREAMS) return NULL;
        g->streams_n++;
        *s = (struct kp_stream){.device = device, .stream = stream, .is_there = true};
        return s;
    }
}

uint64_t kp_stream_follow(struct kp_stream *s, const struct kp_device_event *e)
{
    uint64_t start_ns = e->start_ns;
    if (s->has_work && s->flags == e->of.head.flags && e->raw_start >= s->raw_end && start_ns < s->end_ns)
        start_ns = s->end_ns;
    if (!s->has_work || s->flags != e->of.head.flags || e->raw_end > s->raw_end) {
        s->raw_end = e->raw_end;
        s->end_ns = start_ns + (e->end_ns - e->start_ns);
        s->flags = e->of.head.flags;
    }
    s->has_work = s->has_row = true;
    return start_ns;
}

void kp_context_see(struct kp_gpu *g, uint32_t context, uint32_t device)
{
    for (uint32_t i = 0; i < g->contexts_n; i++)
        if (g->contexts[i].context == context) return;
    if (g->contexts_n < sizeof g->contexts / sizeof *g->contexts)
        g->contexts[g->contexts_n++] = (struct kp_gpu_context){context, device};
}

uint32_t kp_context_device(const struct kp_trace *t, uint32_t context)
{
    int64_t told = kp_reader_context_device(t->reader, context);
    if (told >= 0) return (uint32_t)told;
    for (uint32_t i = 0; i < t->gpu->contexts_n; i++)
        if (t->gpu->contexts[i].context == context) return t->gpu->contexts[i].device;
    return 0;
}

/* --- rows --- */

static void process_row_write(struct kp_trace *t, uint32_t device)
{
    const struct kp_file_head *head = kp_reader_head(t->reader);
    char program[sizeof head->program + 1] = {0}, label[32];
    if (device < KP_GPU_ROWS) {
        if (t->gpu->has_process[device]) return;
        t->gpu->has_process[device] = true;
    }
    memcpy(program, head->program, strnlen(head->program, sizeof head->program));
    kp_fmt(label, sizeof label, "GPU %u", device);
    kp_row_write(t, "process_name", device, 0, "name", program, 0);
    kp_row_write(t, "process_labels", device, 0, "labels", label, 0);
    kp_row_write(t, "process_sort_index", device, 0, "sort_index", NULL, GPU_SORT + device);
}

static void stream_row_write(struct kp_trace *t, const struct kp_stream *s)
{
    char name[48];
    if (s->has_row || s->has_sync_row) process_row_write(t, s->device);
    if (s->has_row && s->stream == KP_DEV_NONE) {
        kp_fmt(name, sizeof name, "Device %u", s->device); /* Kineto's row -1, which becomes 1 */
        kp_row_write(t, "thread_name", s->device, 1, "name", name, 0);
    } else if (s->has_row) {
        kp_fmt(name, sizeof name, "stream %u ", s->stream);
        kp_row_write(t, "thread_name", s->device, s->stream, "name", name, 0);
        kp_row_write(t, "thread_sort_index", s->device, s->stream, "sort_index", NULL, s->stream);
    }
    if (!s->has_sync_row) return;
    kp_fmt(name, sizeof name, "stream %u (sync)", s->stream);
    kp_row_write(t, "thread_name", s->device, (uint64_t)s->stream + SYNC_ROW, "name", name, 0);
    kp_row_write(t, "thread_sort_index", s->device, (uint64_t)s->stream + SYNC_ROW, "sort_index", NULL, s->stream);
}

/* Writes rows for threads that only called into CUDA. */
static void thread_rows_write(struct kp_trace *t)
{
    for (uint32_t i = 0; i < t->gpu->ops.cap; i++) {
        const struct kp_op_thread *thread = &t->gpu->ops.threads[i];
        if (thread->tid && !thread->is_named) kp_thread_row_write(t, thread->tid, "");
    }
}

void kp_rows_write(struct kp_trace *t)
{
    struct kp_gpu *g = t->gpu;
    thread_rows_write(t);
    for (uint32_t i = 0; i < KP_STREAMS && g->streams_n; i++)
        if (g->streams[i].is_there) stream_row_write(t, &g->streams[i]);
    if (!g->has_overhead) return;
    const uint64_t ts = kp_ts_of(t, t->cycle.begin_ns);
    kp_json_fmt(&t->json,
                "{\"ph\":\"M\",\"name\":\"process_name\",\"ts\":%ju,\"pid\":-1,\"tid\":0,\"args\":{\"name\":\"CUPTI "
                "Overhead\"}},\n"
                "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":%ju,\"pid\":-1,\"tid\":0,\"args\":{\"sort_"
                "index\":%u}},\n",
                ts, ts, OVERHEAD_SORT);
}

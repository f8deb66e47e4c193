// SPDX-License-Identifier: Apache-2.0
/*
 * export.c - writes a cycle of a spool as a trace file of Kineto's shape
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    fixed mapped blocks: 1 MB, at most 8 MB more for a training run's arrows, 6 MB with GPUs. State
 *            that grows with the window lies in a file (scratch.c).
 * On fail:   -errno, no file
 *
 * The host's events are written in a single pass. The reader gives them by start, parents before children, so there is
 * no sort. The devices' records follow in the order of their delivery.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_sigblock.h"
#include "export/write/gpu/gpu.h"
#include "export/write/heap/allocations.h"
#include "export/write/names/framenames.h"
#include "export/write/trace/callers.h"
#include "export/write/trace/filename.h"
#include "export/write/trace/fwdbwd.h"
#include "export/write/trace/memory_before.h"
#include "export/write/trace/parts.h"
#include "export/write/trace/torch_memory.h"
#include "collector/base/kp_poison.h"

#define PROGRESS_EVENTS 4096u

static bool has_file(const struct kp_trace *t) { return !t->options->text; }

static int text_down(void *context, const void *data, size_t bytes)
{
    struct kp_trace *t = context;
    t->text_bytes += bytes;
    if (t->options->text_most && t->text_bytes > t->options->text_most) return -EFBIG;
    if (t->options->text) return t->options->text(t->options->text_context, data, bytes);
    if (!has_file(t)) return 0;
    return t->gz ? kp_gz_write(t->gz, data, bytes) : kp_sink_write(&t->sink, data, bytes);
}

static bool has_heap_file(const struct kp_trace *t)
{
    char path[4096];
    return kp_heap_file_path(path, sizeof path, t->result->path) && kp_io_exists(path);
}

/* Makes a name that no file has: HOST_PID, in a job of several ranks HOST_rRANK_PID. Each try adds a nanosecond. */
static int path_make(struct kp_trace *t, char *name, size_t bytes)
{
    const struct kp_file_head *head = kp_reader_head(t->reader);
    const char *const phase = kp_phase_name(t);
    const struct kp_rank place = kp_rank_of_trace(t);
    char host[sizeof head->host + 16] = {0};
    memcpy(host, *head->host ? head->host : "host", *head->host ? strnlen(head->host, sizeof head->host) : 4);
    if (place.size > 1) kp_fmt(host + strlen(host), 16, "_r%u", place.rank);
    for (int tries = 0; tries < 1000; tries++) {
        int rc =
            kp_filename_make(name, bytes, t->options->worker_name, host, head->pid, phase, t->now_ns, t->options->gzip);
        if (rc) return rc;
        if (kp_fmt(t->result->path, sizeof t->result->path, "%s/%s", t->options->dir, name) >= sizeof t->result->path)
            return -ENAMETOOLONG;
        if (!kp_io_exists(t->result->path) && !(t->heap && has_heap_file(t))) return 0;
        t->now_ns++;
    }
    return -EEXIST;
}

/* Signals are blocked: if one ended the program before the file's name is noted, the file would stay. */
static int file_open(struct kp_trace *t, const char *name)
{
    struct kp_sigblock_all signals;
    kp_sigblock_all_begin(&signals);
    const int rc = kp_sink_open(&t->sink, t->options->dir, name, t->options->owner);
    t->sink.room.left_free = t->options->left_free;
    if (t->options->part) kp_fmt(t->options->part, KP_PART_BYTES, "%s", t->sink.temporary);
    kp_sigblock_all_end(&signals);
    return rc;
}

/* At the first event: opens the file and writes all that comes before the events. */
static int begin(struct kp_trace *t)
{
    char name[256];
    int rc = path_make(t, name, sizeof name);
    if (!rc && has_file(t)) rc = file_open(t, name);
    if (!rc) rc = kp_json_init(&t->json, text_down, t);
    if (rc) return rc;
    if (t->options->gzip && has_file(t) && !(t->gz = kp_gz_open(&t->sink))) return -ENOMEM;
    t->flows = kp_flows_open();
    t->python = kp_callers_open();
    if (!t->flows || !t->python) return -ENOMEM;
    t->pid = kp_reader_head(t->reader)->pid;
    t->begun = true;
    kp_head_write(t);
    return t->json.error;
}

/*
 * A program that runs torch.profiler itself marks its steps, too. Beside the library's marks, every viewer would count
 * them twice.
 */
static bool is_second_mark(const struct kp_trace *t, const struct kp_event *e)
{
    if (e->kind != KP_KIND_OP || e->scope != 7 || !t->result->steps || strncmp(e->name, "ProfilerStep#", 13) != 0)
        return false;
    return e->name[13] && !e->name[13 + strspn(e->name + 13, "0123456789")];
}

static bool is_before(const struct kp_event *e) { return e->kind == KP_KIND_MEMORY && e->flags & KP_MEMORY_BEFORE; }

static int memory_take(struct kp_trace *t, const struct kp_event *e)
{
    if (!t->blocks) t->blocks = kp_blocks_open();
    if (!t->before) t->before = kp_before_open();
    if (!t->blocks || !t->before) return -ENOMEM;
    return is_before(e) ? kp_before_take(t->before, e) : kp_memory_write(t, e);
}

static int event_take(void *context, const struct kp_event *e)
{
    struct kp_trace *t = context;
    int rc = t->begun || is_before(e) ? 0 : begin(t); /* what was there before makes no trace */
    if (t->heap && (e->kind == KP_KIND_OP || e->kind == KP_KIND_STEP)) kp_heap_args_next(t->heap);
    if (rc || is_second_mark(t, e)) return rc;
    if (e->kind == KP_KIND_API) {
        if (t->gpu) kp_call_write(t, e);
        return t->json.error;
    }
    if (e->kind == KP_KIND_NVTX && (e->domain || e->nvtx != KP_NVTX_RANGE)) {
        kp_nvtx_write(t, e);
        return t->json.error;
    }
    if (e->kind == KP_KIND_MEMORY) {
        rc = memory_take(t, e);
        return rc ? rc : t->json.error;
    }
    if (e->kind == KP_KIND_SYMBOL) {
        t->result->calls++;
        rc = t->named ? kp_named_write(t->named, e) : 0;
        return rc ? rc : t->json.error;
    }
    rc = t->named ? kp_named_around(t->named, e) : 0;
    if (rc) return rc;
    t->has_steps |= e->kind == KP_KIND_STEP;
    if (t->gpu && e->kind != KP_KIND_PYCALL) kp_gpu_op(t, e, t->index + 1);
    kp_event_write(t, e);
    t->result->events += e->kind == KP_KIND_OP;
    if (e->kind == KP_KIND_STEP && !(e->flags & (KP_OP_UNFINISHED | KP_STEP_CUT))) {
        t->result->steps++;
        t->result->last_step = e->step;
    }
    if (t->index % PROGRESS_EVENTS) return t->json.error;
    if (t->options->progress && t->options->progress(t->options->context, t->index)) return -ECANCELED;
    return t->json.error;
}

static int is_shown(void *context, const struct kp_device_event *e)
{
    const struct kp_trace *t = context;
    return e->time_status == KP_TIME_OK && e->kind != KP_KIND_CUDAEVENT && e->start_ns >= t->cycle.begin_ns &&
           e->end_ns <= t->cycle.end_ns;
}

/* A window without events of the host has a trace when a device worked in it. */
static int begin_by_device(struct kp_trace *t)
{
    if (t->begun || !t->gpu) return 0;
    int rc = kp_reader_device(t->reader, t->cycle.number, is_shown, t);
    return rc > 0 ? begin(t) : rc;
}

/* Writes the devices' part in its own walk. t->gpu, which the host's part filled, joins the two. */
static int devices_write(struct kp_trace *t)
{
    if (!t->gpu) return 0;
    int rc = kp_work_write(t);
    if (!rc && t->gpu->syncs) rc = kp_waits_write(t);
    const enum kp_kind work[] = {KP_KIND_KERNEL, KP_KIND_MEMCPY, KP_KIND_MEMSET, KP_KIND_GRAPHRUN};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++) t->result->gpu_events += t->gpu->count[work[i]].shown;
    if (!rc) kp_notes_write(t);
    if (!rc) kp_rows_write(t);
    return rc ? rc : t->json.error;
}

static int finish(struct kp_trace *t)
{
    int rc = devices_write(t), tries = 0;
    if (rc) return rc;
    if (t->heap) kp_heap_counters_write(t->heap, t);
    if (t->named) kp_named_rows_write(t->named);
    rc = kp_tail_write(t);
    if (!rc) rc = kp_json_flush(&t->json);
    if (!rc && t->gz) rc = kp_gz_finish(t->gz);
    if (!rc && has_file(t)) rc = kp_sink_commit(&t->sink, t->result->path);
    while (rc == -EEXIST && tries++ < 1000) { /* another process took the name since path_make */
        char name[256];
        t->now_ns++;
        rc = path_make(t, name, sizeof name);
        if (!rc) rc = kp_sink_commit(&t->sink, t->result->path);
    }
    if (!rc && t->heap) (void)kp_heap_file_commit(t->heap, t->result->path); /* it says why it fails */
    if (!rc && t->options->written) t->options->written(t->options->context);
    return rc;
}

static int cycle_find(struct kp_reader *r, uint32_t number, struct kp_cycle *out)
{
    for (size_t i = kp_reader_cycles(r); i-- > 0;)
        if (!kp_reader_cycle(r, i, out) && out->number == number) return 0;
    return -ENOENT;
}

static int any_event(void *context, const struct kp_event *e)
{
    (void)context;
    return !is_before(e);
}

static int any_block(struct kp_reader *reader, uint32_t cycle)
{
    struct kp_heap_walk *walk;
    struct kp_heap_event e;
    const char *heap = kp_reader_text(reader, "KPROF_MALLOC");
    if (!heap || strcmp(heap, "0") == 0) return 0;
    int rc = kp_reader_heap_open(&walk, reader, cycle);
    if (rc) return rc;
    rc = kp_reader_heap_next(walk, &e);
    kp_reader_heap_close(walk);
    return rc;
}

int kp_export_has(struct kp_reader *reader, uint32_t cycle)
{
    struct kp_trace *t = kp_map_alloc(sizeof *t);
    if (!t) return -ENOMEM;
    t->reader = reader;
    const uint64_t skipped = kp_reader_skipped(reader);
    int rc = cycle_find(reader, cycle, &t->cycle);
    if (!rc) rc = kp_reader_timeline(reader, cycle, any_event, t, NULL);
    if (!rc && kp_reader_has_device(reader)) rc = kp_reader_device(reader, cycle, is_shown, t);
    if (!rc) rc = any_block(reader, cycle);
    kp_reader_skipped_set(reader, skipped);
    kp_map_free(t, sizeof *t);
    return rc;
}

/* A name is made for the heap's file, and made again for the trace at its first event. */
static int heap_open(struct kp_trace *t)
{
    char name[256];
    const int rc = has_file(t) ? path_make(t, name, sizeof name) : 0;
    return rc ? rc : kp_heap_open(&t->heap, t, has_file(t) || t->options->heap_text);
}

int kp_export_trace(struct kp_reader *reader, uint32_t cycle, const struct kp_export_options *options,
                    struct kp_export_result *result)
{
    struct kp_trace *t = kp_map_alloc(sizeof *t);
    memset(result, 0, sizeof *result);
    if (!t) return -ENOMEM;
    t->sink.fd = -1;
    t->reader = reader, t->options = options, t->result = result;
    t->now_ns = options->written_ns ? options->written_ns : kp_clock_ns(CLOCK_REALTIME);
    int rc = cycle_find(reader, cycle, &t->cycle);
    t->cycle.complete |= options->is_kept;
    if (!rc) rc = heap_open(t);
    if (!rc) rc = kp_gpu_open(t);
    if (!rc) rc = kp_named_open(&t->named, t);
    if (!rc) rc = kp_reader_timeline(reader, cycle, event_take, t, t->gpu ? &t->gpu->count[KP_KIND_API].invalid : NULL);
    if (!rc) rc = begin_by_device(t);
    if (!rc && t->heap) result->allocations = kp_heap_allocations(t->heap);
    if (!rc && t->heap && !t->begun) rc = begin(t);
    if (!rc) rc = t->begun ? finish(t) : -ENODATA;
    result->lost = t->cycle.lost;
    result->text_bytes = t->text_bytes;
    result->is_room_left = t->sink.is_room_left;
    if (rc) {
        kp_sink_drop(&t->sink);
        result->path[0] = 0;
    }
    if (options->part) options->part[0] = 0;
    kp_gz_close(t->gz);
    kp_flows_close(t->flows);
    kp_blocks_close(t->blocks);
    kp_before_close(t->before);
    kp_gpu_close(t->gpu);
    kp_callers_close(t->python);
    kp_heap_close(t->heap);
    kp_named_close(t->named);
    kp_symbols_close(t->symbols);
    kp_json_fini(&t->json);
    kp_map_free(t, sizeof *t);
    return rc;
}

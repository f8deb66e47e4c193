// SPDX-License-Identifier: Apache-2.0
/*
 * memory_write.c - writes allocations and frees of torch's allocators as Kineto's [memory] events
 *
 * Called by: export.c, for every event of memory in order of time
 * On fail:   -ENOMEM
 */
#include "export/write/trace/parts.h"

#include "export/write/out/slice.h"
#include "export/write/trace/memory_before.h"
#include "export/write/trace/torch_memory.h"
#include "collector/base/kp_poison.h"

static void write(struct kp_trace *t, const struct kp_event *e, int64_t bytes, int64_t allocated)
{
    bool is_oom = e->flags & KP_MEMORY_OOM;
    kp_json_fmt(
        &t->json,
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%ju,"
        "\"args\":{\"Total Reserved\":%ld,\"Total Allocated\":%ld,\"Bytes\":%ld,\"Device Id\":%d,"
        "\"Device Type\":%d,",
        is_oom ? "[OutOfMemory]" : "[memory]", t->pid, e->tid, kp_ts_of(t, e->start_ns), (int64_t)e->reserved,
        allocated, bytes, e->device, e->device_type);
    if (!is_oom) kp_json_fmt(&t->json, "\"Addr\":%lu,", e->address);
    kp_json_fmt(&t->json, "\"finished\":false,\"Ev Idx\":%lu}},\n", t->index++);
}

int kp_memory_write(struct kp_trace *t, const struct kp_event *e)
{
    int64_t bytes = e->bytes, total = 0;
    int rc = 0;
    if (e->flags & KP_MEMORY_TOTALS) {
        const bool is_oom = e->flags & KP_MEMORY_OOM, is_cpu = e->device < 0;
        if (is_cpu && !is_oom) kp_before_reused(t->before, e->address); /* mapped, or given back: the event tells it */
        write(t, e, bytes, is_cpu && is_oom ? kp_blocks_total(t->blocks) : (int64_t)e->allocated);
    } else if (!(e->flags & KP_MEMORY_FREE)) {
        kp_before_reused(t->before, e->address);
        rc = kp_blocks_take(t->blocks, e->address, bytes, &total);
        if (!rc) write(t, e, bytes, total);
    } else if ((bytes = kp_blocks_give(t->blocks, e->address, &total)) != 0) {
        write(t, e, (int64_t) - (uint64_t)bytes, total);
    } else {
        rc = kp_before_freed(t->before, e);
    }
    return rc;
}

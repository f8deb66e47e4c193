// SPDX-License-Identifier: Apache-2.0
/*
 * memory_write.c - writes allocations and frees of torch's allocators as Kineto's [memory] events
 *
 * Called by: export.c, for every event of memory in order of time
 * On fail:   -ENOMEM
 */
#include "export/trace/memory_write.h"

#include "export/out/slice.h"
#include "export/trace/memory_before.h"
#include "export/trace/torch_memory.h"
#include "collector/base/kp_poison.h"

static void member(struct kp_trace *t, const char *key, int64_t value)
{
    kp_json_char(&t->json, '"');
    kp_json_raw(&t->json, key, strlen(key));
    kp_json_raw(&t->json, "\":", 2);
    kp_json_i64(&t->json, value);
    kp_json_char(&t->json, ',');
}

static void write(struct kp_trace *t, const struct kp_event *e, int64_t bytes, int64_t allocated)
{
    bool is_oom = e->flags & KP_MEMORY_OOM;
    kp_json_lit(&t->json, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"");
    kp_json_raw(&t->json, is_oom ? "[OutOfMemory]" : "[memory]", is_oom ? 13 : 8);
    kp_json_raw(&t->json, t->to_tid, t->to_tid_bytes);
    kp_json_u64(&t->json, e->tid);
    kp_json_lit(&t->json, ",\"ts\":");
    kp_ts_write(t, e->start_ns);
    kp_json_lit(&t->json, ",\"args\":{");
    member(t, "Total Reserved", (int64_t)e->reserved);
    member(t, "Total Allocated", allocated);
    member(t, "Bytes", bytes);
    member(t, "Device Id", e->device);
    member(t, "Device Type", e->device_type);
    if (!is_oom) {
        kp_json_lit(&t->json, "\"Addr\":");
        kp_json_u64(&t->json, e->address);
        kp_json_char(&t->json, ',');
    }
    kp_json_lit(&t->json, "\"finished\":false,\"Ev Idx\":");
    kp_json_u64(&t->json, t->index++);
    kp_json_lit(&t->json, "}},\n");
}

int kp_memory_write(struct kp_trace *t, const struct kp_event *e)
{
    int64_t bytes = e->bytes, total = 0;
    int rc = 0;
    if (e->flags & KP_MEMORY_TOTALS) {
        write(t, e, bytes, e->device < 0 ? kp_blocks_total(t->blocks) : (int64_t)e->allocated);
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

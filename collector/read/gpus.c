// SPDX-License-Identifier: Apache-2.0
/*
 * gpus.c - reads the META records about GPUs: devices, contexts, the device clock, CUPTI's thread ids
 *
 * Memory: grows with devices, contexts, clock samples and threads, not with events.
 */
#include "collector/read/reader.h"

#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

#define CONTEXTS_MAX 4096u /* more is damage; each wait searches all of them */

static int context_take(struct kp_gpus *g, const struct kp_rec_context *c)
{
    for (uint32_t i = g->contexts_n; i-- > 0 && g->contexts_n - i < 64;) {
        if (g->contexts[i].context != c->context) continue;
        g->contexts[i] = *c;
        return 0;
    }
    if (g->contexts_n == CONTEXTS_MAX) return 0;
    if (!kp_map_room(&g->contexts, g->contexts_n, &g->contexts_cap, sizeof *g->contexts, 64)) return -ENOMEM;
    g->contexts[g->contexts_n++] = *c;
    return 0;
}

int kp_gpus_take(struct kp_gpus *g, const struct kp_rec *rec, uint32_t bytes)
{
    const struct kp_rec_device *device = (const void *)rec;
    const struct kp_rec_threadid *thread = (const void *)rec;
    if (rec->kind == KP_KIND_DEVCLOCK && bytes >= sizeof(struct kp_rec_devclock))
        return kp_devclock_add(&g->clock, (const void *)rec);
    if (rec->kind == KP_KIND_CONTEXT && bytes >= sizeof(struct kp_rec_context))
        return context_take(g, (const void *)rec);
    if (rec->kind == KP_KIND_THREADID && bytes >= sizeof *thread)
        return kp_gpus_thread(g, thread->thread_id, thread->tid);
    if (rec->kind == KP_KIND_DEVICE && bytes >= sizeof *device && device->id < KP_GPUS_MAX) {
        g->device[device->id] = device;
        if (device->id >= g->devices) g->devices = device->id + 1;
    }
    return 0;
}

/* --- threads --- */

int kp_gpus_thread(struct kp_gpus *g, uint32_t thread_id, uint32_t tid)
{
    if (!thread_id || !tid) return 0;
    g->threads.item_bytes = sizeof(struct kp_gpu_thread);
    struct kp_gpu_thread *thread = kp_idtable_add(&g->threads, thread_id);
    if (!thread) return -ENOMEM;
    thread->tid = tid;
    return 0;
}

uint32_t kp_gpus_tid(const struct kp_gpus *g, uint32_t thread_id)
{
    const struct kp_gpu_thread *thread = kp_idtable_find(&g->threads, thread_id);
    return thread ? thread->tid : thread_id;
}

void kp_gpus_fini(struct kp_gpus *g)
{
    kp_devclock_fini(&g->clock);
    if (g->contexts) kp_map_free(g->contexts, g->contexts_cap * sizeof *g->contexts);
    kp_idtable_fini(&g->threads);
    *g = (struct kp_gpus){0};
}

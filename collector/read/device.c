// SPDX-License-Identifier: Apache-2.0
/*
 * device.c - walks the device records of a cycle
 *
 * Called by: kp_read.h
 * Memory:    the list of chunks. The pages of each chunk are dropped once it was read.
 *
 * The walk gives records in the order of their delivery, since a viewer sorts anyway. The call that launched a record
 * decides its window. So the walk gives all records of the chunks, and the caller chooses.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/read/order.h"
#include "collector/read/reader.h"
#include "collector/base/kp_poison.h"

static uint32_t bytes_of(uint8_t kind)
{
    switch (kind) {
    case KP_KIND_KERNEL: return sizeof(struct kp_rec_kernel);
    case KP_KIND_MEMCPY:
    case KP_KIND_MEMSET: return sizeof(struct kp_rec_copy);
    case KP_KIND_SYNC: return sizeof(struct kp_rec_sync);
    case KP_KIND_CUDAEVENT: return sizeof(struct kp_rec_cudaevent);
    case KP_KIND_OVERHEAD: return sizeof(struct kp_rec_overhead);
    case KP_KIND_GRAPHRUN: return sizeof(struct kp_rec_graphrun);
    default: return 0;
    }
}

/* Times follow the head in all kinds but CUDAEVENT, which has no usable time. */
static void times_set(struct kp_reader *r, struct kp_device_event *e)
{
    uint64_t start = e->of.overhead.start, end = e->of.overhead.end;
    e->start_ns = e->end_ns = 0;
    if (e->kind == KP_KIND_CUDAEVENT) return;
    if (e->of.head.flags & KP_DEV_NO_TIME || !end) e->time_status = KP_TIME_NONE;
    else if (!kp_devclock_span(&r->gpus.clock, &r->clock, e->of.head.flags, start, end, &e->start_ns, &e->end_ns))
        e->time_status = KP_TIME_INVALID;
    e->raw_start = start, e->raw_end = end;
}

static int piece_walk(struct kp_reader *r, const struct kp_piece *piece, kp_device_fn fn, void *context)
{
    const uint8_t *at = piece->at;
    const struct kp_rec *rec;
    struct kp_device_event e;
    uint32_t bytes;
    int rc = 0;
    while (!rc && at < piece->end && (rec = kp_file_record(&at, piece->end, &bytes))) {
        uint32_t need = bytes_of(rec->kind);
        if (!need) continue;
        if (bytes < need) {
            r->skipped++;
            continue;
        }
        memcpy(&e.of, rec, need);
        e.kind = e.of.head.kind;
        e.time_status = KP_TIME_OK;
        const struct kp_name *n = kp_names_get(&r->names, e.of.head.name);
        e.name = n ? n->name : "name lost";
        times_set(r, &e);
        rc = fn(context, &e);
    }
    if (!rc && at < piece->end) r->skipped++;
    return rc;
}

int kp_reader_device(struct kp_reader *r, uint32_t cycle, kp_device_fn fn, void *context)
{
    const struct kp_rec_cycle *c = kp_file_cycle(r, cycle);
    struct kp_pieces pieces;
    if (!c) return -ENOENT;
    kp_clockmap_anchor(&r->clock, c->begin);
    int rc = kp_pieces_of_device(&pieces, r, cycle);
    for (uint32_t i = 0; !rc && i < pieces.n; i++) {
        rc = piece_walk(r, &pieces.of[i], fn, context);
        kp_file_drop_pages(r, pieces.of[i].at);
    }
    kp_pieces_fini(&pieces);
    return rc;
}

/* --- what does not change with the window --- */

bool kp_reader_has_device(const struct kp_reader *r)
{
    for (uint32_t i = 1, used; i < r->chunks; i++) {
        struct kp_chunk_head *head = (void *)(uintptr_t)kp_file_chunk(r, i, &used);
        if (head && kp_load_acquire(&head->kind) == KP_CHUNK_DEVICE) return true; /* pairs with: chunk.c */
        if (head) kp_file_drop_pages(r, head);
    }
    return false;
}

const struct kp_rec_device *kp_reader_gpu(const struct kp_reader *r, uint32_t id)
{
    return id < r->gpus.devices ? r->gpus.device[id] : NULL;
}

uint32_t kp_reader_gpus(const struct kp_reader *r) { return r->gpus.devices; }

int64_t kp_reader_context_device(const struct kp_reader *r, uint32_t context)
{
    for (uint32_t i = r->gpus.contexts_n; i-- > 0;)
        if (r->gpus.contexts[i].context == context) return r->gpus.contexts[i].device;
    return -1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * work.c - the device work of a call: records an event before and one after it, for resolve.c
 *
 * Called by: call.c on host threads, around the real function: begin and end outside a hook (they call the driver), put
 *            inside
 * Owns:      the items, KP_ITEMS of them: FREE, TAKEN by a call, READY for the resolver. An item keeps its two events.
 * Locks:     only the driver's. Memory: mapped at start; the driver allocates two events an item, once.
 * On fail:   a record without times (KP_DEV_NO_TIME)
 * Safe in:   after fork no; never called there (the gate is shut)
 *
 * There are no events while the stream is being captured, before the driver's functions are found, around blocking
 * calls, and while all items are in flight. An event in the default stream would break the capture of another stream.
 * In that state cuStreamIsCapturing fails for the default stream, and no event is recorded.
 */
#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "preload/cuda_hooks/cuda_hooks.h"
#include "collector/base/kp_poison.h"

enum { PROBES = 16, EVENT_DEFAULT = 0, LEGACY_STREAM = 1 /* cudaStreamLegacy */ };
enum { MEMORY_TYPE = 2, TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_ARRAY = 3 };            /* cuPointerGetAttribute */
enum { COPY_HTOD = 1, COPY_DTOH = 2, COPY_DTOD = 8, COPY_HTOH = 9, COPY_PTOP = 10 }; /* CUPTI's numbers */
enum { PAGEABLE = 1, PINNED = 2, DEVICE = 3, ARRAY = 4 };

struct kp_item *kp_items;
static _Atomic uint32_t cursor;

int kp_items_open(void)
{
    if (!kp_items) kp_items = kp_map_alloc(KP_ITEMS * sizeof *kp_items);
    return kp_items ? 0 : -ENOMEM;
}

static bool events_make(struct kp_item *item, struct kp_context *context)
{
    if (item->context == context) return true;
    if (item->context && !kp_load_acquire(&item->context->is_gone)) { /* pairs with: resolve.c:kp_contexts_forget */
        kp_cudrv.cuEventDestroy_v2(item->start);
        kp_cudrv.cuEventDestroy_v2(item->end);
    }
    item->context = NULL;
    if (kp_cudrv.cuEventCreate(&item->start, EVENT_DEFAULT) != 0) return false;
    if (kp_cudrv.cuEventCreate(&item->end, EVENT_DEFAULT) != 0) {
        kp_cudrv.cuEventDestroy_v2(item->start);
        return false;
    }
    item->context = context;
    return true;
}

static struct kp_item *item_take(struct kp_context *context)
{
    uint32_t at = kp_add_relaxed(&cursor, 1);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct kp_item *item = &kp_items[(at + i) % KP_ITEMS];
        uint32_t is_free = KP_ITEM_FREE;
        if (kp_load_relaxed(&item->state) != is_free) continue;
        if (!kp_cas_acq_rel(&item->state, &is_free, KP_ITEM_TAKEN)) continue; /* pairs with: resolve.c, call.c:let_go */
        if (events_make(item, context)) return item;
        kp_store_release(&item->state, KP_ITEM_FREE); /* pairs with: itself */
        return NULL;
    }
    return NULL;
}

/*
 * Asks the runtime, before the driver's functions are found. Never for the default stream: it cannot be captured, and
 * a failed call would set the error that cudaGetLastError returns to the program.
 */
static bool is_captured_says_runtime(void *stream)
{
    int saved = errno, status = 0;
    bool is_named = (uintptr_t)stream > LEGACY_STREAM;
    bool is = is_named && kp_cudart.cudaStreamIsCapturing && kp_cudart.cudaStreamIsCapturing(stream, &status) == 0 &&
              status > 0;
    errno = saved;
    return is;
}

void kp_work_begin(struct kp_hooked_call *call)
{
    int saved = errno, status = 0;
    struct kp_context *context;
    if (call->is_inner) return;
    if (!kp_load_acquire(&kp_cudrv.is_filled)) { /* pairs with: cudart_find.c */
        call->is_capturing = is_captured_says_runtime(call->stream);
        return;
    }
    if (kp_cudrv.cuStreamIsCapturing && kp_cudrv.cuStreamIsCapturing(call->stream, &status) != 0) status = -1;
    call->is_capturing = status > 0;
    if (status == 0 && !call->work.is_blocking && kp_items && kp_load_relaxed(&kp_cudrv.has_events) &&
        (context = kp_context_current()) != NULL) {
        call->item = item_take(context);
        if (call->item && kp_cudrv.cuEventRecord(call->item->start, call->stream) != 0) {
            kp_store_release(&call->item->state, KP_ITEM_FREE); /* pairs with: item_take */
            call->item = NULL;
        }
        if (call->item) call->item->ticks = kp_ticks();
    }
    errno = saved;
}

void kp_work_end(struct kp_hooked_call *call, int result)
{
    if (!call->item) return;
    if (result == 0 && kp_cudrv.cuEventRecord(call->item->end, call->stream) == 0) return;
    kp_store_release(&call->item->state, KP_ITEM_FREE); /* pairs with: item_take */
    call->item = NULL;
}

/* ---- the record ---- */

static uint8_t memory_kind(const void *at)
{
    unsigned type = 0;
    if (!kp_cudrv.cuPointerGetAttribute) return 0;
    if (kp_cudrv.cuPointerGetAttribute(&type, MEMORY_TYPE, (uint64_t)(uintptr_t)at) != 0)
        return PAGEABLE; /* CUDA does not know this address */
    return type == TYPE_HOST ? PINNED : type == TYPE_DEVICE ? DEVICE : type == TYPE_ARRAY ? ARRAY : 0;
}

static bool is_host(uint8_t kind) { return kind == PAGEABLE || kind == PINNED; }

/* The kind of a cudaMemcpyDefault, by the memory kinds of its ends. */
static uint8_t copy_kind(uint8_t from, uint8_t to)
{
    if (!from || !to) return 0;
    if (is_host(from)) return is_host(to) ? COPY_HTOH : COPY_HTOD;
    return is_host(to) ? COPY_DTOH : COPY_DTOD;
}

static uint32_t fill_kernel(struct kp_rec_kernel *rec, const struct kp_work *w)
{
    *rec = (struct kp_rec_kernel){
        .head = {.kind = KP_KIND_KERNEL, .size = sizeof *rec},
        .grid = {w->grid.x, w->grid.y, w->grid.z},
        .block = {w->block.x, w->block.y, w->block.z},
        .dynamic_smem = (uint32_t)w->smem,
    };
    if (w->kernel) {
        rec->registers = w->kernel->registers;
        rec->static_smem = w->kernel->static_smem;
        rec->local_per_thread = w->kernel->local;
    }
    return sizeof *rec;
}

static uint32_t fill_copy(struct kp_rec_copy *rec, const struct kp_work *w)
{
    bool is_set = w->kind == KP_KIND_MEMSET;
    *rec = (struct kp_rec_copy){
        .head = {.kind = w->kind, .size = sizeof *rec}, .bytes = w->bytes, .is_async = w->is_async, .value = w->value};
    if (w->target) rec->dst_kind = memory_kind(w->target);
    if (w->source) rec->src_kind = memory_kind(w->source);
    rec->kind = is_set || w->copy_kind ? w->copy_kind : copy_kind(rec->src_kind, rec->dst_kind);
    if (w->is_peer) {
        rec->is_peer = 1;
        rec->kind = COPY_PTOP;
        rec->src_device = w->source_device;
        rec->dst_device = w->target_device;
    }
    return sizeof *rec;
}

static uint32_t record_fill(struct kp_item *item, const struct kp_hooked_call *call, uint32_t name)
{
    uint32_t stream = kp_stream_number(call->stream, kp_load_relaxed(&call->thread->tid));
    struct kp_context *c = item->context;
    uint32_t device = c ? (uint32_t)c->device : 0, context = c ? c->number : 1, bytes;
    if (call->work.kind == KP_KIND_KERNEL) {
        bytes = fill_kernel(&item->rec.kernel, &call->work);
        item->rec.kernel.has = KP_KERNEL_SHAPE;
        item->rec.kernel.correlation = call->correlation;
        item->rec.kernel.device = device, item->rec.kernel.context = context, item->rec.kernel.stream = stream;
    } else if (call->work.kind == KP_KIND_GRAPHRUN) {
        item->rec.run = (struct kp_rec_graphrun){.head = {.kind = KP_KIND_GRAPHRUN, .size = sizeof item->rec.run},
                                                 .correlation = call->correlation,
                                                 .device = device,
                                                 .context = context,
                                                 .stream = stream};
        bytes = sizeof item->rec.run;
    } else {
        bytes = fill_copy(&item->rec.copy, &call->work);
        item->rec.copy.correlation = call->correlation;
        item->rec.copy.device = device, item->rec.copy.context = context, item->rec.copy.stream = stream;
    }
    item->rec.head.name = name;
    item->rec.head.flags = KP_DEV_TICKS;
    return bytes;
}

void kp_work_put(struct kp_hooked_call *call, struct kp_thread *lane, uint32_t name)
{
    struct kp_item local = {.context = NULL}, *item = call->item;
    if (item) {
        item->bytes = record_fill(item, call, name);
        item->cycle = kp_gate_cycle(call->gate);
        kp_store_release(&item->state, KP_ITEM_READY); /* pairs with: resolve.c:look_at */
        return;
    }
    if (!lane) return;
    if (kp_load_acquire(&kp_cudrv.is_filled) && kp_cudrv.cuCtxGetCurrent && kp_cudrv.cuCtxGetDevice)
        local.context = kp_context_current();
    uint32_t bytes = record_fill(&local, call, name);
    local.rec.head.flags |= KP_DEV_NO_TIME;
    kp_store_relaxed(&lane->inside, 1);
    void *rec = kp_put_reserve(lane, call->gate, bytes, (enum kp_kind)call->work.kind);
    if (rec) {
        __builtin_memcpy(rec, &local.rec, bytes);
        kp_put_commit(lane, bytes);
    }
    kp_store_release(&lane->inside, 0); /* pairs with: quiesce.c:is_quiet */
}

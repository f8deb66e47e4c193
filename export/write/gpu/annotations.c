// SPDX-License-Identifier: Apache-2.0
/*
 * annotations.c - annotations that launched work, and the extent of that work on each stream (gpu_user_annotation)
 *
 * Called by: cuda_calls.c, activity.c, export.c
 * Memory:    24 bytes for each annotation, and 32 for each of its streams, in the scratch.
 */

#include "collector/base/kp_log.h"
#include "export/write/gpu/gpu.h"
#include "collector/base/kp_poison.h"

enum { STREAMS_MOST = 1024 }; /* streams searched for an annotation's work */

uint32_t kp_note_number(struct kp_gpu *g, struct kp_op_thread *thread)
{
    uint32_t at = thread->n ? thread->of[thread->n - 1].annotation : 0;
    if (!at) return 0;
    struct kp_open_op *op = &thread->of[at - 1];
    if (op->note) return op->note;
    if (!g->notes.n) (void)kp_list_add(&g->notes); /* number 0 means none */
    struct kp_annotation *note = g->notes.n && g->notes.n < 1u << 31 ? kp_list_add(&g->notes) : NULL;
    if (!note) {
        g->unlinked++;
        return 0;
    }
    *note = (struct kp_annotation){.external = op->own, .name = op->name, .step = op->step};
    return op->note = g->notes.n - 1;
}

void kp_note_extend(struct kp_gpu *g, uint32_t number, uint32_t device, uint32_t stream, uint64_t start_ns,
                    uint64_t end_ns)
{
    struct kp_annotation *note = kp_list_at(&g->notes, number);
    uint32_t streams = 0;
    for (uint32_t at = note->span; at && streams < STREAMS_MOST; streams++) {
        struct kp_span *span = kp_list_at(&g->spans, at);
        if (span->device == device && span->stream == stream) {
            if (start_ns < span->start_ns) span->start_ns = start_ns;
            if (end_ns > span->end_ns) span->end_ns = end_ns;
            return;
        }
        at = span->next;
    }
    if (!g->spans.n) (void)kp_list_add(&g->spans); /* as with notes */
    struct kp_span *span = g->spans.n && streams < STREAMS_MOST ? kp_list_add(&g->spans) : NULL;
    if (!span) {
        g->unlinked++;
        return;
    }
    *span = (struct kp_span){
        .start_ns = start_ns, .end_ns = end_ns, .device = device, .stream = stream, .next = note->span};
    note->span = g->spans.n - 1;
}

/* The span is 1 ns longer than the work at each end, so it encloses the work in every viewer. */
static void span_write(struct kp_trace *t, const struct kp_annotation *note, const struct kp_span *span)
{
    char step[40];
    const char *name = note->name;
    if (!name) {
        kp_fmt(step, sizeof step, "ProfilerStep#%llu", (unsigned long long)note->step);
        name = step;
    }
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"%s", name);
    kp_slice_place_write(t, span->device, span->stream, span->start_ns - 1, span->end_ns + 1);
    kp_json_fmt(&t->json, ",\"args\":{\"External id\":%u}},\n", note->external);
}

void kp_notes_write(struct kp_trace *t)
{
    struct kp_gpu *g = t->gpu;
    for (uint32_t i = 1; i < g->notes.n && !t->json.error; i++) {
        const struct kp_annotation *note = kp_list_at(&g->notes, i);
        for (uint32_t at = note->span; at && !t->json.error;) {
            const struct kp_span *span = kp_list_at(&g->spans, at);
            span_write(t, note, span);
            at = span->next;
        }
    }
}

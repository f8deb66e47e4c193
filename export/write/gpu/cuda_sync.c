// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_sync.c - waits for devices (cuda_sync), each with the event record it waited for
 *
 * Called by: export.c; a walk of its own, since a wait of a stream is shown only on streams that did work
 * Memory:    16 bytes for each recorded event, in the scratch.
 *
 * A wait names its event by context and number. It means that event's last record before it, in the order of
 * correlation ids (CUPTI's numbers of calls). From 12.8 on, CUPTI records queries (cudaEventQuery) with a wait's type,
 * too. A query that returned "not ready" is not a wait.
 */

#include "export/write/gpu/gpu.h"
#include "collector/base/kp_poison.h"

enum { EVENT_SYNC = 1, STREAM_WAIT = 2, STREAM_SYNC = 3, CONTEXT_SYNC = 4, NOT_READY = 600 };
#define SYNC_ROW 1000000 /* streams.c */

void kp_waits_record(struct kp_gpu *g, const struct kp_rec_cudaevent *event)
{
    struct kp_event_record *r = kp_list_add(&g->records);
    if (r) *r = (struct kp_event_record){event->context, event->event, event->correlation, event->stream};
    else g->unlinked++;
}

static bool is_before(const struct kp_event_record *a, const struct kp_event_record *b)
{
    if (a->context != b->context) return a->context < b->context;
    if (a->event != b->event) return a->event < b->event;
    return a->correlation < b->correlation;
}

static void sift(const struct kp_list *l, uint32_t at, uint32_t n)
{
    struct kp_event_record x = *(struct kp_event_record *)kp_list_at(l, at);
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        struct kp_event_record *c = kp_list_at(l, child), *right = child + 1 < n ? kp_list_at(l, child + 1) : NULL;
        if (right && is_before(c, right)) c = right, child++;
        if (!is_before(&x, c)) break;
        *(struct kp_event_record *)kp_list_at(l, at) = *c;
    }
    *(struct kp_event_record *)kp_list_at(l, at) = x;
}

static void records_sort(const struct kp_list *l)
{
    uint32_t n = l->n;
    for (uint32_t i = n / 2; i-- > 0;) sift(l, i, n);
    while (n > 1) {
        struct kp_event_record *first = kp_list_at(l, 0), *last = kp_list_at(l, --n), x = *first;
        *first = *last;
        *last = x;
        sift(l, 0, n);
    }
}

/* The event's last record before (or at) a correlation id, or NULL. */
static const struct kp_event_record *record_find(const struct kp_list *l, uint32_t context, uint32_t event,
                                                 uint32_t correlation)
{
    struct kp_event_record key = {.context = context, .event = event, .correlation = correlation}, *r;
    uint32_t low = 0, high = l->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (is_before(&key, kp_list_at(l, mid))) high = mid;
        else low = mid + 1;
    }
    r = low ? kp_list_at(l, low - 1) : NULL;
    return r && r->context == context && r->event == event ? r : NULL;
}

static const char *name_of(uint32_t type)
{
    switch (type) {
    case EVENT_SYNC: return "Event Sync";
    case STREAM_WAIT: return "Stream Wait Event";
    case STREAM_SYNC: return "Stream Sync";
    case CONTEXT_SYNC: return "Context Sync";
    default: return "<unknown>";
    }
}

static int64_t or_none(uint32_t id) { return id == KP_DEV_NONE ? -1 : (int64_t)id; }

static void args_write(struct kp_trace *t, const struct kp_rec_sync *s, const struct kp_link *link, uint32_t device)
{
    kp_json_fmt(&t->json, ",\"args\":{\"External id\":%u,\"cuda_sync_kind\":\"%s\"",
                link && link->external ? link->external : s->correlation, name_of(s->type));
    if (s->type == EVENT_SYNC || s->type == STREAM_WAIT) {
        const struct kp_event_record *r = record_find(&t->gpu->records, s->context, s->event, s->correlation);
        kp_json_fmt(&t->json,
                    ",\"wait_on_stream\":%ld,\"wait_on_cuda_event_record_corr_id\":%ld,\"wait_on_cuda_event_id\":%u",
                    r ? or_none(r->stream) : -1, r ? (int64_t)r->correlation : -1, s->event);
    }
    kp_json_fmt(&t->json, ",\"stream\":%ld,\"correlation\":%u,\"device\":%u,\"context\":%u}},\n", or_none(s->stream),
                s->correlation, device, s->context);
}

static int64_t row_of(const struct kp_rec_sync *s, struct kp_stream *stream)
{
    if (stream) stream->has_row = true;
    if (s->stream == KP_DEV_NONE) return 1; /* the device's own row: Kineto's -1 without its sign */
    if (s->type != STREAM_SYNC) return s->stream;
    if (stream) stream->has_sync_row = true;
    return (int64_t)s->stream + SYNC_ROW;
}

static int sync_take(void *context, const struct kp_device_event *e)
{
    struct kp_trace *t = context;
    const struct kp_rec_sync *s = &e->of.sync;
    const struct kp_link *link;
    if (e->kind != KP_KIND_SYNC || s->result == NOT_READY) return 0; /* a query: it did not wait */
    uint32_t device = kp_context_device(t, s->context);
    struct kp_stream *stream = kp_stream_get(t->gpu, device, s->stream);
    if (s->type == STREAM_WAIT && !(stream && stream->has_work)) {
        t->gpu->count[KP_KIND_SYNC].outside++;
        return 0;
    }
    if (!kp_work_belongs(t, e, s->correlation, &link)) return 0;
    int64_t row = row_of(s, stream);
    kp_json_fmt(&t->json, "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"%s", name_of(s->type));
    kp_slice_place_write(t, device, row, e->start_ns, e->end_ns);
    args_write(t, s, link, device);
    if (s->correlation) kp_slice_arrow_write(t, 'f', "ac2g", s->correlation, device, row, e->start_ns);
    return t->json.error;
}

int kp_waits_write(struct kp_trace *t)
{
    records_sort(&t->gpu->records);
    return kp_reader_device(t->reader, t->cycle.number, sync_take, t);
}

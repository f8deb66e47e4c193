// SPDX-License-Identifier: Apache-2.0
/*
 * api_calls.c - the CUDA calls of a cycle, in order of the middle of each call
 *
 * Called by: events.c, which merges them into the events of the threads
 * Memory:    24 bytes for each chunk with calls, and about 20 KB for each open chunk. A chunk is open while it has
 *            calls before and after the current time. Lanes deliver nearly in order, so few chunks are open at once.
 *
 * A call's time comes through another clock than that of the ops around it. So its edges may stick out of its op, but
 * its middle does not. That is why the middle gives the order.
 */
#include "collector/read/api_calls.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

#define RUN_MAX (KP_CHUNK_BYTES / sizeof(struct kp_rec_api))

struct call_entry {
    uint64_t middle_ns;
    uint32_t offset, pad; /* of the record in its piece */
};
struct kp_api_calls_run {
    struct kp_api_calls_run *next; /* while unused */
    uint32_t at, n;
    struct call_entry of[RUN_MAX];
};

/* Reads the piece's next call that starts in the window. False: no more. */
static bool call_read(struct kp_api_calls *c, const uint8_t **at, const uint8_t *end, struct kp_api_call *call,
                      uint64_t *invalid)
{
    const struct kp_rec *rec;
    uint32_t bytes;
    while (*at < end && (rec = kp_file_record(at, end, &bytes))) {
        if (rec->kind != KP_KIND_API || bytes < sizeof call->api) continue;
        memcpy(&call->api, rec, sizeof call->api);
        call->api.head.size = (uint16_t)bytes; /* the size that was checked: the file may change */
        if (!kp_devclock_span(&c->r->gpus.clock, &c->r->clock, call->api.head.flags, call->api.start, call->api.end,
                              &call->start_ns, &call->end_ns)) {
            ++*invalid;
            continue;
        }
        call->middle_ns = call->start_ns + (call->end_ns - call->start_ns) / 2;
        if (call->start_ns >= c->begin_ns && call->start_ns < c->end_ns) return true;
    }
    return false;
}

/* --- the heap of chunks --- */

static bool is_earlier(const void *a, const void *b, const void *context)
{
    (void)context;
    return ((const struct kp_api_calls_lead *)a)->middle_ns < ((const struct kp_api_calls_lead *)b)->middle_ns;
}

/* Restores the heap's order after its first chunk moved to another call. */
static void first_moved(struct kp_api_calls *c)
{
    if (c->n) kp_heap_sift(c->heap, sizeof *c->heap, 0, c->n, false, is_earlier, NULL);
}

/* Adds a chunk to the heap, by the earliest middle among its calls. */
static void lead_add(struct kp_api_calls *c, uint32_t piece)
{
    const uint8_t *at = c->pieces.of[piece].at, *end = c->pieces.of[piece].end;
    uint64_t first = UINT64_MAX;
    for (struct kp_api_call call; call_read(c, &at, end, &call, &c->invalid);)
        if (call.middle_ns < first) first = call.middle_ns;
    if (first != UINT64_MAX) c->heap[c->n++] = (struct kp_api_calls_lead){.middle_ns = first, .piece = piece};
    kp_file_drop_pages(c->r, c->pieces.of[piece].at);
}

/* Sorts a chunk's calls. They are nearly sorted: a call is written when it ends, after the calls inside it. */
static void run_fill(struct kp_api_calls *c, struct kp_api_calls_run *run, uint32_t piece)
{
    const uint8_t *from = c->pieces.of[piece].at, *at = from, *end = c->pieces.of[piece].end;
    uint64_t seen = 0;
    run->at = run->n = 0;
    for (struct kp_api_call call; run->n < RUN_MAX && call_read(c, &at, end, &call, &seen);) {
        struct call_entry e = {.middle_ns = call.middle_ns, .offset = (uint32_t)(at - from) - call.api.head.size};
        uint32_t i = run->n++;
        for (; i && run->of[i - 1].middle_ns > e.middle_ns; i--) run->of[i] = run->of[i - 1];
        run->of[i] = e;
    }
}

static int lead_open(struct kp_api_calls *c, struct kp_api_calls_lead *lead)
{
    struct kp_api_calls_run *run = c->unused;
    if (run) c->unused = run->next;
    else run = kp_map_alloc(sizeof *run);
    if (!run) return -ENOMEM;
    run_fill(c, run, lead->piece);
    lead->run = run;
    return 0;
}

/* Opens chunks until the heap's first chunk has the earliest call, and copies that call. */
static int settle(struct kp_api_calls *c)
{
    while (c->n) {
        struct kp_api_calls_lead *lead = &c->heap[0];
        const struct kp_piece *piece = &c->pieces.of[lead->piece];
        if (!lead->run) {
            if (lead_open(c, lead)) return -ENOMEM;
            if (lead->run->n) lead->middle_ns = lead->run->of[0].middle_ns;
        }
        if (lead->run->at < lead->run->n) {
            const uint8_t *at = piece->at + lead->run->of[lead->run->at].offset;
            uint64_t seen = 0;
            if (call_read(c, &at, piece->end, &c->call, &seen)) return 0;
            lead->run->at = lead->run->n; /* the file changed: leave out the rest */
        }
        kp_file_drop_pages(c->r, piece->at);
        lead->run->next = c->unused, c->unused = lead->run;
        c->heap[0] = c->heap[--c->n];
        first_moved(c);
    }
    return 0;
}

int kp_api_calls_next(struct kp_api_calls *c)
{
    struct kp_api_calls_lead *lead = &c->heap[0];
    if (++lead->run->at < lead->run->n) {
        lead->middle_ns = lead->run->of[lead->run->at].middle_ns;
        first_moved(c);
    }
    return settle(c);
}

int kp_api_calls_init(struct kp_api_calls *c, struct kp_reader *r, const struct kp_rec_cycle *cycle)
{
    *c = (struct kp_api_calls){
        .r = r, .begin_ns = kp_clockmap_ns(&r->clock, cycle->begin), .end_ns = kp_clockmap_ns(&r->clock, cycle->end)};
    int rc = kp_pieces_of_device(&c->pieces, r, cycle->cycle);
    if (rc || !c->pieces.n) return rc;
    c->heap = kp_map_alloc(c->pieces.n * sizeof *c->heap);
    if (!c->heap) return -ENOMEM;
    for (uint32_t i = 0; i < c->pieces.n; i++) lead_add(c, i);
    kp_heap_make(c->heap, sizeof *c->heap, c->n, false, is_earlier, NULL);
    return settle(c);
}

void kp_api_calls_fini(struct kp_api_calls *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->heap[i].run) c->heap[i].run->next = c->unused, c->unused = c->heap[i].run;
    for (struct kp_api_calls_run *run = c->unused, *next; run; run = next) {
        next = run->next;
        kp_map_free(run, sizeof *run);
    }
    if (c->heap) kp_map_free(c->heap, c->pieces.n * sizeof *c->heap);
    kp_pieces_fini(&c->pieces);
    *c = (struct kp_api_calls){0};
}

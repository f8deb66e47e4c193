// SPDX-License-Identifier: Apache-2.0
/*
 * order.c - the pieces of a cycle, by thread and in the order of writing
 *
 * A chunk belongs to its first owner until a THREAD record names the next; each stretch is a piece. The sort by
 * (thread_no, order) puts a thread's pieces in the order in which it wrote them.
 */
#include "collector/read/order.h"

#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_sort.h"
#include "collector/base/kp_poison.h"

#define LATE_NS ((uint64_t)600 * 1000000000u) /* records that CUPTI delivers later are not looked for */

static int push(struct kp_pieces *p, const struct kp_piece *piece)
{
    if (piece->at == piece->end) return 0;
    if (!kp_map_room(&p->of, p->n, &p->cap, sizeof *p->of, 256)) return -ENOMEM;
    p->of[p->n++] = *piece;
    return 0;
}

/* Cuts one chunk at its THREAD records. */
static int cut(struct kp_pieces *p, const struct kp_chunk_head *head, uint32_t used)
{
    const uint8_t *at = (const uint8_t *)(head + 1), *end = (const uint8_t *)head + used;
    struct kp_piece piece = {
        .at = at, .order = head->order, .thread_no = head->thread_no, .tid = head->tid, .name = head->thread_name};
    uint32_t bytes;
    while (at < end) {
        const struct kp_rec *rec = kp_file_record(&at, end, &bytes);
        if (!rec) {
            p->torn++;
            break;
        }
        if (rec->kind == KP_KIND_THREAD && bytes >= sizeof(struct kp_rec_thread)) {
            const struct kp_rec_thread *t = (const void *)rec;
            piece.end = (const uint8_t *)rec;
            if (push(p, &piece)) return -ENOMEM;
            piece = (struct kp_piece){
                .at = at, .order = t->order, .thread_no = t->thread_no, .tid = t->tid, .name = t->name};
        }
    }
    piece.end = at;
    return push(p, &piece);
}

static bool is_before(const void *left, const void *right, const void *context)
{
    const struct kp_piece *a = left, *b = right;
    (void)context;
    if (a->thread_no != b->thread_no) return a->thread_no < b->thread_no;
    if (a->order != b->order) return a->order < b->order;
    return a->at < b->at;
}

/* Every chunk of one kind (for DATA and DEVICE: of the cycles from first to last). */
static int collect(struct kp_pieces *p, const struct kp_reader *r, uint32_t kind, uint32_t first, uint32_t last)
{
    *p = (struct kp_pieces){0};
    for (uint32_t i = 1; i < r->chunks; i++) {
        uint32_t used;
        struct kp_chunk_head *head = (void *)(uintptr_t)kp_file_chunk(r, i, &used);
        struct kp_piece whole;
        int rc;
        if (!head) continue;
        if (kp_load_acquire(&head->kind) != kind) { /* pairs with: chunk.c */
            kp_file_drop_pages(r, head);
            continue;
        }
        whole = (struct kp_piece){.at = (uint8_t *)(head + 1), .end = (uint8_t *)head + used, .order = head->order};
        bool is_wanted = kind == KP_CHUNK_META || (head->cycle >= first && head->cycle <= last);
        if (!is_wanted) rc = 0;
        else rc = kind == KP_CHUNK_DATA ? cut(p, head, used) : push(p, &whole);
        kp_file_drop_pages(r, head);
        if (rc) {
            kp_pieces_fini(p);
            return rc;
        }
    }
    if (p->n) kp_sort(p->of, sizeof *p->of, p->n, is_before, NULL);
    return 0;
}

int kp_pieces_make(struct kp_pieces *p, const struct kp_reader *r, uint32_t cycle)
{
    return collect(p, r, KP_CHUNK_DATA, cycle, cycle);
}

int kp_pieces_of_device(struct kp_pieces *p, struct kp_reader *r, uint32_t cycle)
{
    const struct kp_rec_cycle *c = kp_file_cycle(r, cycle);
    uint32_t last = UINT32_MAX; /* a cycle that only warms up has chunks, but no CYCLE record yet */
    uint64_t latest = c ? kp_clockmap_mono(&r->clock, c->end) + LATE_NS : 0;
    for (uint32_t i = r->cycles_n; i-- > 0 && r->cycles[i].cycle > cycle;)
        if (kp_clockmap_mono(&r->clock, r->cycles[i].warm_begin) > latest) last = r->cycles[i].cycle - 1;
    return collect(p, r, KP_CHUNK_DEVICE, cycle, last);
}

int kp_pieces_of_meta(struct kp_pieces *p, const struct kp_reader *r) { return collect(p, r, KP_CHUNK_META, 0, 0); }

void kp_pieces_fini(struct kp_pieces *p)
{
    if (p->of) kp_map_free(p->of, p->cap * sizeof *p->of);
    *p = (struct kp_pieces){0};
}

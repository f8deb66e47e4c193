// SPDX-License-Identifier: Apache-2.0
/*
 * names.c - the string table of a spool: from an id to its text in the mapping
 *
 * A cell counts only when its hash fits its bytes. The reader steps over other bytes (a torn tail, damage) cell by
 * cell, until the next good cell. A text that fills its last cell has no NUL of its own, so it
 * is copied. The next cell holds another string, perhaps one that the host writes later.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_hash.h"
#include "collector/format/kp_format.h"
#include "collector/read/reader.h"
#include "collector/base/kp_poison.h"

#define COPY_BYTES 131072u
#define HASHED_MAX \
    (4u * KP_CHUNK_BYTES) /* hashed in vain in one chunk: more is damage, cells that each claim to fill the rest */

struct kp_names_copy { /* copies of texts that have no NUL in the file */
    struct kp_names_copy *next;
    size_t used;
    char bytes[];
};

static bool grow(struct kp_names *n, uint32_t id)
{
    uint32_t cap = n->cap ? n->cap : 4096;
    struct kp_name *of;
    while (cap <= id) cap *= 2;
    if (cap == n->cap) return true;
    of = n->of ? kp_map_grow(n->of, n->cap * sizeof *of, cap * sizeof *of) : kp_map_alloc(cap * sizeof *of);
    if (!of) return false;
    n->of = of, n->cap = cap;
    return true;
}

static const char *copy(struct kp_names *n, const char *bytes, uint32_t len)
{
    struct kp_names_copy *c = n->copies;
    char *to;
    if (!c || c->used + len + 1 > COPY_BYTES - sizeof *c) {
        c = kp_map_alloc(COPY_BYTES);
        if (!c) return NULL;
        c->next = n->copies, n->copies = c;
    }
    to = c->bytes + c->used;
    memcpy(to, bytes, len);
    to[len] = 0;
    c->used += len + 1;
    return to;
}

static int take(struct kp_names *n, const struct kp_str *s, uint32_t room)
{
    const char *text = s->bytes;
    uint32_t len = s->len;
    size_t first;
    bool fills_cell = (offsetof(struct kp_str, bytes) + len) % KP_STR_CELL == 0;
    if (!grow(n, s->id)) return -ENOMEM;
    if (n->of[s->id].name) return 0;
    if (fills_cell || len >= room || text[len]) text = copy(n, text, len);
    if (!text) return -ENOMEM;
    first = strnlen(text, len);
    n->of[s->id].overload = first < len ? text + first + 1 : "";
    n->of[s->id].name = text;
    return 0;
}

int kp_names_add_chunk(struct kp_names *n, const uint8_t *chunk, uint32_t bytes, uint32_t limit)
{
    const uint32_t head = offsetof(struct kp_str, bytes);
    uint32_t at = sizeof(struct kp_chunk_head), room, in_vain = 0;
    while (at + KP_STR_CELL <= bytes && in_vain < HASHED_MAX) {
        const struct kp_str *s = (const void *)(chunk + at);
        at += KP_STR_CELL;
        /* pairs with: strings.c, which stores the magic last */
        if (kp_load_acquire(&s->magic) != KP_STR_MAGIC) continue;
        room = bytes - (at - KP_STR_CELL) - head;
        if (!s->id || s->id >= limit || s->len > room) continue;
        if (kp_hash64(s->bytes, s->len) != s->hash) {
            in_vain += s->len;
            continue;
        }
        if (take(n, s, room)) return -ENOMEM;
        if (s->len > KP_STR_CELL - head)
            at += (s->len - (KP_STR_CELL - head) + KP_STR_CELL - 1) / KP_STR_CELL * KP_STR_CELL;
    }
    return 0;
}

void kp_names_fini(struct kp_names *n)
{
    while (n->copies) {
        struct kp_names_copy *next = n->copies->next;
        kp_map_free(n->copies, COPY_BYTES);
        n->copies = next;
    }
    if (n->of) kp_map_free(n->of, n->cap * sizeof *n->of);
    *n = (struct kp_names){0};
}

const char *kp_reader_name(const struct kp_reader *r, uint32_t id)
{
    const struct kp_name *n = kp_names_get(&r->names, id);
    return n ? n->name : "";
}

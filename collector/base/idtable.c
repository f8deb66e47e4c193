// SPDX-License-Identifier: Apache-2.0
/*
 * idtable.c - a hash table from a 64-bit id to an item of the caller
 *
 * Called by: the reader of spools and the writer of traces, off the hot path
 * Memory:    mapped, doubled when half of it is used
 * On fail:   NULL; the table stays as it was
 */
#include "collector/base/kp_idtable.h"

#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

enum { FIRST = 256 };

static uint64_t *place_at(const struct kp_idtable *t, uint64_t at)
{
    return (void *)((uint8_t *)t->items + (at & (t->cap - 1)) * t->item_bytes);
}

static uint64_t home_of(uint64_t id) { return id * UINT64_C(0x9e3779b97f4a7c15) >> 32; }

/* The place that has this id, or the free place for it. */
static uint64_t *place_find(const struct kp_idtable *t, uint64_t id)
{
    for (uint64_t at = home_of(id);; at++) {
        uint64_t *place = place_at(t, at);
        if (!*place || *place == id) return place;
    }
}

void kp_idtable_prefetch(const struct kp_idtable *t, uint64_t id)
{
    if (t->cap) __builtin_prefetch(place_at(t, home_of(id)));
}

void *kp_idtable_find(const struct kp_idtable *t, uint64_t id)
{
    uint64_t *place = t->cap && id ? place_find(t, id) : NULL;
    return place && *place ? place : NULL;
}

static int grow(struct kp_idtable *t)
{
    struct kp_idtable wider = *t;
    wider.cap = t->cap ? t->cap * 2 : FIRST;
    wider.items = kp_map_alloc((size_t)wider.cap * t->item_bytes);
    if (!wider.items) return -1;
    for (uint32_t i = 0; i < t->cap; i++) {
        const uint64_t *item = (const void *)((const uint8_t *)t->items + (size_t)i * t->item_bytes);
        if (*item) memcpy(place_find(&wider, *item), item, t->item_bytes);
    }
    if (t->items) kp_map_free(t->items, (size_t)t->cap * t->item_bytes);
    *t = wider;
    return 0;
}

void *kp_idtable_add(struct kp_idtable *t, uint64_t id)
{
    if (t->n >= t->cap / 2 && grow(t)) return NULL;
    uint64_t *place = place_find(t, id);
    t->n += !*place;
    *place = id;
    return place;
}

void kp_idtable_fini(struct kp_idtable *t)
{
    if (t->items) kp_map_free(t->items, (size_t)t->cap * t->item_bytes);
    t->items = NULL;
    t->n = t->cap = 0;
}

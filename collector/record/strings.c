// SPDX-License-Identifier: Apache-2.0
/*
 * strings.c - gives each distinct text an id, and writes the text to the file before any caller sees the id
 *
 * Called by: any host thread inside a hook
 * Owns:      hash tables (addresses only until used) and the current chunk of strings
 * Locks:     none. A thread writes the text to the file, then claims a slot by one compare-and-swap. A thread that
 *            loses to the same text uses the winner's id. Its own cell stays as a harmless duplicate.
 * On fail:   id 0 ("name lost"), counted
 * Safe in:   signal handlers yes; after fork no (kp_string_forget first)
 *
 * When a table is three quarters full, the next, four times as large, takes the new names: a start-up with its imports
 * may fill the first, and the names of the program itself come after it. If two threads write a name at the moment of
 * the change, it may get two ids, which is harmless.
 *
 *   slot = hash's upper half << 32 | cell, or 0 when empty       cell = offset in the file / KP_STR_CELL
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_hash.h"
#include "collector/base/kp_poison.h"

#define KP_STRING_TABLES 3u
#define KP_STRING_SLOTS 262144u /* of the first table */
#define KP_STRING_TIMES 4u      /* each is so many times larger than the one before */
#define KP_STRING_PROBES 512u
#define KP_STRING_BYTES 32000u /* a longer text is cut */

struct names_table {
    _Atomic uint64_t *_Atomic slots;
    _Atomic uint32_t count;
};
static struct names_table tables[KP_STRING_TABLES];
static struct kp_cells cells = {.kind = KP_CHUNK_STRINGS};
static _Atomic uint32_t id_last;

/* ---- cells ---- */

static inline struct kp_str *cell_get(uint32_t cell) { return kp_spool_cell(cell); }

static uint32_t cell_write(const char *bytes, uint32_t len, uint64_t hash)
{
    uint32_t size = (uint32_t)(offsetof(struct kp_str, bytes) + len + KP_STR_CELL - 1) & ~(KP_STR_CELL - 1);
    uint32_t cell = kp_cells_cut(&cells, size);
    if (cell == 0) return 0;
    struct kp_str *s = cell_get(cell);
    s->id = kp_add_relaxed(&id_last, 1) + 1;
    s->hash = hash;
    s->len = len;
    memcpy(s->bytes, bytes, len);
    /* pairs with: the readers' walk of string chunks */
    kp_store_release(&s->magic, KP_STR_MAGIC);
    return cell;
}

/* ---- table ---- */

static uint32_t slot_match(uint64_t slot, const char *bytes, uint32_t len, uint64_t hash)
{
    if (slot >> 32 != hash >> 32) return 0;
    const struct kp_str *s = cell_get((uint32_t)slot);
    return s->hash == hash && s->len == len && memcmp(s->bytes, bytes, len) == 0 ? s->id : 0;
}

static uint32_t name_lost(enum kp_loss why)
{
    kp_loss_count(0, why);
    return 0;
}

static uint32_t table_size(uint32_t number)
{
    uint32_t size = KP_STRING_SLOTS;
    while (number--) size *= KP_STRING_TIMES;
    return size;
}

/* Beyond three quarters probing gets long. */
static bool is_full(uint32_t number) { return kp_load_relaxed(&tables[number].count) >= table_size(number) / 4 * 3; }

/* NULL: no memory. */
static KP_COLD _Atomic uint64_t *table_make(uint32_t number)
{
    const size_t bytes = table_size(number) * sizeof(uint64_t);
    _Atomic uint64_t *slots = kp_map_alloc(bytes), *none = NULL;
    if (slots && !kp_cas_acq_rel(&tables[number].slots, &none, slots)) { /* pairs with: strings.c:kp_name_intern */
        kp_map_free((void *)slots, bytes);
        slots = none;
    }
    return slots;
}

static KP_COLD uint32_t table_add(uint32_t number, _Atomic uint64_t *slots, const char *bytes, uint32_t len,
                                  uint64_t hash)
{
    const uint32_t mask = table_size(number) - 1;
    uint32_t cell = cell_write(bytes, len, hash), at = (uint32_t)hash & mask;
    if (cell == 0) return name_lost(kp_load_relaxed(&kp_spool.grow_error));
    for (uint32_t probe = 0; probe < KP_STRING_PROBES; probe++, at = (at + 1) & mask) {
        uint64_t seen = 0;
        /* pairs with: strings.c:table_find */
        if (kp_cas_acq_rel(&slots[at], &seen, (hash >> 32) << 32 | cell)) {
            kp_add_relaxed(&tables[number].count, 1);
            return cell_get(cell)->id;
        }
        uint32_t id = slot_match(seen, bytes, len, hash);
        if (id) return id;
    }
    return name_lost(KP_LOSS_NAME);
}

/* Returns the id, or 0; *has_room: a free slot was met. */
static inline uint32_t table_find(const _Atomic uint64_t *slots, uint32_t mask, const char *bytes, uint32_t len,
                                  uint64_t hash, bool *has_room)
{
    uint32_t at = (uint32_t)hash & mask;
    for (uint32_t probe = 0; probe < KP_STRING_PROBES; probe++, at = (at + 1) & mask) {
        uint64_t slot = kp_load_acquire(&slots[at]); /* pairs with: strings.c:table_add */
        *has_room = slot == 0;
        if (slot == 0) return 0;
        uint32_t id = slot_match(slot, bytes, len, hash);
        if (id) return id;
    }
    return 0;
}

uint32_t kp_name_intern(struct kp_thread *t, const char *bytes, uint32_t len)
{
    (void)t;
    if (len > KP_STRING_BYTES) len = KP_STRING_BYTES;
    uint64_t hash = kp_hash64(bytes, len);
    for (uint32_t number = 0; number < KP_STRING_TABLES; number++) {
        /* pairs with: strings.c:kp_string_open, table_make */
        _Atomic uint64_t *slots = kp_load_acquire(&tables[number].slots);
        bool has_room = false;
        if (slots == NULL && number == 0) return 0; /* no file */
        if (slots == NULL) slots = table_make(number);
        if (slots == NULL) break;
        uint32_t id = table_find(slots, table_size(number) - 1, bytes, len, hash, &has_room);
        if (id) return id;
        if (has_room && !is_full(number)) return table_add(number, slots, bytes, len, hash);
    }
    return name_lost(KP_LOSS_NAME);
}

/* ---- the per-thread cache ---- */

void kp_name_cache(struct kp_thread *t, const void *key, uint32_t id)
{
    if (t->names == NULL) t->names = kp_arena_alloc_line(sizeof *t->names); /* first touch of this thread */
    if (t->names == NULL || id == 0) return;
    uint32_t i = kp_name_cache_index(key);
    t->names->slots[i].id = 0; /* no name while half done: a signal handler may abandon the hook here (longjmp.c) */
    kp_signal_fence();
    t->names->slots[i].key = key;
    kp_signal_fence();
    t->names->slots[i].id = id;
}

/* ---- making ---- */

int kp_string_open(void) { return table_make(0) ? 0 : -ENOMEM; /* pairs with: strings.c:kp_name_intern */ }

void kp_string_forget(void)
{
    for (uint32_t number = 0; number < KP_STRING_TABLES; number++) {
        kp_map_free((void *)kp_load_relaxed(&tables[number].slots), table_size(number) * sizeof(uint64_t));
        kp_store_relaxed(&tables[number].slots, NULL);
        kp_store_relaxed(&tables[number].count, 0);
    }
    kp_cells_forget(&cells);
    kp_store_relaxed(&id_last, 0);
}

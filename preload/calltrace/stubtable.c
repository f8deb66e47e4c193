// SPDX-License-Identifier: Apache-2.0
/*
 * stubtable.c - the rows: which entry stub stands for which function
 *
 * Called by: calltrace_source.c (get), one thread at a time; any thread (stub_of, row_of)
 * Owns:      the rows, never freed: a slot anywhere may hold a row's stub
 * Locks:     none. Memory: 1.2 MB, mapped with the first row; names in the arena.
 * On fail:   NULL: no row left
 * Safe in:   signal handlers yes, except kp_calltrace_row_get
 */
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_hash.h"
#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

enum { BUCKETS = KP_CALLTRACE_ROWS * 2, STUB_BYTES = 1 << KP_CALLTRACE_STUB_SHIFT };

struct kp_calltrace_row *kp_calltrace_rows;
uintptr_t kp_calltrace_row_base;
static struct table {
    struct kp_calltrace_row rows[KP_CALLTRACE_ROWS];
    /* a row's key: its function, or its unbound slot. The key stays when the slot is bound */
    uintptr_t keys[KP_CALLTRACE_ROWS];
    uint16_t buckets[BUCKETS]; /* number of a row + 1 */
} * table;
static uint32_t rows_n;

static bool table_make(void)
{
    if (!table) table = kp_map_alloc(sizeof *table);
    kp_calltrace_rows = table ? table->rows : NULL;
    kp_calltrace_row_base = (uintptr_t)kp_calltrace_rows - (((uintptr_t)&kp_calltrace_stubs + KP_CALLTRACE_STUB_CALLED)
                                                            << (KP_CALLTRACE_ROW_SHIFT - KP_CALLTRACE_STUB_SHIFT));
    return table != NULL;
}

static uint32_t hash_of(const char *name, uintptr_t where)
{
    const struct {
        uint64_t name, where;
    } key = {kp_hash64(name, strlen(name)), where};
    return (uint32_t)kp_hash64(&key, sizeof key) % BUCKETS;
}

static struct kp_calltrace_row *find(const char *name, uintptr_t key, uint32_t *at)
{
    for (*at = hash_of(name, key); table->buckets[*at]; *at = (*at + 1) % BUCKETS) {
        const uint32_t number = table->buckets[*at] - 1u;
        if (table->keys[number] == key && strcmp(kp_calltrace_rows[number].name, name) == 0)
            return &kp_calltrace_rows[number];
    }
    return NULL;
}

struct kp_calltrace_row *kp_calltrace_row_get(const char *name, const char *object, uintptr_t target,
                                              uintptr_t lazy_word, enum kp_calltrace_does does)
{
    uint32_t at;
    const uintptr_t key = lazy_word ? lazy_word : target;
    if (!table_make()) return NULL;
    struct kp_calltrace_row *row = find(name, key, &at);
    const size_t bytes = strlen(name) + 1;
    if (row) { /* a library was loaded again at the same address, and its slots are unbound again */
        kp_store_relaxed(&row->target, target);
        kp_store_relaxed(&row->word, lazy_word);
        return row;
    }
    char *copy = rows_n < KP_CALLTRACE_ROWS ? kp_arena_alloc(bytes) : NULL;
    if (!copy) return NULL;
    memcpy(copy, name, bytes);
    table->keys[rows_n] = key;
    row = &kp_calltrace_rows[rows_n++];
    row->name = copy;
    row->object = object;
    row->does = (uint8_t)does;
    kp_store_relaxed(&row->target, target);
    kp_store_relaxed(&row->word, lazy_word);
    table->buckets[at] = (uint16_t)rows_n;
    return row;
}

uint32_t kp_calltrace_rows_used(void) { return rows_n; }

uintptr_t kp_calltrace_stub_of(const struct kp_calltrace_row *row)
{
    return (uintptr_t)&kp_calltrace_stubs + (uintptr_t)(row - kp_calltrace_rows) * STUB_BYTES;
}

struct kp_calltrace_row *kp_calltrace_row_of(uintptr_t stub)
{
    const uintptr_t at = stub - (uintptr_t)&kp_calltrace_stubs;
    return at < (uintptr_t)KP_CALLTRACE_ROWS * STUB_BYTES && at % STUB_BYTES == 0 ? &kp_calltrace_rows[at / STUB_BYTES]
                                                                                  : NULL;
}

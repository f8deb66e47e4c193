// SPDX-License-Identifier: Apache-2.0
/*
 * openwork.c - counts which collectives of torch.distributed have begun and ended, also while nothing records
 *
 * Called by: ops.c, inside a hook, at both ends of a range of the program or of torch.distributed; where.c, hangwatch.c
 * Owns:      a table of names; a row is claimed by a swap of its key, and is never freed
 * Locks:     none. Memory: none.
 * On fail:   a name for which the table has no row is not counted
 * Safe in:   signal handlers yes; after fork yes (a child goes on with its parent's counts)
 *
 * torch.distributed makes a range of the program around each collective, from the call until the work has ended, which
 * may be on another thread.
 */
#include "preload/torch/openwork.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_hash.h"
#include "preload/torch/torch.h"
#include "preload/torch_bridge.h"
#include "collector/base/kp_poison.h"

enum { ROWS = 64, PREFIX = 5 };

static struct openwork {
    _Atomic uint64_t key;      /* 0: free */
    _Atomic uint32_t is_named; /* `name` is whole */
    char name[KP_COLLECTIVE_NAME];
    _Atomic uint64_t begun, ended, since_ms;
} rows[ROWS];

static _Atomic uint32_t open_count;
static _Atomic uint64_t open_ns; /* less the begin of those that are open */

KP_HOT_DATA _Atomic uint32_t kp_torch_watches;

void kp_torch_collectives_watch(void) { kp_store_relaxed(&kp_torch_watches, 1); }

static bool is_collective(const char *name)
{
#define KP_BACKEND(kind, name) name ":",
    static const char backends[][PREFIX + 1] = {
#include "collector/base/backends.def"
    };
#undef KP_BACKEND
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strncmp(name, backends[i], strlen(backends[i])) == 0) return true;
    return false;
}

static struct openwork *row_of(const char *name, size_t bytes)
{
    const uint64_t key = kp_hash64(name, bytes) | 1;
    for (uint32_t i = 0; i < ROWS; i++) {
        struct openwork *const r = &rows[(key + i) % ROWS];
        uint64_t seen = kp_load_relaxed(&r->key);
        if (seen == key) return r;
        if (seen) continue;
        if (kp_cas_acq_rel(&r->key, &seen, key)) {
            memcpy(r->name, name, bytes < sizeof r->name ? bytes : sizeof r->name - 1);
            kp_store_release(&r->is_named, 1); /* pairs with: kp_torch_collectives */
            return r;
        }
        if (seen == key) return r;
    }
    return NULL;
}

static struct openwork *row_find(const uint8_t *rf)
{
    const char *const name = kp_torch.api.name(rf);
    return name && is_collective(name) ? row_of(name, strlen(name)) : NULL;
}

void kp_torch_collective_begin(const uint8_t *rf)
{
    struct openwork *const r = row_find(rf);
    if (!r) return;
    kp_store_relaxed(&r->since_ms, kp_clock_ms());
    kp_add_relaxed(&r->begun, 1);
    if (kp_add_relaxed(&open_count, 1) == 0) kp_add_relaxed(&open_ns, -kp_clock_ns(CLOCK_MONOTONIC));
}

void kp_torch_collective_end(const uint8_t *rf)
{
    struct openwork *const r = row_find(rf);
    if (!r) return;
    kp_add_relaxed(&r->ended, 1);
    if (kp_add_relaxed(&open_count, (uint32_t)-1) == 1) kp_add_relaxed(&open_ns, kp_clock_ns(CLOCK_MONOTONIC));
}

uint64_t kp_torch_collectives_ns(void)
{
    const bool is_open = kp_load_relaxed(&open_count);
    return kp_load_relaxed(&open_ns) + (is_open ? kp_clock_ns(CLOCK_MONOTONIC) : 0);
}

uint32_t kp_torch_collectives(struct kp_collective_count *out, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ROWS && count < most; i++) {
        if (!kp_load_acquire(&rows[i].is_named)) continue; /* pairs with: row_of */
        struct kp_collective_count *const c = &out[count++];
        memcpy(c->name, rows[i].name, sizeof c->name);
        c->ended = kp_load_relaxed(&rows[i].ended); /* before `begun`: one that ends meanwhile is not in the negative */
        c->begun = kp_load_relaxed(&rows[i].begun);
        c->since_ms = kp_load_relaxed(&rows[i].since_ms);
    }
    return count;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * stack_ids.c - the calling thread's native stack as one id; each frame is written to the spool once
 *
 * Called by: sources, inside a hook (hot)
 * Owns:      struct seen, one a thread: stacks met lately; a table of all frames written so far
 * Locks:     none. Memory: 92 KB of address space a thread, 16 MB of it for the table.
 * On fail:   0, or the stack without its inner frames: no room for more frames in table or file
 * Safe in:   signal handlers yes; after fork no (kp_unwind_begin_in_child first)
 *
 * A stack is the id of its innermost frame, and each frame names its caller. So stacks share their common frames. All
 * return addresses are read each time. A stack that this thread met lately is found by their hash. Another stack is
 * looked up from the outermost frame on: by address among the frames that this thread met lately, else by module and
 * offset in the table that all threads share. Loading a library again adds nothing to that table.
 */
#include "collector/base/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/record/kp_record.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/unwind/codemap.h"
#include "preload/unwind/trail.h"
#include "collector/base/kp_poison.h"

enum { SEEN = 4096, FRAMES = 1u << 20, FRAMES_MOST = FRAMES / 4 * 3, PROBES = 64 };

#define FRAME_KEY UINT64_C(0x2545f4914f6cdd1d)

struct met {
    uint64_t key;
    uint32_t id;
};
struct seen {
    /* stacks by all their addresses, frames by theirs and what is around; both of a generation of modules */
    struct met of[SEEN];
    uintptr_t frames[KP_UNWIND_DEPTH];
    struct kp_trail trail;
};

/*
 * By hash of a frame (module, place in it), what is around it and the file (a forked child has another): a library that
 * is loaded again where it was has its frames already. A key never changes; the id is stored behind it.
 */
struct frames {
    _Atomic uint64_t key[FRAMES];
    _Atomic uint32_t id[FRAMES];
};
static struct frames *_Atomic frames;
static _Atomic uint32_t frames_n;

static inline uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

static struct frames *table_get(void)
{
    struct frames *table = kp_load_acquire(&frames), *none = NULL; /* pairs with: below */
    if (table) return table;
    table = kp_map_alloc(sizeof *table);
    if (table && !kp_cas_acq_rel(&frames, &none, table)) { /* pairs with: above */
        kp_map_free(table, sizeof *table);
        table = none;
    }
    return table;
}

/* If two threads write a frame at the same time, it is in the file twice, which is harmless. */
static uint32_t frame_keep(struct frames *table, uint32_t module, uint64_t offset, uint32_t around)
{
    const uint64_t key = mix(mix(mix(FRAME_KEY + kp_unwind_file(), module), offset), around) | 1;
    uint32_t at = (uint32_t)(key >> 40) & (FRAMES - 1), free_at = FRAMES;
    for (uint32_t i = 0; i < PROBES && free_at == FRAMES; i++, at = (at + 1) & (FRAMES - 1)) {
        const uint64_t seen = kp_load_acquire(&table->key[at]);                /* pairs with: below */
        const uint32_t id = seen == key ? kp_load_acquire(&table->id[at]) : 0; /* pairs with: below */
        if (id) return id;
        if (seen == 0) free_at = at;
    }
    const uint32_t id = kp_frame_put(module, offset + 1, around);
    uint64_t empty = 0;
    if (!id || free_at == FRAMES || kp_load_relaxed(&frames_n) >= FRAMES_MOST) return id;
    if (kp_cas_acq_rel(&table->key[free_at], &empty, key)) { /* pairs with: above */
        kp_add_relaxed(&frames_n, 1);
        kp_store_release(&table->id[free_at], id); /* pairs with: above */
    }
    return id;
}

/* A signal handler may jump out in the middle: the entry then has no id. */
static void met_keep(struct met *met, uint64_t key, uint32_t id)
{
    met->id = 0;
    kp_signal_fence();
    met->key = key;
    kp_signal_fence();
    met->id = id;
}

/* A frame that this thread met lately is found by its address, without looking up the module. */
static uint32_t frame_id(struct kp_thread *t, struct seen *s, struct frames *table, uint32_t generation, uintptr_t pc,
                         uint32_t around)
{
    const uint64_t key = mix(mix(generation + UINT64_C(1), pc), around);
    struct met *met = &s->of[key % SEEN];
    uint64_t offset;
    if (__builtin_expect(met->key == key && met->id, 1)) return met->id;
    const uint32_t module = kp_unwind_module_find(t, pc - 1, &offset);
    const uint32_t id = frame_keep(table, module, offset, around);
    if (id) met_keep(met, key, id);
    return id;
}

static uint32_t stack_put(struct kp_thread *t, struct seen *s, int n)
{
    struct frames *table = table_get();
    uint32_t id = 0;
    const uint32_t generation = kp_unwind_generation();
    while (table && n-- > 0) {
        const uint32_t inner = frame_id(t, s, table, generation, s->frames[n], id);
        if (!inner) return id;
        id = inner;
    }
    return id;
}

/* The fresh frames go behind those that stay; what lies inside this library shares the id of its caller. 0: no room for
 * a frame. */
static uint32_t trail_put(struct kp_thread *t, struct seen *s)
{
    struct kp_trail *trail = &s->trail;
    struct frames *table = table_get();
    uint32_t id = trail->n ? trail->of[trail->n - 1].id : 0, ours = 0;
    while (ours < trail->fresh_n && kp_unwind_is_ours(trail->fresh[ours].pc)) ours++;
    while (table && trail->fresh_n-- > 0) {
        struct kp_trail_frame *f = &trail->of[trail->n];
        *f = trail->fresh[trail->fresh_n];
        f->id = trail->fresh_n >= ours ? frame_id(t, s, table, trail->generation, f->pc, id) : id;
        if (!f->id) break;
        id = f->id;
        kp_signal_fence(); /* a signal handler may jump out of here: counted entries are complete */
        trail->n++;
    }
    return trail->fresh_n == UINT32_MAX ? id : 0;
}

uint32_t kp_unwind_stack(struct kp_thread *t)
{
    struct seen *s = t->source_state[KP_STATE_NATIVE];
    if (!s) t->source_state[KP_STATE_NATIVE] = s = kp_arena_alloc(sizeof *s);
    if (!s || !table_get()) kp_loss_count(KP_KIND_FRAME, KP_LOSS_NO_SLOT);
    if (!s) return 0;
    if (kp_unwind_trail_walk(&s->trail)) {
        const uint32_t known = trail_put(t, s);
        if (known) return known;
    }
    s->trail.n = 0;
    const int n = kp_unwind_walk(s->frames, KP_UNWIND_DEPTH);
    uint64_t key = kp_unwind_generation() + UINT64_C(1);
    for (int i = 0; i < n; i++) key = mix(key, s->frames[i]);
    if (!n) return 0;
    struct met *met = &s->of[key % SEEN];
    if (__builtin_expect(met->key != key || !met->id, 0)) {
        const uint32_t id = stack_put(t, s, n);
        if (!id) return 0;
        met_keep(met, key, id);
    }
    return met->id;
}

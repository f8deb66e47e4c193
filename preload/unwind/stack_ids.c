// SPDX-License-Identifier: Apache-2.0
/*
 * stack_ids.c - the calling thread's native stack as one id; each frame is written to the spool once
 *
 * Called by: sources, inside a hook (hot)
 * Owns:      struct seen, one a thread: stacks met lately; tables of all frames written so far
 * Locks:     none. Memory: 180 KB of address space a thread; 1 MB for the first table, 8, 64 and 512 for the others.
 * On fail:   0, or the stack without its inner frames: no room for more frames in table or file
 * Safe in:   signal handlers yes; after fork no (kp_unwind_forget first)
 *
 * A stack is the id of its innermost frame, and each frame names its caller. So stacks share their common frames. All
 * return addresses are read each time. A stack that this thread met lately is found by their hash. Another stack is
 * looked up from the outermost frame on: by address among the frames that this thread met lately, else by module and
 * offset in the table that all threads share. Loading a library again adds nothing to that table.
 */
#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/record/kp_record.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/unwind/codemap.h"
#include "preload/unwind/trail.h"
#include "collector/base/kp_poison.h"

enum { SEEN = 4096, TABLES = 4, FRAMES_FIRST = 1u << 16, FRAMES_TIMES = 8, PROBES = 64 };
#define LINE (64u / (uint32_t)sizeof(struct kept_frame))

#define FRAME_KEY UINT64_C(0x2545f4914f6cdd1d)
#define PYTHON_KEY UINT64_C(0x6a09e667f3bcc909)

struct met {
    uint64_t key;
    uint32_t id;
};
struct seen {
    /* stacks by all their addresses, frames by theirs and what is around; both of a generation of modules */
    struct met of[SEEN];
    uintptr_t frames[KP_UNWIND_DEPTH];
    bool is_interrupted; /* by a signal: the last stack */
    bool is_deep;        /* the last stack was deeper than a trail */
    struct kp_trail trail;
};

/*
 * By hash of a frame (module, place in it), what is around it and the file (a forked child has another): a library that
 * is loaded again where it was has its frames already. A key never changes; the id is stored behind it.
 */
struct kept_frame {
    _Atomic uint64_t key;
    _Atomic uint32_t id;
};
/* When a table is three quarters full, the next takes the new frames. `import torch` has 2.7 million. */
static struct kept_frame *_Atomic tables[TABLES];
static _Atomic uint32_t frames_n[TABLES];

static inline uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 29;
}

static uint32_t table_size(uint32_t number)
{
    uint32_t size = FRAMES_FIRST;
    while (number--) size *= FRAMES_TIMES;
    return size;
}

static struct kept_frame *table_get(uint32_t number)
{
    struct kept_frame *table = kp_load_acquire(&tables[number]), *none = NULL; /* pairs with: below */
    if (table) return table;
    const size_t bytes = table_size(number) * sizeof *table;
    table = number ? kp_map_alloc_huge(bytes) : kp_map_alloc(bytes);
    if (table && !kp_cas_acq_rel(&tables[number], &none, table)) { /* pairs with: above */
        kp_map_free(table, bytes);
        table = none;
    }
    return table;
}

static bool is_full(uint32_t number) { return kp_load_relaxed(&frames_n[number]) >= table_size(number) / 4 * 3; }

/* A search begins with a cache line, and most end in it. */
static uint32_t place_first(uint64_t key, uint32_t size) { return (uint32_t)(key >> 38) & (size - 1) & ~(LINE - 1); }

/* A new frame misses in each table, so the memory of all is asked for at once. */
static void tables_prefetch(uint64_t key)
{
    for (uint32_t number = 0; number < TABLES; number++) {
        const struct kept_frame *table = kp_load_relaxed(&tables[number]);
        if (table) __builtin_prefetch(&table[place_first(key, table_size(number))]);
    }
}

/* The frame's id, or 0 and in *free_at the place for it, if there is one. */
static uint32_t table_find(struct kept_frame *table, uint32_t size, uint64_t key, struct kept_frame **free_at)
{
    uint32_t at = place_first(key, size);
    *free_at = NULL;
    for (uint32_t i = 0; i < PROBES; i++, at = (at + 1) & (size - 1)) {
        const uint64_t seen = kp_load_acquire(&table[at].key);                /* pairs with: below */
        const uint32_t id = seen == key ? kp_load_acquire(&table[at].id) : 0; /* pairs with: below */
        if (id) return id;
        if (seen) continue;
        *free_at = &table[at];
        break;
    }
    return 0;
}

/* Finds a frame in the tables, or puts it into the file and there. If two threads write a frame at the same time, it is
 * in the file twice, which is harmless. */
static uint32_t frame_keep(uint64_t key, uint32_t module, uint64_t offset, uint32_t around, bool is_python)
{
    struct kept_frame *free_at = NULL, *table;
    uint32_t number = 0;
    tables_prefetch(key);
    for (; number < TABLES && (table = table_get(number)); number++) {
        const uint32_t id = table_find(table, table_size(number), key, &free_at);
        if (id) return id;
        if (!is_full(number)) break;
        free_at = NULL;
    }
    const uint32_t id =
        is_python ? kp_frame_put_python((uint32_t)offset, around) : kp_frame_put(module, offset + 1, around);
    uint64_t empty = 0;
    if (id && free_at && kp_cas_acq_rel(&free_at->key, &empty, key)) { /* pairs with: above */
        kp_add_relaxed(&frames_n[number], 1);
        kp_store_release(&free_at->id, id); /* pairs with: above */
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
static uint32_t frame_id(struct kp_thread *t, struct seen *s, uint32_t generation, uintptr_t pc, uint32_t around)
{
    const uint64_t key = mix(mix(generation + UINT64_C(1), pc), around);
    struct met *met = &s->of[key % SEEN];
    uint64_t offset;
    if (__builtin_expect(met->key == key && met->id, 1)) return met->id;
    const uint32_t module = kp_unwind_module_find(t, pc - 1, &offset);
    const uint64_t of = mix(mix(mix(FRAME_KEY + kp_unwind_file(), module), offset), around) | 1;
    const uint32_t id = frame_keep(of, module, offset, around, false);
    if (id) met_keep(met, key, id);
    return id;
}

uint32_t kp_unwind_stack_with(struct kp_thread *t, uint32_t native, uint32_t python)
{
    struct seen *s = t->source_state[KP_STATE_NATIVE];
    if (!s || !native || !table_get(0)) return native;
    const uint64_t key = mix(mix(PYTHON_KEY + kp_unwind_file(), python), native) | 1;
    struct met *met = &s->of[key % SEEN];
    if (__builtin_expect(met->key == key && met->id, 1)) return met->id;
    const uint32_t id = frame_keep(key, 0, python, native, true);
    if (id) met_keep(met, key, id);
    return id ? id : native;
}

bool kp_unwind_was_interrupted(const struct kp_thread *t)
{
    const struct seen *s = t->source_state[KP_STATE_NATIVE];
    return s && s->is_interrupted;
}

static uint32_t stack_put(struct kp_thread *t, struct seen *s, int n)
{
    const bool has_table = table_get(0) != NULL;
    uint32_t id = 0;
    const uint32_t generation = kp_unwind_generation();
    while (has_table && n-- > 0) {
        const uint32_t inner = frame_id(t, s, generation, s->frames[n], id);
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
    const bool has_table = table_get(0) != NULL;
    uint32_t id = trail->n ? trail->of[trail->n - 1].id : 0, ours = 0;
    while (ours < trail->fresh_n && kp_unwind_is_ours(trail->fresh[ours].frame.pc)) ours++;
    while (has_table && trail->fresh_n-- > 0) {
        struct kp_trail_frame *f = kp_unwind_trail_put(trail, &trail->fresh[trail->fresh_n]);
        f->id = trail->fresh_n >= ours ? frame_id(t, s, trail->generation, f->pc, id) : id;
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
    if (!s || !table_get(0)) kp_loss_count(KP_KIND_FRAME, KP_LOSS_NO_SLOT);
    if (!s) return 0;
    s->is_interrupted = false;
    if (!s->is_deep && kp_unwind_trail_walk(&s->trail)) {
        const uint32_t known = trail_put(t, s);
        if (known) return known;
    }
    s->trail.n = 0;
    int n = kp_unwind_walk(s->frames, KP_UNWIND_DEPTH);
    s->is_deep = n == KP_UNWIND_DEPTH;
    if (s->is_deep) n = KP_UNWIND_CUT;
    s->is_interrupted = kp_unwind_walk_met_signal();
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

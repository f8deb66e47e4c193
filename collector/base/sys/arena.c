// SPDX-License-Identifier: Apache-2.0
/*
 * arena.c - all memory of the library: mapped pages, never malloc
 *
 * Called by: hooks on a thread's first record, boot, writer and exporter threads, the CLI
 * Owns:      the current block of the arena. Full blocks stay mapped.
 * Locks:     none. An atomic add cuts a piece off a block, a compare-and-swap replaces a full block.
 * On fail:   returns NULL; the caller does without
 * Safe in:   signal handlers no; after fork yes (a child goes on in its own copy)
 */
#include "collector/base/sys/kp_arena.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_hot.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_ARENA_BLOCK ((size_t)1 << 20)
#define KP_ARENA_BIG (KP_ARENA_BLOCK / 4) /* a piece of at least this size gets its own mapping */

struct block {
    _Atomic size_t used; /* may run past the end: then the caller makes the next block */
    uint8_t pad[56];
    uint8_t room[];
};

static struct block *_Atomic current;

static size_t page_round(size_t bytes)
{
    static _Atomic size_t page;
    size_t p = kp_load_relaxed(&page);
    if (p == 0) kp_store_relaxed(&page, p = (size_t)sysconf(_SC_PAGESIZE));
    return bytes > SIZE_MAX - p ? 0 : (bytes + p - 1) & ~(p - 1);
}

/* ---- the list of large mappings; those beyond its end count as the host's ---- */

enum { LARGE = 65536 };
static struct {
    _Atomic uintptr_t from; /* 0: free */
    _Atomic size_t bytes;
} large[KP_MAP_LARGE_MAX];

static void large_note(const void *p, size_t bytes)
{
    for (uint32_t i = 0; bytes >= LARGE && i < KP_MAP_LARGE_MAX; i++) {
        uintptr_t none = 0;
        if (kp_load_relaxed(&large[i].from) || !kp_cas_acq_rel(&large[i].from, &none, (uintptr_t)p))
            continue; /* pairs with: itself */
        kp_store_relaxed(&large[i].bytes, bytes);
        return;
    }
}

static void large_forget(const void *p, size_t bytes)
{
    for (uint32_t i = 0; bytes >= LARGE && i < KP_MAP_LARGE_MAX; i++) {
        if (kp_load_relaxed(&large[i].from) != (uintptr_t)p) continue;
        kp_store_relaxed(&large[i].bytes, 0);
        kp_store_relaxed(&large[i].from, 0);
        return;
    }
}

bool kp_map_large(uint32_t i, uintptr_t *from, uintptr_t *to)
{
    *from = kp_load_relaxed(&large[i].from);
    *to = *from + kp_load_relaxed(&large[i].bytes);
    return *to > *from;
}

void *kp_map_alloc(size_t bytes)
{
    void *p;
    size_t size = page_round(bytes ? bytes : 1);
    if (size == 0) return NULL;
    int kept = errno; /* the host's errno, if a hook calls */
    int rc = kp_io_mmap(&p, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = kept;
    if (rc < 0) return NULL;
    large_note(p, size);
    return p;
}

void *kp_map_alloc_huge(size_t bytes)
{
    void *p = kp_map_alloc(bytes);
    const int kept = errno;
    if (p) (void)kp_io_madvise(p, page_round(bytes), MADV_HUGEPAGE); /* only a wish */
    errno = kept;
    return p;
}

void kp_map_free(void *p, size_t bytes)
{
    const size_t size = page_round(bytes ? bytes : 1);
    if (!p) return;
    large_forget(p, size); /* before munmap: then the next mapping may get this address */
    kp_io_munmap(p, size);
}

void *kp_map_grow(void *p, size_t old_bytes, size_t new_bytes)
{
    size_t old_size = page_round(old_bytes ? old_bytes : 1), size = page_round(new_bytes ? new_bytes : 1);
    if (p == NULL) return kp_map_alloc(new_bytes);
    if (size == 0) return NULL;
    if (size == old_size) return p;
    void *q;
    large_forget(p, old_size);
    const int rc = kp_io_mremap(&q, p, old_size, size);
    large_note(rc < 0 ? p : q, rc < 0 ? old_size : size);
    return rc < 0 ? NULL : q;
}

bool kp_map_room(void *array, uint32_t n, uint32_t *cap, size_t item_bytes, uint32_t first)
{
    void **const at = array;
    if (n < *cap) return true;
    const uint32_t more = *cap ? *cap * 2 : first;
    void *const made = kp_map_grow(*at, *cap * item_bytes, more * item_bytes);
    if (made) *at = made, *cap = more;
    return made;
}

/* Puts a new block in the place of `full`. False: no memory. */
static int block_replace(struct block *full)
{
    struct block *fresh = kp_map_alloc(KP_ARENA_BLOCK);
    if (fresh == NULL) return 0;
    /* pairs with: arena.c:kp_arena_alloc (the block's zeroes come with the pointer) */
    if (!kp_cas_acq_rel(&current, &full, fresh)) kp_map_free(fresh, KP_ARENA_BLOCK);
    return 1;
}

void *kp_arena_alloc(size_t bytes)
{
    const size_t room = KP_ARENA_BLOCK - sizeof(struct block);
    if (bytes >= KP_ARENA_BIG) return kp_map_alloc(bytes);
    if (kp_fail_point("arena") < 0) return NULL;
    size_t size = (bytes + 15) & ~(size_t)15;
    if (size == 0) size = 16;
    for (;;) {
        struct block *b = kp_load_acquire(&current); /* pairs with: arena.c:block_replace */
        if (b) {
            size_t at = kp_add_relaxed(&b->used, size);
            if (at + size <= room) return b->room + at;
        }
        if (!block_replace(b)) return NULL;
    }
}

void *kp_arena_alloc_line(size_t bytes)
{
    const uintptr_t p = (uintptr_t)kp_arena_alloc(bytes + KP_LINE - 1);
    return (void *)((p + KP_LINE - 1) & ~(uintptr_t)(KP_LINE - 1)); /* NULL stays NULL */
}

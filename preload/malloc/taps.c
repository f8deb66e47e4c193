// SPDX-License-Identifier: Apache-2.0
/*
 * taps.c - the taps on malloc, free, operator new, mmap and the like
 *
 * Called by: any host thread, in place of the allocator's function (hot)
 * Owns:      the addresses of the real functions, constant before the first tap is installed
 * Locks:     none. Memory: none; about 200 bytes of stack where nothing is recorded.
 * On fail:   the real function is called all the same
 * Safe in:   wherever the real function is; after fork yes (the gate reads 0 in a child)
 *
 * An allocation is recorded after the call, a free before it. So in order of time no block is allocated again before
 * it was freed, on any thread. An exception of operator new passes through: the tap holds nothing during the call.
 */
#include <string.h>
#include <sys/mman.h>

#include "collector/base/kp_gate.h"
#include "preload/malloc/malloc.h"
#include "collector/base/kp_poison.h"

enum { NEWS = 8, GIVES = 14 };

static void *(*real_take)(size_t);
static void *(*real_take_zeroed)(size_t, size_t);
static void *(*real_resize)(void *, size_t);
static void *(*real_resize_array)(void *, size_t, size_t);
static int (*real_take_at)(void **, size_t, size_t);
static void *(*real_aligned)(size_t, size_t);
static void *(*real_aligned_old)(size_t, size_t);
static void *(*real_page)(size_t);
static void *(*real_pages)(size_t);
static void *(*real_new[NEWS])(size_t, uintptr_t, uintptr_t);
static void (*real_give[GIVES])(void *, uintptr_t, uintptr_t);
static void *(*real_map)(void *, size_t, int, int, int, off_t);
static void *(*real_map64)(void *, size_t, int, int, int, off_t);
static int (*real_unmap)(void *, size_t);
static void *(*real_remap)(void *, size_t, size_t, int, void *);

static inline bool is_on(void)
{
    return __builtin_expect((kp_gate_get() & (KP_GATE_RECORD | KP_GATE_WARM | KP_GATE_CHILD_PENDING)) != 0, 0);
}

/* `is_asking` ends the recursion if the allocator's malloc_usable_size itself allocates. */
static inline int64_t size_of(void *block)
{
    static _Thread_local bool is_asking __attribute__((tls_model("initial-exec")));
    if (!block || kp_heap_is_traced || !kp_heap_size_of || is_asking) return 0;
    is_asking = true;
    const size_t size = kp_heap_size_of(block);
    is_asking = false;
    return (int64_t)size;
}

static __attribute__((noinline)) void took(void *block, size_t bytes, uint32_t flags)
{
    if (block) kp_heap_put_taken(block, bytes, size_of(block), flags);
}

static __attribute__((noinline)) void gives(void *block)
{
    if (block) kp_heap_put_given(block, 0, -size_of(block), 0);
}

#define TAKE(name, parameters, arguments, size) \
    static void *tap_##name parameters          \
    {                                           \
        void *block = real_##name arguments;    \
        if (is_on()) took(block, size, 0);      \
        return block;                           \
    }
TAKE(take, (size_t bytes), (bytes), bytes)
TAKE(take_zeroed, (size_t n, size_t each), (n, each), n *each)
TAKE(aligned, (size_t align, size_t bytes), (align, bytes), bytes)
TAKE(aligned_old, (size_t align, size_t bytes), (align, bytes), bytes)
TAKE(page, (size_t bytes), (bytes), bytes)
TAKE(pages, (size_t bytes), (bytes), bytes)

static int tap_take_at(void **block, size_t align, size_t bytes)
{
    const int err = real_take_at(block, align, bytes);
    if (is_on() && !err) took(*block, bytes, 0);
    return err;
}

/* --- realloc: a free and an allocation, as another thread may get the old block during the call --- */

static int64_t resize_begin(void *old)
{
    const int64_t size = size_of(old);
    if (old && kp_heap_is_traced) kp_heap_put_given(old, 0, 0, KP_HEAP_REALLOC);
    return size;
}

static void resize_end(void *old, int64_t old_size, void *block, size_t bytes)
{
    if (block) {
        kp_heap_put_taken(block, bytes, size_of(block) - old_size, old ? KP_HEAP_REALLOC : 0);
    } else if (old && bytes && kp_heap_is_traced) {
        kp_heap_put_taken(old, bytes, 0, KP_HEAP_REALLOC | KP_HEAP_RESTORED);
    } else if (old && !bytes && !kp_heap_is_traced) {
        kp_heap_put_given(old, 0, -old_size, 0);
    }
}

#define RESIZE(name, parameters, arguments, size)   \
    static void *tap_##name parameters              \
    {                                               \
        if (!is_on()) return real_##name arguments; \
        const int64_t old_size = resize_begin(old); \
        void *block = real_##name arguments;        \
        resize_end(old, old_size, block, size);     \
        return block;                               \
    }
RESIZE(resize, (void *old, size_t bytes), (old, bytes), bytes)
RESIZE(resize_array, (void *old, size_t n, size_t each), (old, n, each), n *each)

/* --- the forms of operator new, delete and free; a tap passes on the arguments behind the first --- */

#define NEW(i)                                                      \
    static void *tap_new##i(size_t bytes, uintptr_t a, uintptr_t b) \
    {                                                               \
        void *block = real_new[i](bytes, a, b);                     \
        if (is_on()) took(block, bytes, 0);                         \
        return block;                                               \
    }
#define GIVE(i)                                                    \
    static void tap_give##i(void *block, uintptr_t a, uintptr_t b) \
    {                                                              \
        if (is_on()) gives(block);                                 \
        real_give[i](block, a, b);                                 \
    }
/* clang-format off */
NEW(0) NEW(1) NEW(2) NEW(3) NEW(4) NEW(5) NEW(6) NEW(7)
GIVE(0) GIVE(1) GIVE(2) GIVE(3) GIVE(4) GIVE(5) GIVE(6) GIVE(7) GIVE(8) GIVE(9) GIVE(10) GIVE(11) GIVE(12) GIVE(13)
    /* clang-format on */

    /* --- mapped memory --- */

    static void *mapped(void *block, size_t bytes)
{
    if (is_on() && block != MAP_FAILED) kp_heap_put_taken(block, bytes, 0, KP_HEAP_MAPPED);
    return block;
}

static void *tap_map(void *at, size_t bytes, int prot, int flags, int fd, off_t from)
{
    return mapped(real_map(at, bytes, prot, flags, fd, from), bytes);
}

static void *tap_map64(void *at, size_t bytes, int prot, int flags, int fd, off_t from)
{
    return mapped(real_map64(at, bytes, prot, flags, fd, from), bytes);
}

static int tap_unmap(void *block, size_t bytes)
{
    if (!is_on()) return real_unmap(block, bytes);
    kp_heap_put_given(block, bytes, 0, KP_HEAP_MAPPED);
    const int rc = real_unmap(block, bytes);
    if (rc != 0) kp_heap_put_taken(block, bytes, 0, KP_HEAP_MAPPED); /* munmap failed: it is still mapped */
    return rc;
}

static void *tap_remap(void *old, size_t old_bytes, size_t bytes, int flags, void *to)
{
    if (!is_on()) return real_remap(old, old_bytes, bytes, flags, to);
    kp_heap_put_given(old, old_bytes, 0, KP_HEAP_MAPPED | KP_HEAP_REALLOC);
    void *block = real_remap(old, old_bytes, bytes, flags, to);
    const bool is_moved = block != MAP_FAILED;
    kp_heap_put_taken(is_moved ? block : old, is_moved ? bytes : old_bytes, 0, KP_HEAP_MAPPED | KP_HEAP_REALLOC);
    return block;
}

/* --- names, real functions and taps --- */

#define ROW(symbol, word, tap)                                     \
    {                                                              \
        symbol, (void **)(void *)&(word), (void *)(uintptr_t)(tap) \
    }
#define NEW_ROW(symbol, i) ROW(symbol, real_new[i], tap_new##i)
#define GIVE_ROW(symbol, i) ROW(symbol, real_give[i], tap_give##i)

static const struct kp_tap_row rows[] = {
    ROW("malloc", real_take, tap_take),
    ROW("calloc", real_take_zeroed, tap_take_zeroed),
    ROW("realloc", real_resize, tap_resize),
    ROW("posix_memalign", real_take_at, tap_take_at),
    ROW("aligned_alloc", real_aligned, tap_aligned),
    ROW("memalign", real_aligned_old, tap_aligned_old),
    ROW("valloc", real_page, tap_page),
    ROW("pvalloc", real_pages, tap_pages),
    GIVE_ROW("free", 0),
    GIVE_ROW("free_sized", 1),
    GIVE_ROW("free_aligned_sized", 2),
};
/* glibc's versions call the functions above through the PLT and are recorded there. */
static const struct kp_tap_row rows_not_of_libc[] = {
    ROW("reallocarray", real_resize_array, tap_resize_array),
    NEW_ROW("_Znwm", 0),
    NEW_ROW("_Znam", 1),
    NEW_ROW("_ZnwmRKSt9nothrow_t", 2),
    NEW_ROW("_ZnamRKSt9nothrow_t", 3),
    NEW_ROW("_ZnwmSt11align_val_t", 4),
    NEW_ROW("_ZnamSt11align_val_t", 5),
    NEW_ROW("_ZnwmSt11align_val_tRKSt9nothrow_t", 6),
    NEW_ROW("_ZnamSt11align_val_tRKSt9nothrow_t", 7),
    GIVE_ROW("_ZdlPv", 3),
    GIVE_ROW("_ZdaPv", 4),
    GIVE_ROW("_ZdlPvm", 5),
    GIVE_ROW("_ZdaPvm", 6),
    GIVE_ROW("_ZdlPvRKSt9nothrow_t", 7),
    GIVE_ROW("_ZdaPvRKSt9nothrow_t", 8),
    GIVE_ROW("_ZdlPvSt11align_val_t", 9),
    GIVE_ROW("_ZdaPvSt11align_val_t", 10),
    GIVE_ROW("_ZdlPvmSt11align_val_t", 11),
    GIVE_ROW("_ZdaPvmSt11align_val_t", 12),
    GIVE_ROW("cfree", 13),
};
static const struct kp_tap_row map_rows[] = {
    ROW("mmap", real_map, tap_map),
    ROW("mmap64", real_map64, tap_map64),
    ROW("munmap", real_unmap, tap_unmap),
    ROW("mremap", real_remap, tap_remap),
};

static uint32_t add_rows(struct kp_tap *taps, const struct kp_tap_row *from, size_t count, uintptr_t module)
{
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++) {
        uintptr_t where;
        void *real = kp_hook_first(from[i].symbol, &where);
        if (!real || where != module) continue;
        *from[i].real = real;
        taps[n++] = (struct kp_tap){from[i].symbol, real, from[i].tap};
    }
    return n;
}
#define ADD_ROWS(taps, rows, module) add_rows(taps, rows, sizeof(rows) / sizeof *(rows), module)

uint32_t kp_heap_taps_make(struct kp_tap taps[KP_HEAP_TAPS_MAX], uintptr_t *module)
{
    uintptr_t libc = 0, where = 0;
    if (!kp_hook_first("malloc", module)) return 0;
    kp_hook_first("gnu_get_libc_version", &libc);
    uint32_t n = ADD_ROWS(taps, rows, *module);
    if (*module != libc) n += ADD_ROWS(taps + n, rows_not_of_libc, *module);
    void *size = kp_hook_first("malloc_usable_size", &where);
    if (size && where == *module) memcpy(&kp_heap_size_of, &size, sizeof size);
    return n;
}

uint32_t kp_heap_map_taps_make(struct kp_tap taps[KP_HEAP_TAPS_MAX])
{
    uintptr_t libc = 0;
    kp_hook_first("gnu_get_libc_version", &libc);
    return ADD_ROWS(taps, map_rows, libc);
}

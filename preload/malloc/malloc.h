// SPDX-License-Identifier: Apache-2.0
/*
 * malloc.h - shared by the files of preload/malloc, which record the host's allocator calls
 *
 *   malloc_source.c   finds the allocator and installs the taps
 *   taps.c     the taps on malloc, free, operator new, mmap and the like
 *   heap_put.c      writes the records: a count, or a block with its stack (preload/unwind)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_heap.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"

enum { KP_HEAP_TAPS_MAX = 64 };

/* --- taps.c --- */
/* Makes a tap for each allocation function that the allocator defines, and keeps the real function's address. Returns
 * their number; 0: no malloc was found. *module: the allocator's module. */
uint32_t kp_heap_taps_make(struct kp_tap taps[KP_HEAP_TAPS_MAX], uintptr_t *module);
uint32_t kp_heap_map_taps_make(struct kp_tap taps[KP_HEAP_TAPS_MAX]); /* mmap, mmap64, munmap, mremap */

/* --- heap_put.c --- */
extern bool kp_heap_is_traced;                 /* true: each block is recorded; false: blocks are counted */
extern bool kp_heap_has_python;                /* stacks have Python's frames */
extern size_t (*kp_heap_size_of)(void *block); /* malloc_usable_size; NULL: this allocator has none */
int kp_heap_put_setup(void);                   /* 0 or -ENOMEM */
void kp_heap_put_forget(void);
/* Record that a block was allocated or freed; flags: KP_HEAP_*. `live`: the block's size for the heap counter. */
void kp_heap_put_taken(void *block, size_t bytes, int64_t live, uint32_t flags);
void kp_heap_put_given(void *block, size_t bytes, int64_t live, uint32_t flags);

// SPDX-License-Identifier: Apache-2.0
/*
 * malloc.h - the host's heap as a source: the room's map
 *
 *   source.c   which library is the allocator, when the taps are put in
 *   taps.c     the functions that stand in the host's words for malloc and its kin
 *   put.c      what they record: a count, or a block with its stack (preload/unwind)
 */
#ifndef KP_MALLOC_H
#define KP_MALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_heap.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"

enum { KP_HEAP_TAPS_MAX = 64 };

/* --- taps.c --- */
/* Taps for all that the allocator defines of malloc and its kin, with the real functions kept; how many are in `taps`.
 * 0: there is no malloc to be found. *module: the allocator's. */
uint32_t kp_heap_taps_make(struct kp_tap taps[KP_HEAP_TAPS_MAX], uintptr_t *module);
uint32_t kp_heap_map_taps_make(struct kp_tap taps[KP_HEAP_TAPS_MAX]); /* mmap and its kin */

/* --- put.c --- */
extern bool kp_heap_is_traced;                 /* else counted */
extern size_t (*kp_heap_size_of)(void *block); /* NULL: this allocator does not tell */
int kp_heap_put_setup(void);                   /* 0 or -ENOMEM */
void kp_heap_put_begin_in_child(void);
/* A block was taken; flags: KP_HEAP_*. `live`: by how much the heap grew (count). */
void kp_heap_put_taken(void *block, size_t bytes, int64_t live, uint32_t flags);
void kp_heap_put_given(void *block, size_t bytes, int64_t live, uint32_t flags);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * kp_arena.h - all memory of the .so: pieces of mmap, never malloc
 *
 * kp_arena_alloc: small, zeroed, 16-byte aligned, never freed (state that lives as long as the process).
 * kp_map_alloc/free: page-sized, zeroed, can be given back (buffers of the exporter and the reader).
 * Both return NULL when memory is short; thread-safe; not signal-safe. The CLI uses them too.
 */
#ifndef KP_ARENA_H
#define KP_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *kp_arena_alloc(size_t bytes) __attribute__((warn_unused_result));
void *kp_map_alloc(size_t bytes) __attribute__((warn_unused_result));
void kp_map_free(void *p, size_t bytes);
/* Grows a kp_map_alloc'ed block (contents kept, may move). NULL: the old block is still there. */
void *kp_map_grow(void *p, size_t old_bytes, size_t new_bytes) __attribute__((warn_unused_result));
/* Twice the items an array has room for, `first` when it has none (NULL, *cap 0). NULL: the old array and *cap are as they were. */
void *kp_map_double(void *array, uint32_t *cap, size_t item_bytes, uint32_t first) __attribute__((warn_unused_result));

/* The large ones of what is mapped now, by number, for who must tell our memory from the host's. false: none of that number. */
#define KP_MAP_LARGE_MAX 128u
bool kp_map_large(uint32_t i, uintptr_t *from, uintptr_t *to);

#endif

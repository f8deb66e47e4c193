// SPDX-License-Identifier: Apache-2.0
/*
 * kp_arena.h - all memory of the library: mapped pages, never malloc
 *
 * kp_arena_alloc gives small pieces, zeroed, aligned to 16 bytes, never freed: for state that lives as long as the
 * process. kp_map_alloc gives whole pages, zeroed, which kp_map_free frees: for the exporter's and reader's buffers.
 * Both return NULL when memory is short. Both are thread-safe, neither is signal-safe. The command line uses them
 * too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *kp_arena_alloc(size_t bytes) __attribute__((warn_unused_result));
void *kp_arena_alloc_line(size_t bytes) __attribute__((warn_unused_result)); /* begins a cache line */
void *kp_map_alloc(size_t bytes) __attribute__((warn_unused_result));
/* The same, of huge pages where the kernel has some: for a table that is used all over. Keeps errno. */
void *kp_map_alloc_huge(size_t bytes) __attribute__((warn_unused_result));
void kp_map_free(void *p, size_t bytes);
/* Grows a block of kp_map_alloc, which keeps its contents and may move. NULL: the old block is still there. */
void *kp_map_grow(void *p, size_t old_bytes, size_t new_bytes) __attribute__((warn_unused_result));
/*
 * Makes room for an item behind the first n of an array, whose capacity doubles. `array` is the address of the caller's
 * pointer. An empty array (NULL, *cap 0) gets `first` items. False: no memory; the array and *cap stay as they were.
 */
bool kp_map_room(void *array, uint32_t n, uint32_t *cap, size_t item_bytes, uint32_t first)
    __attribute__((warn_unused_result));

/* The library's large mappings, by number, to tell its memory from the host's. False: none has this number. */
#define KP_MAP_LARGE_MAX 128u
bool kp_map_large(uint32_t i, uintptr_t *from, uintptr_t *to);

// SPDX-License-Identifier: Apache-2.0
/*
 * idpages.c - a number for each id of a frame or stack
 *
 * Called by: heaptrack_write.c, heapsites.c, for each block and frame
 * Memory:    mapped: 512 KB of address space, and 256 KB for each 65,536 ids in a row of which one is there
 * On fail:   NULL
 */
#include "export/write/heap/idpages.h"

#include <stddef.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

enum { NUMBERS = 1 << 16, PAGES = 1 << 16 };
#define PAGE_BYTES (NUMBERS * sizeof(uint32_t))

uint32_t *kp_idpages_at(struct kp_idpages *n, uint32_t id)
{
    if (!n->pages && !(n->pages = kp_map_alloc(PAGES * sizeof *n->pages))) return NULL;
    uint32_t **page = &n->pages[id / NUMBERS];
    if (!*page) *page = kp_map_alloc(PAGE_BYTES);
    return *page ? &(*page)[id % NUMBERS] : NULL;
}

void kp_idpages_prefetch(const struct kp_idpages *n, uint32_t id)
{
    const uint32_t *page = n->pages ? n->pages[id / NUMBERS] : NULL;
    if (page) __builtin_prefetch(&page[id % NUMBERS]);
}

void kp_idpages_fini(struct kp_idpages *n)
{
    for (size_t i = 0; n->pages && i < PAGES; i++)
        if (n->pages[i]) kp_map_free(n->pages[i], PAGE_BYTES);
    if (n->pages) kp_map_free(n->pages, PAGES * sizeof *n->pages);
    n->pages = NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * correlation.c - maps a correlation id to the op and the annotation around its call into CUDA
 *
 * Called by: cuda_calls.c (hot), window_work.c (hot)
 * Memory:    in the scratch 8 bytes for each id of the window's range, 4 MB of addresses for the pages' table.
 *
 * CUPTI's ids rise from call to call, so a window's ids are adjacent. So an array finds them, and a walk by time stays
 * on a page.
 */
#include "collector/base/sys/kp_arena.h"
#include "export/write/gpu/gpu.h"
#include "collector/base/kp_poison.h"

static struct kp_link *page_get(struct kp_links *l, struct kp_scratch *scratch, uint32_t correlation)
{
    uint32_t page = correlation / KP_LINK_PAGE;
    if (page != l->last) {
        l->last = page;
        kp_scratch_touch(scratch);
    }
    return l->pages[page];
}

struct kp_link *kp_links_make(struct kp_links *l, struct kp_scratch *scratch, uint32_t correlation)
{
    if (!l->pages && !(l->pages = kp_map_alloc(KP_LINK_PAGES * sizeof *l->pages))) return NULL;
    struct kp_link *page = page_get(l, scratch, correlation);
    if (!page) {
        page = kp_scratch_alloc(scratch, KP_LINK_PAGE * sizeof *page);
        if (!page) return NULL;
        l->pages[correlation / KP_LINK_PAGE] = page;
    }
    return &page[correlation % KP_LINK_PAGE];
}

const struct kp_link *kp_links_get(struct kp_links *l, struct kp_scratch *scratch, uint32_t correlation)
{
    struct kp_link *page = correlation && l->pages ? page_get(l, scratch, correlation) : NULL;
    return page && page[correlation % KP_LINK_PAGE].is_there ? &page[correlation % KP_LINK_PAGE] : NULL;
}

void kp_links_fini(struct kp_links *l)
{
    if (l->pages) kp_map_free(l->pages, KP_LINK_PAGES * sizeof *l->pages);
    *l = (struct kp_links){0};
}

// SPDX-License-Identifier: Apache-2.0
/* pagelinks.c - what an event belongs to: the call that launched it, its forward op, its modules */
#include <stdlib.h>

#include "export/answers/page/pageparts.h"
#include "export/read/facts/backwardof.h"
#include "export/read/frames/ownline.h"

/* Each event: 1 + the number of the call that launched it or of its forward op, 0: none. */
void kp_page_links_put(struct kp_page *page, const uint32_t *positions)
{
    const struct kp_tree *tree = page->tree;
    size_t shown = 0;
    uint32_t *links = kp_kineto_zeros(tree->count + 1, sizeof *links);
    for (uint32_t i = 0; i < tree->count; i++) {
        const int32_t call = tree->nodes[i].call, from = call < 0 ? tree->nodes[i].forward : call;
        if (positions[i] == UINT32_MAX) continue;
        shown++;
        if (from >= 0 && positions[from] != UINT32_MAX) links[positions[i]] = positions[from] + 1;
    }
    kp_page_blob_put(&page->blob, "link", links, shown);
    free(links);
}

/* Each event of the host: its modules, as 2 * (number of their text + 1), + 1: backward. 0: none. */
void kp_page_modules_put(struct kp_page *page, const uint32_t *order, size_t count)
{
    const struct kp_tree *tree = page->tree;
    uint32_t *modules = kp_kineto_room(count + 1, sizeof *modules), *of = kp_backward_of(tree);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const uint32_t from = of[order[i]];
        const uint32_t module = kp_ownline_module_names(tree->trace, kp_tree_stack(tree, &tree->nodes[from]));
        modules[i] = module ? 2 * (kp_page_text(page, module) + 1) + kp_node_is_backward(tree, from) : 0;
        any |= module != 0;
    }
    if (any) kp_page_blob_put(&page->blob, "module", modules, count);
    free(modules);
    free(of);
}

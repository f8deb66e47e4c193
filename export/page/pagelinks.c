// SPDX-License-Identifier: Apache-2.0
/* pagelinks.c - what an event belongs to: the call that launched it, its forward op, its modules */
#include <stdlib.h>
#include <string.h>

#include "export/page/pageparts.h"
#include "export/report/ownline.h"

struct call { /* of a runtime, by its correlation */
    int64_t correlation;
    uint32_t node;
};

static int call_order(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static struct call *calls_gather(const struct kp_tree *tree, size_t *count)
{
    struct call *calls = NULL;
    size_t capacity = 0;
    *count = 0;
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (e->kind != KP_KINETO_RUNTIME || e->fwd_tid <= 0) continue;
        calls = kp_kineto_grow(calls, &capacity, *count + 1, sizeof *calls);
        calls[(*count)++] = (struct call){e->fwd_tid, i};
    }
    if (*count) qsort(calls, *count, sizeof *calls, call_order);
    return calls;
}

/* Each event: 1 + the number of the call that launched it or of its forward op, 0: none. */
void kp_page_links_put(struct kp_page *page, const uint32_t *positions)
{
    const struct kp_tree *tree = page->tree;
    size_t unused = 0, call_count, shown = 0;
    struct call *calls = calls_gather(tree, &call_count);
    uint32_t *links = kp_kineto_grow(NULL, &unused, tree->count + 1, sizeof *links);
    memset(links, 0, (tree->count + 1) * sizeof *links);
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        int32_t from = tree->nodes[i].forward;
        if (positions[i] == UINT32_MAX) continue;
        shown++;
        if (e->kind == KP_KINETO_GPU && e->fwd_tid > 0) {
            const size_t at = kp_rows_from(calls, call_count, sizeof *calls, e->fwd_tid);
            if (at < call_count && calls[at].correlation == e->fwd_tid) from = (int32_t)calls[at].node;
        }
        if (from >= 0 && positions[from] != UINT32_MAX) links[positions[i]] = positions[from] + 1;
    }
    kp_page_blob_put(&page->blob, "link", links, shown, 4);
    free(links);
    free(calls);
}

/* Each event of the host: its modules, as 2 * (number of their text + 1), + 1: backward. 0: none. */
void kp_page_modules_put(struct kp_page *page, const uint32_t *order, size_t count)
{
    const struct kp_tree *tree = page->tree;
    struct kp_ownlines found = {0};
    size_t unused = 0;
    uint32_t *modules = kp_kineto_grow(NULL, &unused, count + 1, sizeof *modules);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct kp_node *node = &tree->nodes[order[i]];
        const uint32_t own = tree->trace->events[node->event].stack, stack = node->stack ? node->stack : own;
        const uint32_t module = kp_ownline_modules(&found, tree->trace, stack);
        modules[i] = module ? 2 * (kp_page_text(page, module) + 1) + (node->stack && node->stack != own) : 0;
        any |= module != 0;
    }
    if (any) kp_page_blob_put(&page->blob, "module", modules, count, 4);
    kp_ownlines_fini(&found);
    free(modules);
}

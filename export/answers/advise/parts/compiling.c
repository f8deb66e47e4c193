// SPDX-License-Identifier: Apache-2.0
/*
 * compiling.c - finds when torch.compile compiles
 *
 * By the ranges that its compiler makes (KPROF_COMPILE_RANGES), or without them by what every run has: dynamo looks
 * into its cache, and the code that it finds there begins at once. All else between the two is compiling.
 */
#include "export/answers/advise/parts/adviseparts.h"

enum { COMPILING_LEAST_NS = 2000000 };

static bool is_named(const struct kp_tree *tree, size_t i, const char *prefix)
{
    const char *name = kp_kineto_text(tree->trace, kp_tree_event(tree, i)->name);
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

void kp_compiles_each(const struct kp_tree *tree, kp_compile_fn fn, void *context)
{
    struct kp_keyindex threads = {0}; /* rows: the end of the thread's last look into the cache, 0: used up */
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (node->on_device || node->is_async || e->kind == KP_KINETO_PYTHON) continue;
        if (kp_node_is(tree, i, KP_NAME_COMPILES)) fn(context, (int32_t)i, node->start_ns, node->end_ns);
        const bool is_lookup = is_named(tree, i, "TorchDynamo Cache Lookup");
        if (!is_lookup && !is_named(tree, i, "Torch-Compiled Region")) continue;
        int64_t *const looked_up = kp_keyindex_row(&threads, (uint64_t)e->tid, &(int64_t){0}, sizeof *looked_up);
        if (!is_lookup && *looked_up && node->start_ns - *looked_up >= COMPILING_LEAST_NS)
            fn(context, (int32_t)i, *looked_up, node->start_ns);
        *looked_up = is_lookup ? node->end_ns : 0;
    }
    kp_keyindex_fini(&threads);
}

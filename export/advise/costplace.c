// SPDX-License-Identifier: Apache-2.0
/* costplace.c - adds up what costs where, and names the place that costs most: op, module, frame, own line */
#include "export/advise/adviseparts.h"

#include <stdlib.h>
#include <string.h>

#include "export/report/ownline.h"

int32_t kp_costplace_op(const struct kp_tree *tree, int32_t node)
{
    int32_t found = node;
    for (int32_t at = node; at >= 0; at = tree->nodes[at].parent) {
        const struct kp_kineto_event *e = kp_tree_event(tree, (size_t)at);
        if (e->kind == KP_KINETO_OP && !kp_advise_is_range(kp_kineto_text(tree->trace, e->name))) found = at;
    }
    return found;
}

/* A call of CUDA has no stack of its own: the ops around it have. */
static uint32_t stack_of(const struct kp_tree *tree, int32_t node)
{
    for (; node >= 0; node = tree->nodes[node].parent) {
        const uint32_t own = tree->nodes[node].stack, stack = own ? own : kp_tree_event(tree, (size_t)node)->stack;
        if (stack) return stack;
    }
    return 0;
}

void kp_costplaces_add(struct kp_costplaces *places, const struct kp_tree *tree, int32_t node, int32_t before,
                       int64_t ns)
{
    if (node < 0 || ns == 0) return;
    const int32_t op = kp_costplace_op(tree, node);
    const uint32_t name = kp_tree_event(tree, (size_t)op)->name, stack = stack_of(tree, node);
    const size_t had = places->keys.count;
    const size_t at = kp_keyindex_get(&places->keys, (uint64_t)name | (uint64_t)stack << 32);
    if (at == had) {
        places->of = kp_kineto_grow(places->of, &places->capacity, had + 1, sizeof *places->of);
        places->of[at] = (struct kp_costplace){.name = name, .stack = stack, .after = stack_of(tree, before)};
    }
    places->of[at].ns += ns;
}

static const char *text_or_null(struct kp_kineto *trace, uint32_t id) { return id ? kp_kineto_text(trace, id) : NULL; }

void kp_costplaces_tell(const struct kp_costplaces *places, struct kp_kineto *trace, struct kp_finding *out)
{
    struct kp_ownlines lines = {0}, modules = {0};
    const struct kp_costplace *most = NULL;
    for (size_t i = 0; i < places->keys.count; i++)
        if (!most || places->of[i].ns > most->ns) most = &places->of[i];
    if (!most || most->ns <= 0) return;
    const char *stack = kp_kineto_text(trace, most->stack);
    const uint32_t frame = kp_strings_put(trace->strings, stack, strcspn(stack, ";"));
    const uint32_t itself = kp_ownline_function(&lines, trace, most->name);
    const uint32_t line = itself ? itself : kp_ownline_of(&lines, trace, most->stack);
    const uint32_t after = kp_ownline_of(&lines, trace, most->after);
    const uint32_t module = kp_ownline_modules(&modules, trace, most->stack);
    out->where = text_or_null(trace, most->name);
    out->frame = text_or_null(trace, frame);
    out->line = text_or_null(trace, line);
    out->after = after == line ? NULL : text_or_null(trace, after);
    out->module = text_or_null(trace, module);
    kp_ownlines_fini(&lines);
    kp_ownlines_fini(&modules);
}

void kp_costplaces_fini(struct kp_costplaces *places)
{
    kp_keyindex_fini(&places->keys);
    free(places->of);
    *places = (struct kp_costplaces){0};
}

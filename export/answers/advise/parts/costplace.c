// SPDX-License-Identifier: Apache-2.0
/* costplace.c - adds up what costs where, and names the place that costs most: op, module, frame, own line */
#include "export/answers/advise/parts/adviseparts.h"

#include <stdio.h>
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/frames/modulename.h"
#include "export/show/units.h"

enum { ALSO_OF = 4 };

int32_t kp_costplace_op(const struct kp_tree *tree, int32_t node)
{
    int32_t found = node;
    for (int32_t at = node; at >= 0; at = tree->nodes[at].parent) {
        const bool is_op = kp_tree_event(tree, (size_t)at)->kind == KP_KINETO_OP;
        if (is_op && !kp_node_is(tree, (size_t)at, KP_NAME_RANGE)) found = at;
    }
    return found;
}

int32_t kp_costplace_launcher(const struct kp_tree *tree, size_t i)
{
    const struct kp_node *node = &tree->nodes[i];
    if (!node->on_device) return (int32_t)i;
    if (node->launcher >= 0) return node->launcher;
    return node->call < 0 ? (int32_t)i : node->call;
}

/* A call of CUDA has no stack of its own: the ops around it have. is_backward may be NULL. */
static uint32_t stack_of(const struct kp_tree *tree, int32_t node, bool *is_backward)
{
    for (; node >= 0; node = tree->nodes[node].parent) {
        const uint32_t stack = kp_tree_stack(tree, &tree->nodes[node]);
        if (!stack) continue;
        if (is_backward) *is_backward = kp_node_is_backward(tree, (size_t)node);
        return stack;
    }
    return 0;
}

uint64_t kp_costplace_key_of(const struct kp_costplace *place)
{
    return (uint64_t)place->name | (uint64_t)place->stack << 32 | (uint64_t)place->is_backward << 63;
}

static struct kp_costplace place_of(const struct kp_tree *tree, int32_t node)
{
    struct kp_costplace place = {.name = kp_tree_event(tree, (size_t)kp_costplace_op(tree, node))->name};
    place.stack = stack_of(tree, node, &place.is_backward);
    return place;
}

uint64_t kp_costplace_key(const struct kp_tree *tree, int32_t node)
{
    const struct kp_costplace place = place_of(tree, node);
    return kp_costplace_key_of(&place);
}

uint32_t kp_costplace_line(const struct kp_tree *tree, int32_t node)
{
    const uint32_t stack = stack_of(tree, node, NULL);
    return stack ? kp_ownline_of(tree->trace, stack) : 0;
}

void kp_costplaces_add(struct kp_costplaces *places, const struct kp_tree *tree, int32_t node, int32_t before,
                       int64_t ns)
{
    kp_costplaces_add_started(places, tree, node, -1, before, ns);
}

void kp_costplaces_add_started(struct kp_costplaces *places, const struct kp_tree *tree, int32_t node, int32_t start,
                               int32_t before, int64_t ns)
{
    if (node < 0 || ns == 0) return;
    struct kp_costplace place = place_of(tree, node);
    if (start >= 0) place.stack = stack_of(tree, start, &place.is_backward);
    struct kp_costplace *const sum = kp_keyindex_row(&places->keys, kp_costplace_key_of(&place), &place, sizeof place);
    if (ns > sum->most_ns) {
        sum->most_ns = ns;
        sum->is_after_backward = false;
        sum->after = stack_of(tree, before, &sum->is_after_backward);
    }
    sum->ns += ns;
    sum->count++;
}

static const char *text_or_null(struct kp_kineto *trace, uint32_t id) { return id ? kp_kineto_text(trace, id) : NULL; }

const struct kp_costplace *kp_costplaces_most(const struct kp_costplaces *places)
{
    const struct kp_costplace *const of = places->keys.rows, *most = NULL;
    for (size_t i = 0; i < places->keys.count; i++)
        if (!most || of[i].ns > most->ns) most = &of[i];
    return most && most->ns > 0 ? most : NULL;
}

struct line_cost {
    uint32_t line;
    int64_t ns;
    size_t count;
};

KP_ORDERED(count_order, struct line_cost, KP_DOWN(count) KP_DOWN(ns))
KP_ORDER_DOWN(most_first, struct line_cost, ns)

/* The costs of all own lines; the caller frees them. `like`: of forward, or of backward, alone. */
static struct line_cost *line_costs(const struct kp_costplaces *places, struct kp_kineto *trace,
                                    const struct kp_costplace *like, int (*order)(const void *, const void *),
                                    size_t *count)
{
    struct kp_keyindex keys = {0};
    const struct kp_costplace *const place = places->keys.rows;
    for (size_t i = 0; i < places->keys.count; i++) {
        const uint32_t line = kp_ownline_of(trace, place[i].stack);
        if (!line || (like && place[i].is_backward != like->is_backward)) continue;
        struct line_cost *const sum = kp_keyindex_row(&keys, line, &(struct line_cost){.line = line}, sizeof *sum);
        sum->ns += place[i].ns;
        sum->count += place[i].count;
    }
    struct line_cost *const of = keys.rows;
    *count = keys.count;
    keys.rows = NULL;
    kp_keyindex_fini(&keys);
    if (*count) qsort(of, *count, sizeof *of, order);
    return of;
}

/* The second line, where it has a quarter of the cost or more; NULL: none. */
static const char *also_line(const struct kp_costplaces *places, struct kp_kineto *trace, uint32_t line)
{
    const struct kp_costplace *const most = kp_costplaces_most(places), *const of = places->keys.rows;
    size_t count = 0;
    int64_t all_ns = 0;
    for (size_t i = 0; i < places->keys.count; i++) all_ns += of[i].ns;
    struct line_cost *const lines = line_costs(places, trace, most, most_first, &count);
    const bool has_second = count > 1 && lines[0].line == line && ALSO_OF * lines[1].ns >= all_ns;
    const char *const found = has_second ? kp_kineto_text(trace, lines[1].line) : NULL;
    free(lines);
    return found;
}

/*
 * The line whose calls have a quarter of the cost or more, beside what a function of the program has itself; NULL:
 * none. Python names a generator that goes on by its `yield`, which may be far from the line that costs.
 */
static const char *calls_line(const struct kp_costplaces *places, struct kp_kineto *trace)
{
    const struct kp_costplace *const of = places->keys.rows;
    struct kp_keyindex lines = {0};
    int64_t all_ns = 0;
    for (size_t i = 0; i < places->keys.count; i++) {
        const uint32_t line = kp_ownline_function(trace, of[i].name) ? 0 : kp_ownline_of(trace, of[i].stack);
        if (line) *kp_keyindex_sum(&lines, line) += (double)of[i].ns;
        all_ns += of[i].ns;
    }
    const size_t most = lines.count ? kp_keyindex_most(&lines) : 0;
    const bool has_most = lines.count && ALSO_OF * *kp_keyindex_sum(&lines, lines.keys[most]) >= (double)all_ns;
    const char *const found = has_most ? kp_kineto_text(trace, (uint32_t)lines.keys[most]) : NULL;
    kp_keyindex_fini(&lines);
    return found;
}

void kp_costplaces_tell(const struct kp_costplaces *places, struct kp_kineto *trace, struct kp_finding *out)
{
    const struct kp_costplace *const most = kp_costplaces_most(places);
    if (!most) return;
    const char *stack = kp_kineto_text(trace, most->stack);
    const uint32_t frame = kp_strings_put(trace->strings, stack, strcspn(stack, ";"));
    const uint32_t itself = kp_ownline_function(trace, most->name);
    const uint32_t line = itself ? itself : kp_ownline_of(trace, most->stack);
    const uint32_t after = kp_ownline_of(trace, most->after);
    const uint32_t module = kp_ownline_module_names(trace, most->stack);
    out->where = text_or_null(trace, kp_modulename_frame_id(trace, most->name));
    out->frame = text_or_null(trace, frame);
    out->line = text_or_null(trace, line);
    out->is_backward = line && !itself && most->is_backward;
    out->also_line = itself ? calls_line(places, trace) : also_line(places, trace, line);
    out->is_after_backward = most->is_after_backward;
    out->after = after == line && out->is_backward == out->is_after_backward ? NULL : text_or_null(trace, after);
    out->module = text_or_null(trace, module);
}

enum { LINES_SHOWN = 3 };

const char *kp_costplaces_counts(const struct kp_costplaces *places, struct kp_kineto *trace, size_t steps)
{
    char text[512] = "";
    size_t count, used = 0;
    struct line_cost *of = line_costs(places, trace, NULL, count_order, &count);
    for (size_t i = 0; i < count && i < LINES_SHOWN && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.3g at %s", i ? ", " : "",
                                 (double)of[i].count / (double)steps, kp_kineto_text(trace, of[i].line));
    if (count > LINES_SHOWN && used < sizeof text)
        snprintf(text + used, sizeof text - used, ", and %zu more line%s", count - LINES_SHOWN,
                 kp_units_s(count - LINES_SHOWN));
    free(of);
    return kp_strings_keep(trace->strings, text);
}

const char *kp_costplaces_lines(const struct kp_costplaces *places, struct kp_kineto *trace, size_t steps)
{
    char text[512] = "";
    size_t count, used = 0;
    struct line_cost *of = line_costs(places, trace, NULL, most_first, &count);
    for (size_t i = 0; i < count && i < LINES_SHOWN && used < sizeof text && of[i].ns > of[0].ns / 20; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s (%.3f ms)", i ? ", " : "",
                                 kp_kineto_text(trace, of[i].line), (double)of[i].ns / 1e6 / (double)steps);
    free(of);
    return kp_strings_keep(trace->strings, text);
}

void kp_costplaces_fini(struct kp_costplaces *places) { kp_keyindex_fini(&places->keys); }

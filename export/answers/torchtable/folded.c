// SPDX-License-Identifier: Apache-2.0
/* folded.c - makes a line of each event's call stack, as torch's export_stacks does */

#include <stdlib.h>
#include <string.h>

#include "export/answers/torchtable/keyavg.h"
#include "export/show/plain.h"

bool kp_folded_metric(const char *name, bool *on_device)
{
    static const char *const device[] = {"self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total",
                                         "self_device_time_total"};
    *on_device = false;
    if (strcmp(name, "self_cpu_time_total") == 0) return true;
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (strcmp(name, device[i]) == 0) {
            *on_device = true;
            return true;
        }
    return false;
}

/* Reverses "c;b;a;" to "a;b;c", without autograd's helpers. Returns false when nothing is left. */
static bool stack_turn(const char *stack, char **out, size_t *capacity)
{
    size_t bytes = strlen(stack), used = 0;
    *out = kp_kineto_grow(*out, capacity, bytes + 2, 1);
    for (size_t end = bytes; end > 0;) {
        size_t from = end - (stack[end - 1] == ';'), to = from;
        while (from > 0 && stack[from - 1] != ';') from--;
        end = from;
        if (from == to) continue;
        char *frame = *out + used + (used > 0);
        if (used) (*out)[used] = ';';
        memcpy(frame, stack + from, to - from);
        frame[to - from] = 0;
        if (kp_keyavg_is_helper(frame)) continue;
        for (char *p = frame; *p; p++)
            if (*p == ' ' || *p == '\t' || *p == '\n') *p = '_';
        used = (size_t)(frame - *out) + (to - from);
    }
    (*out)[used] = 0;
    return used != 0;
}

/* Reversed stacks. Each is made once and kept as a string of the trace. */
struct turned {
    struct kp_kineto *trace;
    uint32_t *of; /* by the stack's string id: the line's id + 1, 0 if not made yet */
    size_t count, capacity, line_capacity, shown_capacity;
    char *line, *shown;
};

/* Makes a line's frames for flamegraph.pl. kp_plain_text() escapes what may not stand in a line. */
static uint32_t line_make(struct turned *t, uint32_t stack)
{
    if (!stack_turn(kp_kineto_text(t->trace, stack), &t->line, &t->line_capacity)) return 0;
    const size_t bytes = strlen(t->line), most = 4 * bytes + 1;
    if (kp_plain_is(t->line, bytes)) return kp_strings_put(t->trace->strings, t->line, bytes);
    t->shown = kp_kineto_grow(t->shown, &t->shown_capacity, most, 1);
    return kp_strings_put(t->trace->strings, t->shown, kp_plain_text(t->shown, most, t->line, bytes));
}

/* Returns the line's string id, 0 when no frame is left. */
static uint32_t line_of(struct turned *t, uint32_t stack)
{
    t->of = kp_kineto_grow_zeros(t->of, &t->capacity, (size_t)stack + 1, sizeof *t->of);
    if (!t->of[stack]) t->of[stack] = line_make(t, stack) + 1;
    return t->of[stack] - 1;
}

void kp_folded_walk(const struct kp_tree *tree, bool on_device, kp_folded_fn fn, void *context)
{
    struct turned turned = {.trace = tree->trace};
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        struct kp_values values;
        if (node->removed || !node->stack) continue;
        kp_tree_values(tree, i, &values);
        const double us = on_device ? values.self_device : values.self_cpu;
        const uint32_t line = us < 1 ? 0 : line_of(&turned, node->stack);
        if (line) fn(context, kp_kineto_text(tree->trace, line), (int64_t)us);
    }
    free(turned.of);
    free(turned.line);
    free(turned.shown);
}

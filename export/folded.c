// SPDX-License-Identifier: Apache-2.0
/* folded.c - the call stacks of a trace, a line an event, as torch's export_stacks writes them */
#include "export/folded.h"

#include <stdlib.h>
#include <string.h>

#include "export/plain.h"

bool kp_folded_metric(const char *name, bool *on_device)
{
    static const char *const device[] = {"self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total", "self_device_time_total"};
    *on_device = false;
    if (strcmp(name, "self_cpu_time_total") == 0)
        return true;
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (strcmp(name, device[i]) == 0) {
            *on_device = true;
            return true;
        }
    return false;
}

/* Turns "c;b;a;" round to "a;b;c". Returns false when nothing is left. */
static bool stack_turn(const char *stack, char **out, size_t *capacity)
{
    size_t bytes = strlen(stack), used = 0;
    *out = kp_kineto_grow(*out, capacity, bytes + 2, 1);
    for (size_t end = bytes; end > 0;) {
        size_t from = end - (stack[end - 1] == ';'), to = from;
        while (from > 0 && stack[from - 1] != ';')
            from--;
        end = from;
        if (from == to)
            continue;
        char *frame = *out + used + (used > 0);
        if (used)
            (*out)[used] = ';';
        memcpy(frame, stack + from, to - from);
        frame[to - from] = 0;
        if (kp_keyavg_is_helper(frame))
            continue;
        for (char *p = frame; *p; p++)
            if (*p == ' ' || *p == '\t' || *p == '\n')
                *p = '_';
        used = (size_t)(frame - *out) + (to - from);
    }
    (*out)[used] = 0;
    return used != 0;
}

/* A line of flamegraph.pl: frames, semicolons, a blank, a number. What may not stand in a line is shown as elsewhere. */
static const char *line_plain(const char *line, char **shown, size_t *capacity)
{
    const size_t bytes = strlen(line);
    if (kp_plain_is(line, bytes))
        return line;
    *shown = kp_kineto_grow(*shown, capacity, 4 * bytes + 1, 1);
    kp_plain_text(*shown, 4 * bytes + 1, line, bytes);
    return *shown;
}

void kp_folded_walk(const struct kp_tree *tree, bool on_device, kp_folded_fn fn, void *context)
{
    char *line = NULL, *shown = NULL;
    size_t capacity = 0, shown_capacity = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        struct kp_values values;
        if (node->removed || !node->stack)
            continue;
        kp_tree_values(tree, i, &values);
        double us = on_device ? values.self_device : values.self_cpu;
        if (us < 1 || !stack_turn(kp_trace_text(tree->trace, node->stack), &line, &capacity))
            continue;
        fn(context, line_plain(line, &shown, &shown_capacity), (int64_t)us);
    }
    free(line);
    free(shown);
}

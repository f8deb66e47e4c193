// SPDX-License-Identifier: Apache-2.0
/* kineto.c - makes a trace in memory and closes it */
#include "export/read/kineto/kineto.h"

#include <stdlib.h>

#include "export/read/kineto/kineto_windows.h"

struct kp_kineto *kp_kineto_new(void)
{
    struct kp_kineto *const trace = kp_kineto_zeros(1, sizeof *trace);
    trace->strings = kp_strings_open();
    return trace;
}

void kp_kineto_close(struct kp_kineto *trace)
{
    if (!trace) return;
    kp_strings_close(trace->strings);
    free(trace->events);
    free(trace->memory);
    free(trace->works);
    free(trace->args_text);
    free(trace->facts);
    kp_kineto_windows_close(trace->windows);
    free(trace);
}

int64_t kp_kineto_pid(const struct kp_kineto *trace)
{
    const struct kp_kineto_event *first = NULL;
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_kineto_event *const e = &trace->events[i];
        if (e->kind == KP_KINETO_OP) return e->pid;
        if (!first && e->kind != KP_KINETO_GPU) first = e;
    }
    return first ? first->pid : 0;
}

bool kp_kineto_keeps_concrete(const struct kp_kineto *trace, const struct kp_kineto_event *op)
{
    static const char *const taking[] = {"aten::sort", "aten::argsort", "aten::slice", "aten::narrow", "aten::select"};
    const char *const name = kp_kineto_text(trace, op->name);
    if (op->flags & KP_KINETO_LISTS) return false;
    if (strcmp(name, "aten::conv2d") == 0) return true;
    for (size_t i = 0; i < sizeof taking / sizeof *taking && !op->concrete; i++) /* a line of Python stays */
        if (strcmp(name, taking[i]) == 0) return true;
    return false;
}

const char *kp_kineto_unread(const struct kp_kineto *trace)
{
    if (trace->has_npu) return "an NPU (process Ascend Hardware)";
    for (size_t i = 0; i < trace->count; i++)
        if (strncmp(kp_kineto_text(trace, trace->events[i].cat), "mtia_", 5) == 0) return "an MTIA device";
    return NULL;
}

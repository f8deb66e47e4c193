// SPDX-License-Identifier: Apache-2.0
/* kineto_append.c - puts a trace behind another of the same process, so that both are read as one */
#include "export/read/parse/kineto_parse.h"

#include <string.h>

#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/kineto_windows.h"
#include "export/read/frames/modulename.h"

struct appending {
    struct kp_kineto *to;
    const struct kp_kineto *from;
    int64_t id_most;     /* ids of `from` count on from here */
    uint32_t event_most; /* so do its events */
};

static uint32_t text_move(const struct appending *a, uint32_t id)
{
    return id ? kp_strings_put_from(a->to->strings, a->from->strings, id) : 0;
}

static bool has_correlation(const struct kp_kineto_event *e)
{
    return e->kind == KP_KINETO_RUNTIME || e->kind == KP_KINETO_GPU;
}

static int64_t ids_end(const struct kp_kineto *trace)
{
    int64_t most = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_kineto_event *e = &trace->events[i];
        if (e->external_id > most) most = e->external_id;
        if (has_correlation(e) && e->fwd_tid > most) most = e->fwd_tid;
    }
    return most;
}

static void event_move(const struct appending *a, struct kp_kineto_event e)
{
    uint32_t *const texts[] = {&e.name, &e.cat, &e.shapes, &e.concrete, &e.stack};
    struct kp_kineto *to = a->to;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) *texts[i] = text_move(a, *texts[i]);
    if (e.flags & KP_KINETO_TEXT_PID) e.pid = text_move(a, (uint32_t)e.pid);
    if (e.flags & KP_KINETO_TEXT_TID) e.tid = text_move(a, (uint32_t)e.tid);
    if (e.external_id > 0) e.external_id += a->id_most;
    if (has_correlation(&e) && e.fwd_tid > 0) e.fwd_tid += a->id_most;
    if (e.index != UINT32_MAX) e.index += a->event_most;
    e.args_bytes = 0;
    *KP_KINETO_NEXT(to->events, to->count, to->capacity) = e;
}

static void memory_move(const struct appending *a)
{
    struct kp_kineto *to = a->to;
    for (size_t i = 0; i < a->from->memory_count; i++) {
        struct kp_kineto_memory m = a->from->memory[i];
        m.event += a->event_most;
        *KP_KINETO_NEXT(to->memory, to->memory_count, to->memory_capacity) = m;
    }
}

static void works_move(const struct appending *a)
{
    struct kp_kineto *to = a->to;
    for (size_t i = 0; i < a->from->work_count; i++) {
        struct kp_kineto_work w = a->from->works[i];
        w.event += a->event_most;
        if (w.members) w.members = kp_strings_put_from(to->strings, a->from->strings, w.members);
        *KP_KINETO_NEXT(to->works, to->work_count, to->work_capacity) = w;
    }
}

/* The waits of its steps; what else the head says is of `to`. */
static void facts_move(const struct appending *a)
{
    const struct kp_kineto *const from = a->from;
    for (size_t i = 0; i < from->fact_count; i++) {
        const char *const text = kp_kineto_text(from, from->facts[i].text);
        if (strcmp(kp_kineto_text(from, from->facts[i].path), KP_FACT_CORE_STEPS) == 0)
            kp_fact_put(a->to, KP_FACT_CORE_STEPS, text);
    }
}

void kp_kineto_append(struct kp_kineto *to, const struct kp_kineto *from)
{
    const struct appending a = {to, from, ids_end(to), (uint32_t)to->count};
    for (size_t i = 0; i < from->count; i++) event_move(&a, from->events[i]);
    kp_kineto_windows_append(to->windows, from->windows);
    kp_modulename_carry(to, from);
    memory_move(&a);
    works_move(&a);
    facts_move(&a);
    to->seen += from->seen;
    if (from->end_ns > to->end_ns) to->end_ns = from->end_ns;
    if (from->start_ns < to->start_ns) to->start_ns = from->start_ns;
    if (from->first_ns < to->first_ns) to->first_ns = from->first_ns;
    to->has_stacks |= from->has_stacks;
    to->record_shapes |= from->record_shapes;
    to->has_heap |= from->has_heap;
    if (!from->has_pass_ends) return;
    to->has_pass_ends = true;
    to->pass_pid = from->pass_pid;
    to->pass_tid = from->pass_tid;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * keyavg_calls.c - gives events without a call stack the Python calls around them
 *
 * Only torch's verbose traces have stacks. Others have python_function events: an event's stack is the calls that are
 * open on its thread when it starts. A range on a device gets its host thread's calls at the time the device begins, as
 * in torch. A CUDA call of an op gets that op's stack, see keyavg_stacks.c.
 */
#include "export/report/keyavg.h"

#include <stdlib.h>
#include <string.h>

#include "export/report/keyindex.h"

struct open_call {
    int64_t end_ns;
    uint32_t stack; /* string id of its own name and those around it */
};
struct call_lane {
    struct open_call *calls;
    size_t count, capacity;
};
struct lanes {
    struct kp_keyindex threads;
    struct call_lane *of; /* by number in `threads` */
    size_t capacity;
};

static struct call_lane *lane_get(struct lanes *l, uint64_t thread)
{
    const size_t had = l->threads.count, at = kp_keyindex_get(&l->threads, thread);
    if (at == had) {
        l->of = kp_kineto_grow(l->of, &l->capacity, had + 1, sizeof *l->of);
        l->of[at] = (struct call_lane){0};
    }
    return &l->of[at];
}

static uint32_t stack_with(struct kp_kineto *trace, const char *name, const char *around, char **buffer,
                           size_t *capacity)
{
    size_t bytes = strlen(name), more = strlen(around);
    *buffer = kp_kineto_grow(*buffer, capacity, bytes + more + 2, 1);
    memcpy(*buffer, name, bytes);
    (*buffer)[bytes] = ';';
    memcpy(*buffer + bytes + 1, around, more);
    return kp_strings_put(trace->strings, *buffer, bytes + 1 + more);
}

static uint64_t thread_of(const struct kp_kineto_event *e) { return (uint64_t)e->tid ^ ((uint64_t)e->pid << 32); }

/* Finds the calls open on a thread at a time. Nodes come by start time, so ended calls are dropped. */
static uint32_t stack_at(struct call_lane *lane, int64_t at_ns)
{
    while (lane->count && lane->calls[lane->count - 1].end_ns <= at_ns) lane->count--;
    return lane->count ? lane->calls[lane->count - 1].stack : 0;
}

/* Finds the host's event of a range on a device. Returns NULL if the trace lacks it. */
static const struct kp_kineto_event *range_of(const struct kp_tree *tree, const struct kp_op_ids *ids, int64_t id)
{
    size_t at = kp_rows_from(ids->ids, ids->count, sizeof *ids->ids, id);
    return id > 0 && at < ids->count && ids->ids[at].id == id
               ? &tree->trace->events[tree->nodes[ids->ids[at].node].event]
               : NULL;
}

struct filling {
    struct kp_tree *tree;
    struct kp_op_ids ids;
    struct lanes lanes;
    char *buffer;
    size_t capacity;
    bool all;
};

static void node_fill(struct filling *f, const struct kp_node *node)
{
    struct kp_kineto *trace = f->tree->trace;
    struct kp_kineto_event *e = &trace->events[node->event];
    const struct kp_kineto_event *on =
        e->kind == KP_KINETO_GPU_ANNOTATION ? range_of(f->tree, &f->ids, e->external_id) : e;
    if (!on || e->kind == KP_KINETO_GPU) /* device work gets its op's stack later */
        return;
    struct call_lane *lane = lane_get(&f->lanes, thread_of(on));
    uint32_t around = stack_at(lane, node->start_ns);
    bool of_none = e->kind == KP_KINETO_RUNTIME && e->external_id <= 0,
         of_op = e->kind == KP_KINETO_RUNTIME && !of_none;
    if (!e->stack && (of_none || node->on_device || (f->all && !of_op))) e->stack = around;
    if (!node->is_python) return;
    uint32_t own =
        stack_with(trace, kp_kineto_text(trace, e->name), kp_kineto_text(trace, around), &f->buffer, &f->capacity);
    lane->calls = kp_kineto_grow(lane->calls, &lane->capacity, lane->count + 1, sizeof *lane->calls);
    lane->calls[lane->count++] = (struct open_call){node->end_ns, own};
}

void kp_tree_fill_stacks(struct kp_tree *tree, bool all)
{
    struct filling f = {.tree = tree, .all = all};
    kp_op_ids_gather(&f.ids, tree);
    for (size_t i = 0; i < tree->count; i++) node_fill(&f, &tree->nodes[i]);
    for (size_t i = 0; i < f.lanes.threads.count; i++) free(f.lanes.of[i].calls);
    free(f.lanes.of);
    kp_keyindex_fini(&f.lanes.threads);
    free(f.buffer);
    kp_op_ids_fini(&f.ids);
}

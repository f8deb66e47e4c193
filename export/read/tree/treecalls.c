// SPDX-License-Identifier: Apache-2.0
/*
 * treecalls.c - gives events without a call stack the Python calls around them
 *
 * Only torch's verbose traces have stacks. Others have python_function events: an event's stack is the calls that are
 * open on its thread when it starts. A range on a device gets its host thread's calls at the time the device begins, as
 * in torch. A CUDA call of an op gets that op's stack, see treestacks.c.
 */
#include "export/read/tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/frames/framename.h"
#include "export/read/frames/ownline.h"
#include "export/read/store/keyindex.h"

struct open_call {
    int64_t end_ns;
    uint32_t stack; /* string id of its own name and those around it */
    uint32_t name, around;
};
struct call_lane {
    struct open_call *calls;
    size_t count, capacity;
};
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

/* Nothing of its thread ended before this call, around which none is, and no other call began. */
static bool is_first_call(const struct kp_tree *tree, int32_t at)
{
    const uint64_t thread = kp_tree_thread(kp_tree_event(tree, (size_t)at));
    for (int32_t i = at; i-- > 0;) {
        const struct kp_node *const before = &tree->nodes[i];
        if (before->on_device || (!before->is_python && before->end_ns > tree->nodes[at].start_ns)) continue;
        if (kp_tree_thread(kp_tree_event(tree, (size_t)i)) == thread) return false;
    }
    return true;
}

/* Do all calls around it begin when it does, and none of its thread before? */
static bool begins_with_thread(const struct kp_tree *tree, const struct kp_node *node)
{
    int32_t outer = (int32_t)(node - tree->nodes);
    for (int32_t at = node->parent; at >= 0; at = tree->nodes[at].parent) {
        if (!tree->nodes[at].is_python) continue;
        const uint8_t flags = kp_tree_event(tree, (size_t)at)->flags;
        if (tree->nodes[at].start_ns != node->start_ns || flags & KP_KINETO_CONTINUED) return false;
        outer = at;
    }
    return is_first_call(tree, outer);
}

/*
 * Calls that were open when the recording began all begin there, and no other of their thread before. Later ones begin
 * behind their callers, but in a file of whole microseconds many begin in that of their callers. In torch's own traces
 * those that were open begin one after the other, and starts_note() has noted them. A part behind a cut begins at the
 * cut, so its flag tells.
 */
static bool was_open_at_start(const struct kp_tree *tree, const struct kp_node *node)
{
    const uint8_t flags = tree->trace->events[node->event].flags;
    if (flags & (KP_KINETO_CONTINUED | KP_KINETO_OPEN_AT_START)) return flags & KP_KINETO_OPEN_AT_START;
    const int32_t near[] = {node->parent, node->first_child};
    for (int i = 0; i < 2; i++) {
        const struct kp_node *other = near[i] < 0 ? NULL : &tree->nodes[near[i]];
        if (!other || !other->is_python || other->start_ns != node->start_ns) continue;
        if (!(tree->trace->events[other->event].flags & KP_KINETO_CONTINUED)) return begins_with_thread(tree, node);
    }
    return false;
}

/* Notes the calls that were open when torch.profiler started the recording: no other begins before its own call. */
static void starts_note(struct kp_tree *tree)
{
    struct kp_kineto *const t = tree->trace;
    size_t start = 0;
    while (start < tree->count &&
           !(tree->nodes[start].is_python && kp_framename_starts_recording(kp_kineto_text(t, tree->nodes[start].name))))
        start++;
    for (size_t i = 0; i <= start && start < tree->count && !t->is_ours; i++)
        if (tree->nodes[i].is_python) t->events[tree->nodes[i].event].flags |= KP_KINETO_OPEN_AT_START;
}

uint32_t kp_tree_call_name(const struct kp_tree *tree, const struct kp_node *node)
{
    struct kp_kineto *trace = tree->trace;
    if (!node->is_python || !was_open_at_start(tree, node)) return node->name;
    struct kp_frametext text = {0};
    const char *name = kp_framename_unlined(&text, kp_kineto_text(trace, node->name));
    const uint32_t id = kp_strings_put(trace->strings, name, strlen(name));
    kp_frametext_fini(&text);
    return id;
}

uint32_t kp_tree_line(const struct kp_tree *tree, const struct kp_node *node)
{
    const uint32_t name = node->is_python ? kp_tree_call_name(tree, node) : 0;
    const uint32_t function = name ? kp_ownline_function(tree->trace, name) : 0;
    return function ? function : kp_ownline_of(tree->trace, kp_tree_stack(tree, node));
}

struct filling {
    struct kp_tree *tree;
    struct kp_op_ids ids;
    struct kp_keyindex lanes; /* of threads; rows: struct call_lane */
    struct kp_frametext frame;
    struct kp_keyindex frames; /* name << 32 | string of its place; rows: the frame, 0: not made yet */
    bool all, lines;
};

/* The text, for a frame without a name, or with a semicolon in it. */
static uint32_t stack_with(struct kp_strings *strings, uint32_t frame, uint32_t around)
{
    const char *text = kp_strings_get(strings, frame);
    if (*text && !strchr(text, ';')) return kp_strings_chain(strings, frame, around);
    const char *rest = kp_strings_get(strings, around);
    size_t bytes = strlen(text), more = strlen(rest);
    char *joined = kp_kineto_room(bytes + more + 2, 1);
    memcpy(joined, text, bytes);
    joined[bytes] = ';';
    memcpy(joined + bytes + 1, rest, more);
    const uint32_t id = kp_strings_put(strings, joined, bytes + 1 + more);
    free(joined);
    return id;
}

/* A call's name with the line that is called from it. */
static uint32_t frame_of(struct filling *f, uint32_t name, uint32_t from)
{
    struct kp_kineto *trace = f->tree->trace;
    uint32_t *const known = kp_keyindex_row(&f->frames, (uint64_t)name << 32 | from, &(uint32_t){0}, sizeof *known);
    if (*known) return *known;
    const char *const text = kp_kineto_text(trace, name);
    const char *const shown = kp_framename_at_line(&f->frame, text, kp_kineto_text(trace, from));
    return *known = shown == text ? name : kp_strings_put(trace->strings, shown, strlen(shown));
}

/* `from`: string id of the place in it that calls, 0: not known. */
static uint32_t stack_below(struct filling *f, uint32_t name, uint32_t around, uint32_t from)
{
    return stack_with(f->tree->trace->strings, f->lines ? frame_of(f, name, from) : name, around);
}

const char *kp_tree_call_from(const struct kp_tree *tree, const struct kp_kineto_event *e)
{
    const bool has_place = e->kind == KP_KINETO_PYTHON || (e->kind == KP_KINETO_OP && !(e->flags & KP_KINETO_LISTS));
    const char *const from = has_place ? kp_kineto_text(tree->trace, e->concrete) : "";
    return strchr(from, '\n') ? "" : from; /* Concrete Inputs have lines */
}

/* The stack around a call or an op: its caller's frame may have the line that called it. */
static uint32_t stack_around(struct filling *f, const struct call_lane *lane, const struct kp_kineto_event *call)
{
    const struct open_call *caller = lane->count ? &lane->calls[lane->count - 1] : NULL;
    if (!caller) return 0;
    const bool has_place = f->lines && *kp_tree_call_from(f->tree, call);
    return has_place ? stack_below(f, caller->name, caller->around, call->concrete) : caller->stack;
}

static void call_push(struct filling *f, struct call_lane *lane, const struct kp_node *node, uint32_t around)
{
    const uint32_t file_name = f->tree->trace->events[node->event].name;
    const uint32_t name = f->lines ? kp_tree_call_name(f->tree, node) : file_name;
    const uint32_t own = stack_below(f, name, around, 0);
    *KP_KINETO_NEXT(lane->calls, lane->count, lane->capacity) = (struct open_call){node->end_ns, own, name, around};
}

static void node_fill(struct filling *f, const struct kp_node *node)
{
    struct kp_kineto *trace = f->tree->trace;
    struct kp_kineto_event *e = &trace->events[node->event];
    const struct kp_kineto_event *on =
        e->kind == KP_KINETO_GPU_ANNOTATION ? range_of(f->tree, &f->ids, e->external_id) : e;
    if (!on || e->kind == KP_KINETO_GPU) /* device work gets its op's stack later */
        return;
    struct call_lane *lane = kp_keyindex_row(&f->lanes, kp_tree_thread(on), &(struct call_lane){0}, sizeof *lane);
    uint32_t around = stack_at(lane, node->start_ns);
    if (node->is_python || e->kind == KP_KINETO_OP) around = stack_around(f, lane, e);
    bool of_none = e->kind == KP_KINETO_RUNTIME && e->external_id <= 0,
         of_op = e->kind == KP_KINETO_RUNTIME && !of_none;
    if (f->lines && around && !node->on_device && e->kind != KP_KINETO_RUNTIME)
        e->stack = around; /* for torch's lines */
    if (!e->stack && (of_none || node->on_device || (f->all && !of_op))) e->stack = around;
    if (!node->is_python) return;
    call_push(f, lane, node, around);
}

static void fill(struct filling *f)
{
    starts_note(f->tree);
    kp_op_ids_gather(&f->ids, f->tree);
    for (size_t i = 0; i < f->tree->count; i++) node_fill(f, &f->tree->nodes[i]);
    struct call_lane *const lanes = f->lanes.rows;
    for (size_t i = 0; i < f->lanes.count; i++) free(lanes[i].calls);
    kp_keyindex_fini(&f->lanes);
    kp_keyindex_fini(&f->frames);
    kp_frametext_fini(&f->frame);
    kp_op_ids_fini(&f->ids);
}

void kp_tree_fill_stacks(struct kp_tree *tree, bool all) { fill(&(struct filling){.tree = tree, .all = all}); }

void kp_tree_fill_line_stacks(struct kp_tree *tree, bool all)
{
    fill(&(struct filling){.tree = tree, .all = all, .lines = true});
}

/* Calls of a program of PyTorch: the head says so, or files before 1.12 have modules. */
static bool has_calls(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        if (!tree->nodes[i].is_python) continue;
        if (tree->trace->with_stack) return true;
        if (kp_name_begins(kp_kineto_text(tree->trace, kp_tree_event(tree, i)->name), "nn.Module: ")) return true;
    }
    return false;
}

void kp_tree_fill_calls(struct kp_tree *tree)
{
    struct kp_kineto *const trace = tree->trace;
    if (trace->has_stacks) {
        kp_tree_fill_line_stacks(tree, trace->is_ours);
        return;
    }
    if (!has_calls(tree)) return;
    kp_tree_fill_line_stacks(tree, true);
    trace->has_stacks = true;
}

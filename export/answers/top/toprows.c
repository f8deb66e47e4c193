// SPDX-License-Identifier: Apache-2.0
/*
 * toprows.c - adds up the nodes of a tree, by what enum kp_top_by names
 *
 * A row's self time is that of its nodes inside the chosen time, so all rows together are what the threads did. Its
 * total leaves out a node inside another of the same row. An op has the time of the kernels that it launched; a kernel
 * is a row of its own only where its op is not in the trace.
 */
#include "export/answers/top/toprows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/facts/backwardof.h"
#include "export/read/facts/comm/commstarts.h"
#include "export/read/frames/framename.h"
#include "export/read/store/keyindex.h"
#include "export/read/frames/modulename.h"
#include "export/read/frames/ownline.h"
#include "export/read/facts/selftime.h"
#include "export/read/facts/steps/stepthreads.h"
#include "export/show/shapetext.h"
#include "export/read/facts/namefacts.h"

struct building {
    struct kp_top *top;
    const struct kp_tree *tree;
    const struct kp_chosen *chosen;
    struct kp_keyindex threads, lanes; /* lanes: of a row and a thread; rows: when its last node ends, not nested */
    struct kp_stepthreads step_threads;
    int64_t *self, *step_self; /* each node's self time, in what was chosen and in its steps */
    uint32_t *backward_of;     /* by module: whose place each node has (backwardof.h) */
    int32_t *started_by;       /* by another place: of ranges of a backend, else -1 (commstarts.h), or NULL */
    int64_t *alone;            /* of these, in steps, what runs beside nothing else; NULL: not asked for */
    struct node_bytes *bytes;  /* each node's, with those of the allocators that it called. NULL: none were recorded */
};
struct node_bytes {
    int64_t cpu, device;
};

/* The cost of a node inside the chosen time, and inside its steps. Count 1: it begins there. */
struct cost {
    struct kp_top_cost all, steps;
};

static const struct kp_kineto_event *event_of(const struct kp_tree *tree, const struct kp_node *node)
{
    return &tree->trace->events[node->event];
}

/* ---- bytes ---- */

static void bytes_find(struct building *b)
{
    if (!b->tree->trace->profile_memory) return;
    b->bytes = kp_kineto_zeros(b->tree->count + 1, sizeof *b->bytes);
    for (size_t i = 0; i < b->tree->count; i++) {
        struct kp_values values;
        if (b->tree->nodes[i].removed || b->tree->nodes[i].on_device) continue;
        kp_tree_values(b->tree, i, &values);
        if (!values.self_cpu_bytes && !values.self_device_bytes) continue;
        struct node_bytes *to = &b->bytes[kp_tree_asker(b->tree, (int32_t)i)];
        to->cpu += values.self_cpu_bytes;
        to->device += values.self_device_bytes;
    }
}

/* ---- costs ---- */

/* The row of the op that launched the work has its time. */
static bool is_in_op_row(const struct building *b, const struct kp_node *node)
{
    const int32_t op = node->launcher;
    return op >= 0 && (!b->chosen->is_of_calls || kp_spans_has(&b->chosen->spans, b->tree->nodes[op].start_ns));
}

/* Work of a GPU belongs to the time in which it was asked for, as its op's row has it; else to when it ran. */
static bool cost_of_gpu(const struct building *b, size_t i, struct cost *out)
{
    const struct kp_node *node = &b->tree->nodes[i];
    if (event_of(b->tree, node)->kind != KP_KINETO_GPU) return false;
    if (b->top->by != KP_TOP_BY_KERNEL && is_in_op_row(b, node)) return false;
    const int64_t asked = kp_chosen_asked_ns(b->chosen, b->tree, i), at = asked == INT64_MIN ? node->start_ns : asked;
    const double span = (double)(node->end_ns - node->start_ns);
    out->all.count = kp_spans_has(&b->chosen->spans, at);
    if (!out->all.count) return false;
    out->all.gpu_self_ns = out->all.longest_ns = span;
    out->all.gpu_total_ns = kp_top_is_by_place(b->top) && node->launcher < 0 && node->call >= 0
                                ? 0
                                : span; /* the call that launched it has it */
    out->all.moved_bytes = event_of(b->tree, node)->number;
    if (kp_spans_has(&b->chosen->in_steps, at)) out->steps = out->all;
    return true;
}

/* How long a call takes, with what earlier pieces of the trace have of it. */
static int64_t whole_ns(const struct kp_tree *tree, const struct kp_node *node)
{
    const struct kp_kineto_event *const e = event_of(tree, node);
    return node->end_ns - node->start_ns + (kp_kineto_has_before(e) ? e->number : 0);
}

/* The whole that counts at the node's begin. */
static void begun_add(const struct building *b, size_t i, struct cost *out)
{
    struct kp_values values = {0};
    if (b->tree->has_device) kp_tree_values(b->tree, i, &values);
    struct kp_top_cost *const costs[] = {&out->all, &out->steps};
    for (int c = 0; c < 2; c++) {
        if (!costs[c]->count) continue;
        costs[c]->longest_ns = (double)whole_ns(b->tree, &b->tree->nodes[i]);
        costs[c]->gpu_self_ns = values.self_device * 1e3;
        costs[c]->gpu_total_ns = (values.device_total + kp_tree_work(b->tree, i).called_us) * 1e3;
        costs[c]->self_bytes = b->bytes ? b->bytes[i].cpu : 0;
        costs[c]->gpu_self_bytes = b->bytes ? b->bytes[i].device : 0;
    }
}

/* The piece of the trace before this one has counted it. */
static bool is_continued(const struct building *b, size_t node)
{
    return kp_tree_event(b->tree, node)->flags & KP_KINETO_CONTINUED;
}

static bool is_left_out(const struct building *b, const struct kp_node *node)
{
    if (b->top->by != KP_TOP_BY_SYMBOL) return false;
    return strcmp(kp_kineto_text(b->tree->trace, event_of(b->tree, node)->cat), "symbol") != 0;
}

/* False: the node has no part in the chosen time, or none of its own. */
static bool cost_of(const struct building *b, size_t i, struct cost *out)
{
    const struct kp_node *node = &b->tree->nodes[i];
    const struct kp_spans *all = &b->chosen->spans, *steps = &b->chosen->in_steps;
    *out = (struct cost){0};
    if (b->top->by == KP_TOP_BY_KERNEL) return !node->removed && node->on_device && cost_of_gpu(b, i, out);
    if (node->removed || kp_stepthreads_is_idle(&b->step_threads, b->tree, node) || is_left_out(b, node)) return false;
    if (node->on_device) return cost_of_gpu(b, i, out);
    out->all.count = kp_spans_has(all, node->start_ns);
    out->all.total_ns = (double)kp_spans_between(all, node->start_ns, node->end_ns);
    if (!out->all.count && out->all.total_ns <= 0) return false;
    out->steps.count = !is_continued(b, i) && kp_spans_has(steps, node->start_ns);
    out->steps.total_ns = (double)kp_spans_between(steps, node->start_ns, node->end_ns);
    out->all.self_ns = (double)b->self[i];
    out->steps.self_ns = (double)b->step_self[i];
    if (out->all.count) begun_add(b, i, out);
    return true;
}

/* ---- keys ---- */

/* Python code of the program itself has no line: its function stands for it. A step's marker has none either: it began
 * where the step before ended. */
static uint32_t line_of(struct building *b, const struct kp_node *node)
{
    if (kp_node_is_step(b->tree, node)) return 0;
    const uint32_t own = kp_tree_line(b->tree, node);
    const bool is_function =
        node->is_python && own == kp_ownline_function(b->tree->trace, kp_tree_call_name(b->tree, node));
    if (b->top->by != KP_TOP_BY_LIBRARY || (own && is_function)) return own;
    return kp_ownline_library(b->tree->trace, kp_tree_stack(b->tree, node));
}

/* A call of Python is its own function, and the rest is of the innermost that runs. */
static uint32_t function_of(struct building *b, const struct kp_node *node)
{
    const uint32_t from = node->is_python ? node->name : kp_tree_stack(b->tree, node);
    if (!from || kp_node_is_step(b->tree, node)) return 0;
    return kp_ownline_any_function(b->tree->trace, from);
}

static uint32_t module_of(struct building *b, const struct kp_node *node)
{
    return kp_ownline_modules(b->tree->trace, kp_tree_stack(b->tree, node));
}

static bool is_backward(const struct building *b, const struct kp_node *node)
{
    return kp_node_is_backward(b->tree, (size_t)(node - b->tree->nodes));
}

/* The node whose place this one has. */
static const struct kp_node *placed(const struct building *b, const struct kp_node *node)
{
    const size_t at = (size_t)(node - b->tree->nodes);
    if (b->started_by && b->started_by[at] >= 0) return &b->tree->nodes[b->started_by[at]];
    return b->backward_of ? &b->tree->nodes[b->backward_of[at]] : node;
}

static size_t row_for(struct kp_top *top, uint32_t name, uint32_t shapes, bool backward)
{
    const uint64_t key = (uint64_t)name | (uint64_t)shapes << 32 | (uint64_t)backward << 63;
    const size_t at = kp_keyindex_get(&top->keys, key);
    if (at == top->count) {
        *KP_KINETO_NEXT(top->rows, top->count, top->capacity) =
            (struct kp_top_row){.name = name, .shapes = shapes, .is_backward = backward};
    }
    return at;
}

static bool is_before(const struct building *b, const struct kp_node *node)
{
    return node->on_device && kp_tree_asked_ns(b->tree, (size_t)(node - b->tree->nodes)) == INT64_MIN;
}

static uint32_t before_name(const struct building *b)
{
    return kp_strings_put(b->tree->trace->strings, KP_TOP_BEFORE, sizeof KP_TOP_BEFORE - 1);
}

/* With the types behind them. */
static uint32_t shapes_of(struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    char types[64], text[1024];
    const uint32_t shapes = kp_kineto_shapes(e);
    if (e->kind != KP_KINETO_OP || !shapes || !*kp_shapetext_types(types, sizeof types, e->device_type)) return shapes;
    const int bytes = snprintf(text, sizeof text, "%s%s", kp_kineto_text(trace, shapes), types);
    return bytes < (int)sizeof text ? kp_strings_put(trace->strings, text, (size_t)bytes) : shapes;
}

static size_t row_of(struct building *b, const struct kp_node *node, uint32_t line)
{
    if (b->top->by != KP_TOP_BY_KERNEL && is_before(b, node)) return row_for(b->top, before_name(b), 0, false);
    switch (b->top->by) {
    case KP_TOP_BY_LIBRARY:
    case KP_TOP_BY_LINE: return row_for(b->top, line, 0, line && is_backward(b, placed(b, node)));
    case KP_TOP_BY_FUNCTION: {
        const uint32_t function = function_of(b, placed(b, node));
        return row_for(b->top, function, 0, function && is_backward(b, placed(b, node)));
    }
    case KP_TOP_BY_CLASS:
    case KP_TOP_BY_MODULE: {
        const uint32_t module = module_of(b, placed(b, node));
        return row_for(b->top, module, 0, module && is_backward(b, placed(b, node)));
    }
    case KP_TOP_BY_SHAPE: return row_for(b->top, node->name, shapes_of(b->tree->trace, event_of(b->tree, node)), false);
    default: return row_for(b->top, node->name, 0, false);
    }
}

/* ---- adding up ---- */

/* How far the nodes of a row reach on a thread: all, and those that begin in the chosen time. */
struct reach {
    int64_t end, counted_end;
};

/* Whether the node lies in an earlier one of its row and thread, and in one that counts. Nodes come by start time. */
static bool is_nested(struct building *b, const struct kp_node *node, size_t row, bool counts, bool *in_counted)
{
    const struct kp_kineto_event *e = event_of(b->tree, node);
    const size_t thread = kp_keyindex_get(&b->threads, kp_tree_thread(e));
    const uint64_t lane = (uint64_t)row << 32 | thread;
    struct reach *const r = kp_keyindex_row(&b->lanes, lane, &(struct reach){INT64_MIN, INT64_MIN}, sizeof *r);
    const bool is_nested = node->start_ns < r->end;
    *in_counted = node->start_ns < r->counted_end;
    if (!is_nested) r->end = node->end_ns;
    if (!*in_counted && counts) r->counted_end = node->end_ns;
    return is_nested;
}

void kp_top_cost_add(struct kp_top_cost *to, const struct kp_top_cost *from)
{
#define ADD(field) to->field += from->field;
#define MOST(field) \
    if (from->field > to->field) to->field = from->field;
#define KP_FIGURE(type, field, joins, page) joins(field)
#include "export/answers/top/topcolumns.def"
#undef KP_FIGURE
}

static struct kp_top_cost own_part(struct kp_top_cost cost, bool is_counted, bool nested)
{
    if (!is_counted) cost.count = 0;
    if (nested) cost.total_ns = cost.gpu_total_ns = 0;
    return cost;
}

static void row_add(struct building *b, size_t node, size_t at, const struct cost *cost)
{
    struct kp_top_row *row = &b->top->rows[at];
    bool in_counted;
    const bool nested = is_nested(b, &b->tree->nodes[node], at, cost->all.count, &in_counted);
    const bool is_counted = !(kp_top_is_by_place(b->top) && in_counted) && !is_continued(b, node);
    const struct kp_top_cost all = own_part(cost->all, is_counted, nested);
    const struct kp_top_cost steps = own_part(cost->steps, is_counted, nested);
    kp_top_cost_add(&row->cost, &all);
    kp_top_cost_add(&row->steps, &steps);
}

static void share_add(struct kp_top *top, const struct kp_top_share *share)
{
    const size_t had = top->share_count;
    if (!share->line) return;
    const size_t at = kp_keyindex_get(&top->share_keys, (uint64_t)share->row << 33 | (uint64_t)share->line << 1 |
                                                            (uint64_t)share->is_backward);
    if (at == had) {
        top->shares = kp_kineto_grow(top->shares, &top->share_capacity, had + 1, sizeof *top->shares);
        top->shares[at] = *share;
        top->share_count++;
    } else {
        top->shares[at].self_ns += share->self_ns;
        top->shares[at].step_self_ns += share->step_self_ns;
    }
}

/* The first by name counts among equals. */
static bool is_line_better(const struct kp_top *top, const struct kp_top_share *share, const struct kp_top_share *than)
{
    if (share->self_ns < than->self_ns || share->self_ns > than->self_ns) return share->self_ns > than->self_ns;
    const int order = strcmp(kp_kineto_text(top->trace, share->line), kp_kineto_text(top->trace, than->line));
    return order ? order < 0 : share->is_backward < than->is_backward;
}

/* Gives each row the line with the most self time. */
static void lines_settle(struct kp_top *top)
{
    uint32_t *best = kp_kineto_room(top->count + 1, sizeof *best);
    for (size_t i = 0; i < top->count; i++) top->rows[i].lines = 0;
    for (uint32_t i = 0; i < top->share_count; i++) {
        const struct kp_top_share *share = &top->shares[i];
        struct kp_top_row *row = &top->rows[share->row];
        if (row->lines++ && !is_line_better(top, share, &top->shares[best[share->row]])) continue;
        best[share->row] = i;
        row->line = share->line;
        row->line_ns = share->self_ns;
        row->is_line_backward = share->is_backward;
    }
    free(best);
}

static void sum_make(struct kp_top *top)
{
    top->sum = (struct kp_top_row){0};
    top->has_gpu = top->has_gpu_memory = top->has_lines = false;
    for (size_t i = 0; i < top->count; i++) {
        const struct kp_top_row *row = &top->rows[i];
        kp_top_cost_add(&top->sum.cost, &row->cost);
        kp_top_cost_add(&top->sum.steps, &row->steps);
        top->has_gpu |= row->cost.gpu_self_ns > 0;
        top->has_gpu_memory |= row->cost.gpu_self_bytes != 0;
        top->has_lines |= row->lines != 0 || (kp_top_is_by_line(top) && row->name);
    }
}

static void *array_get(size_t count, size_t item_bytes) { return kp_kineto_room(count + 1, item_bytes); }

/* Takes a piece of a thread's time that is the node's own. */
static void self_add(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    const struct building *b = context;
    b->self[node] += kp_spans_between(&b->chosen->spans, from_ns, to_ns);
    b->step_self[node] += kp_spans_between(&b->chosen->in_steps, from_ns, to_ns);
}

/* Takes a piece of a step's marker: by place it is of the call that runs, else the marker has that call's line. */
static void marker_add(void *context, size_t marker, size_t call, int64_t from_ns, int64_t to_ns)
{
    struct building *b = context;
    const struct kp_node *node = &b->tree->nodes[marker];
    const int64_t self_ns = kp_spans_between(&b->chosen->spans, from_ns, to_ns);
    self_add(b, kp_top_is_by_place(b->top) ? call : marker, from_ns, to_ns);
    if (kp_top_is_by_place(b->top) || b->top->by == KP_TOP_BY_KERNEL || self_ns <= 0) return;
    const double step_ns = (double)kp_spans_between(&b->chosen->in_steps, from_ns, to_ns);
    share_add(b->top,
              &(struct kp_top_share){(uint32_t)row_of(b, node, 0), line_of(b, &b->tree->nodes[call]), false,
                                     b->tree->has_device ? 0 : (double)self_ns, b->tree->has_device ? 0 : step_ns});
}

/* By place, the marker of a step whose time is its calls' has nothing. */
static bool is_empty(const struct building *b, const struct kp_node *node, const struct kp_top_cost *cost)
{
    if (cost->self_ns > 0 || !kp_top_is_by_place(b->top) || !kp_node_is_step(b->tree, node)) return false;
    return !cost->count || (cost->self_bytes == 0 && cost->gpu_self_bytes == 0 && cost->gpu_self_ns <= 0);
}

/* The op that launched work of a GPU; 0: the trace has it not. */
static uint32_t op_of(const struct building *b, const struct kp_node *node)
{
    if (is_before(b, node)) return before_name(b);
    return node->launcher < 0 ? 0 : b->tree->nodes[node->launcher].name;
}

/* By line: what calls that line of an op. A function's own time has its row, and stacks tell no caller of it. */
static uint32_t caller_of(struct building *b, const struct kp_node *node)
{
    if (b->top->by != KP_TOP_BY_LINE || node->is_python) return 0;
    return kp_ownline_caller(b->tree->trace, kp_tree_stack(b->tree, placed(b, node)));
}

static void node_add(struct building *b, size_t i)
{
    const struct kp_node *node = &b->tree->nodes[i];
    struct cost cost;
    if (!cost_of(b, i, &cost) || is_empty(b, node, &cost.all)) return;
    const uint32_t line = b->top->by == KP_TOP_BY_KERNEL ? op_of(b, node) : line_of(b, placed(b, node));
    const size_t row = row_of(b, node, line);
    row_add(b, i, row, &cost);
    if (b->started_by && b->started_by[i] >= 0) {
        b->top->has_begun = true, b->top->rows[row].begun_ns += cost.steps.self_ns;
        if (b->alone) b->top->rows[row].begun_alone_ns += (double)b->alone[i];
    }
    if (!cost.all.count && cost.all.self_ns <= 0) return; /* all of it is what it calls */
    const bool on_gpu = b->tree->has_device, is_line = kp_top_is_by_line(b->top);
    share_add(b->top, &(struct kp_top_share){(uint32_t)row, is_line ? caller_of(b, node) : line,
                                             !is_line && is_backward(b, placed(b, node)),
                                             on_gpu ? cost.all.gpu_self_ns : cost.all.self_ns,
                                             on_gpu ? cost.steps.gpu_self_ns : cost.steps.self_ns});
}

/* The chosen time that no node of the host covers. */
static void gap_find(struct kp_top *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_spans covered = {0};
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (!node->removed && !node->on_device) kp_spans_add(&covered, node->start_ns, node->end_ns);
    }
    kp_spans_settle(&covered);
    out->gap_ns = kp_spans_length(&chosen->spans, NULL) - kp_spans_length(&covered, &chosen->spans);
    out->step_gap_ns = kp_spans_length(&chosen->in_steps, NULL) - kp_spans_length(&covered, &chosen->in_steps);
    kp_spans_fini(&covered);
}

static void calls_find(struct kp_top *out, const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count && !out->has_modules; i++) {
        if (!tree->nodes[i].is_python) continue;
        out->has_calls = true;
        out->has_modules = kp_framename_module(kp_kineto_text(tree->trace, tree->nodes[i].name)) != NULL;
    }
}

void kp_top_init(struct kp_top *out, struct kp_kineto *trace, enum kp_top_by by)
{
    *out = (struct kp_top){.trace = trace, .by = by};
}

static void top_begin(struct kp_top *out, const struct kp_tree *tree, const struct kp_chosen *chosen, enum kp_top_by by)
{
    kp_top_init(out, tree->trace, by);
    out->has_memory = tree->trace->profile_memory;
    out->steps = chosen->step_count;
}

/* If calls of Python were recorded, the one that waits for a range has its time, and the line of that. */
static void starts_find(struct building *b)
{
    for (size_t i = 0; i < b->tree->count; i++)
        if (b->tree->nodes[i].is_python && !kp_node_is(b->tree, i, KP_NAME_COLLECTS)) return;
    b->started_by = kp_commstarts_find(b->tree);
}

/* After top_begin. */
static void building_init(struct building *b)
{
    kp_stepthreads_find(&b->step_threads, b->tree);
    b->self = kp_kineto_zeros(b->tree->count + 1, sizeof *b->self);
    b->step_self = kp_kineto_zeros(b->tree->count + 1, sizeof *b->step_self);
    if (kp_top_is_by_module(b->top)) b->backward_of = kp_backward_of(b->tree);
    if (kp_top_is_by_place(b->top)) starts_find(b);
    bytes_find(b);
}

static void building_fini(struct building *b)
{
    kp_keyindex_fini(&b->threads);
    kp_keyindex_fini(&b->lanes);
    kp_stepthreads_fini(&b->step_threads);
    free(b->self);
    free(b->step_self);
    free(b->backward_of);
    free(b->started_by);
    free(b->alone);
    free(b->bytes);
}

void kp_top_build(struct kp_top *out, const struct kp_tree *tree, const struct kp_chosen *chosen, enum kp_top_by by)
{
    struct building b = {.top = out, .tree = tree, .chosen = chosen};
    top_begin(out, tree, chosen, by);
    building_init(&b);
    if (b.started_by) b.alone = kp_commstarts_alone(tree, b.started_by, &chosen->in_steps);
    kp_selftime_each_marked(tree, self_add, marker_add, &b);
    for (size_t i = 0; i < tree->count; i++) node_add(&b, i);
    gap_find(out, tree, chosen);
    calls_find(out, tree);
    lines_settle(out);
    sum_make(out);
    building_fini(&b);
}

/* ---- each step by itself ---- */

/* Lists the nodes that have a part in each step: step i has nodes[first[i]] to nodes[first[i + 1]]. A node of a device
 * is of the step that asked for it. */
struct step_nodes {
    uint32_t *nodes;
    size_t *first;
};

/* If steps are calls of one thread, so are their nodes. */
static bool is_of_thread(const struct building *b, const struct kp_node *node)
{
    const int32_t asker = node->on_device ? node->call : (int32_t)(node - b->tree->nodes);
    if (!b->chosen->has_thread) return true;
    return asker >= 0 && kp_tree_thread(kp_tree_event(b->tree, (size_t)asker)) == b->chosen->thread;
}

static void step_nodes_walk(struct step_nodes *of, const struct building *b, const struct kp_step *steps, size_t count,
                            bool fills)
{
    for (uint32_t i = 0; i < b->tree->count; i++) {
        const struct kp_node *const node = &b->tree->nodes[i];
        if (!is_of_thread(b, node)) continue;
        const int64_t from_ns = node->on_device ? kp_chosen_asked_ns(b->chosen, b->tree, i) : node->start_ns;
        const int64_t asked_ns = node->on_device && from_ns == INT64_MIN ? node->start_ns : from_ns;
        const int64_t to_ns = node->on_device ? asked_ns : node->end_ns;
        for (size_t s = kp_step_after(steps, count, asked_ns);
             s < count && (steps[s].start_ns < to_ns || kp_step_at(&steps[s], 1, asked_ns) == 0); s++) {
            if (fills) of->nodes[of->first[s]++] = i;
            else of->first[s + 1]++;
        }
    }
}

static void step_nodes_make(struct step_nodes *out, const struct building *b)
{
    const struct kp_step *const steps = b->chosen->steps;
    const size_t count = b->chosen->step_count;
    out->first = kp_kineto_zeros(count + 2, sizeof *out->first);
    step_nodes_walk(out, b, steps, count, false);
    for (size_t s = 0; s < count; s++) out->first[s + 1] += out->first[s];
    out->nodes = kp_kineto_room(out->first[count] + 1, sizeof *out->nodes);
    step_nodes_walk(out, b, steps, count, true);
    for (size_t s = count; s > 0; s--) out->first[s] = out->first[s - 1];
    out->first[0] = 0;
}

/* Builds the rows of one step, as kp_top_build() does of a choice of that step alone. */
static void step_build(struct building *b, const uint32_t *nodes, size_t count, const struct kp_step *step)
{
    struct kp_chosen one = {.steps = (struct kp_step *)step, .step_count = 1};
    kp_spans_add(&one.spans, step->start_ns, step->end_ns);
    kp_spans_add(&one.in_steps, step->start_ns, step->end_ns);
    kp_spans_settle(&one.spans);
    kp_spans_settle(&one.in_steps);
    b->chosen = &one;
    top_begin(b->top, b->tree, &one, b->top->by);
    kp_selftime_each_of(b->tree, nodes, count, self_add, marker_add, b);
    for (size_t i = 0; i < count; i++) node_add(b, nodes[i]);
    for (size_t i = 0; i < count; i++) b->self[nodes[i]] = b->step_self[nodes[i]] = 0;
    lines_settle(b->top);
    sum_make(b->top);
    kp_keyindex_fini(&b->lanes);
    kp_spans_fini(&one.spans);
    kp_spans_fini(&one.in_steps);
}

void kp_top_each_step(const struct kp_tree *tree, const struct kp_chosen *chosen, enum kp_top_by by,
                      kp_top_step_fn give, void *context)
{
    struct kp_top top = {.by = by};
    struct building b = {.top = &top, .tree = tree, .chosen = chosen};
    struct step_nodes of;
    building_init(&b);
    step_nodes_make(&of, &b);
    for (size_t s = 0; s < chosen->step_count; s++) {
        step_build(&b, of.nodes + of.first[s], of.first[s + 1] - of.first[s], &chosen->steps[s]);
        kp_top_order(&top, KP_TOP_SELF);
        give(context, s, &top);
        kp_top_fini(&top);
    }
    free(of.nodes);
    free(of.first);
    building_fini(&b);
}

/* ---- several traces together ---- */

static uint32_t text_move(const struct kp_top *into, const struct kp_top *from, uint32_t id)
{
    return kp_strings_put_from(into->trace->strings, from->trace->strings, id);
}

static size_t row_move(struct kp_top *into, const struct kp_top *from, const struct kp_top_row *row)
{
    const size_t at =
        row_for(into, text_move(into, from, row->name), text_move(into, from, row->shapes), row->is_backward);
    struct kp_top_row *to = &into->rows[at];
    kp_top_cost_add(&to->cost, &row->cost);
    kp_top_cost_add(&to->steps, &row->steps);
    return at;
}

void kp_top_add(struct kp_top *into, const struct kp_top *more)
{
    uint32_t *rows = array_get(more->count, sizeof *rows);
    kp_modulename_carry(into->trace, more->trace);
    for (size_t i = 0; i < more->count; i++) rows[i] = (uint32_t)row_move(into, more, &more->rows[i]);
    for (size_t i = 0; i < more->share_count; i++) {
        const struct kp_top_share *from = &more->shares[i];
        share_add(into, &(struct kp_top_share){rows[from->row], text_move(into, more, from->line), from->is_backward,
                                               from->self_ns, from->step_self_ns});
    }
    free(rows);
    into->steps += more->steps;
    into->gap_ns += more->gap_ns;
    into->step_gap_ns += more->step_gap_ns;
    into->has_memory |= more->has_memory;
    into->has_calls |= more->has_calls;
    into->has_begun |= more->has_begun;
    into->has_modules |= more->has_modules;
    lines_settle(into);
    sum_make(into);
}

void kp_top_shares_join(struct kp_top *top)
{
    struct kp_top_share *const shares = top->shares;
    const size_t count = top->share_count;
    kp_keyindex_fini(&top->share_keys);
    top->share_keys = (struct kp_keyindex){0};
    top->shares = NULL;
    top->share_count = top->share_capacity = 0;
    for (size_t i = 0; i < count; i++) {
        shares[i].is_backward = false;
        share_add(top, &shares[i]);
    }
    free(shares);
    lines_settle(top);
    sum_make(top);
}

/* ---- steps alone ---- */

void kp_top_keep_steps(struct kp_top *top)
{
    size_t kept = 0, shares = 0;
    uint32_t *at = kp_kineto_room(top->count + 1, sizeof *at);
    for (size_t i = 0; i < top->count; i++) {
        struct kp_top_row row = top->rows[i];
        const bool is_in = row.steps.count || row.steps.self_ns > 0 || row.steps.gpu_self_ns > 0;
        at[i] = is_in ? (uint32_t)kept : UINT32_MAX;
        row.cost = row.steps;
        row.line = 0;
        row.line_ns = 0;
        if (is_in) top->rows[kept++] = row;
    }
    for (size_t i = 0; i < top->share_count; i++) {
        struct kp_top_share share = top->shares[i];
        if (at[share.row] == UINT32_MAX || share.step_self_ns <= 0) continue;
        share.row = at[share.row];
        share.self_ns = share.step_self_ns;
        top->shares[shares++] = share;
    }
    top->count = kept;
    top->share_count = shares;
    top->is_of_steps = true;
    top->gap_ns = top->step_gap_ns;
    lines_settle(top);
    sum_make(top);
    free(at);
}

void kp_top_fini(struct kp_top *top)
{
    free(top->rows);
    free(top->shares);
    kp_keyindex_fini(&top->keys);
    kp_keyindex_fini(&top->share_keys);
    top->rows = NULL;
    top->count = 0;
}

void kp_top_add_gap(struct kp_top *top, bool has_marked_steps)
{
    const char *const text =
        has_marked_steps ? "outside any op or range, outside the steps" : "outside any op or range";
    top->has_gap = top->by != KP_TOP_BY_KERNEL && top->by != KP_TOP_BY_SYMBOL;
    if (!top->has_gap || top->gap_ns <= (int64_t)(top->sum.cost.self_ns / 1000)) return;
    const uint32_t name = kp_top_is_by_place(top) ? 0 : kp_strings_put(top->trace->strings, text, strlen(text));
    const size_t at = row_for(top, name, 0, false); /* may move the rows */
    struct kp_top_row *const row = &top->rows[at];
    const struct kp_top_cost all = {.self_ns = (double)top->gap_ns, .total_ns = (double)top->gap_ns};
    const struct kp_top_cost steps = {.self_ns = (double)top->step_gap_ns, .total_ns = (double)top->step_gap_ns};
    kp_top_cost_add(&row->cost, &all);
    kp_top_cost_add(&row->steps, &steps);
    sum_make(top);
}

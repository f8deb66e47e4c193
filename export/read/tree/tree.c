// SPDX-License-Identifier: Apache-2.0
/*
 * tree.c - nests the host events of a trace and works out total and self values
 *
 * The rules are those of torch 2.15's tables. A thread's events are sorted by (start, -end). An event's parent is the
 * nearest earlier one that encloses it. An only child with its parent's name is folded into the parent. CUDA calls nest
 * in the same way, with or without an op.
 */
#include "export/read/tree/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"

struct memory_record {
    int64_t at_ns; /* the key, so it stands first: kp_rows_from */
    int64_t cpu, device;
    uint32_t event;
    bool used;
};
struct memory_sums {
    struct memory_record *records; /* by time */
    int64_t *cpu_sum, *device_sum; /* sums of the records before index i */
    bool has_cpu, has_device;
    int64_t *edges;     /* +1 where a node of the host begins to have records, -1 behind its last */
    size_t count, near; /* near: what memory_from found last */
};

/* ---- memory ---- */

KP_ORDER2(memory_order, struct memory_record, at_ns, event)

static bool is_named(const struct kp_kineto *trace, const struct kp_kineto_event *e, const char *name)
{
    return strcmp(kp_kineto_text(trace, e->name), name) == 0;
}

static void memory_init(struct memory_sums *m, const struct kp_kineto *trace)
{
    size_t capacity = 0;
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_kineto_event *e = &trace->events[i];
        if (e->kind != KP_KINETO_MEMORY || !is_named(trace, e, "[memory]")) continue;
        bool host = e->device_type == 0 || e->device_type == 2 || e->device_type == 5;
        bool gpu = e->device_type == 1 || e->device_type == 6 || e->device_type == 12 || e->device_type == 20;
        *KP_KINETO_NEXT(m->records, m->count, capacity) = (struct memory_record){
            .at_ns = e->start_ns, .cpu = host ? e->number : 0, .device = gpu ? e->number : 0, .event = (uint32_t)i};
        m->has_cpu |= host;
        m->has_device |= gpu;
    }
    if (m->count) kp_qsort(m->records, m->count, sizeof *m->records, memory_order);
    m->cpu_sum = kp_kineto_room(m->count + 1, sizeof *m->cpu_sum);
    m->device_sum = kp_kineto_room(m->count + 1, sizeof *m->device_sum);
    m->edges = kp_kineto_zeros(m->count + 1, sizeof *m->edges);
    m->cpu_sum[0] = m->device_sum[0] = 0;
    for (size_t i = 0; i < m->count; i++) {
        m->cpu_sum[i + 1] = m->cpu_sum[i] + m->records[i].cpu;
        m->device_sum[i + 1] = m->device_sum[i] + m->records[i].device;
    }
}

static void memory_fini(struct memory_sums *m)
{
    free(m->records);
    free(m->cpu_sum);
    free(m->device_sum);
    free(m->edges);
}

static bool is_from(const struct memory_sums *m, size_t at, int64_t ns)
{
    return (at == 0 || m->records[at - 1].at_ns < ns) && (at == m->count || m->records[at].at_ns >= ns);
}

/* Returns the index of the first record at or after `ns`: mostly that of the node before, or the next. */
static size_t memory_from(struct memory_sums *m, int64_t ns)
{
    if (!is_from(m, m->near, ns) && (m->near == m->count || !is_from(m, ++m->near, ns)))
        m->near = kp_rows_from(m->records, m->count, sizeof *m->records, ns);
    return m->near;
}

static void bytes_set(struct kp_tree *tree, uint32_t event, int64_t cpu, int64_t device)
{
    if (tree->cpu_bytes) tree->cpu_bytes[event] = cpu;
    if (tree->device_bytes) tree->device_bytes[event] = device;
}

static void memory_charge(struct kp_tree *tree, struct memory_sums *m, const struct kp_node *node)
{
    const size_t from = memory_from(m, node->start_ns);
    if (from == m->count || m->records[from].at_ns > node->end_ns) return;
    const size_t to = kp_rows_from(m->records, m->count, sizeof *m->records, node->end_ns + 1);
    bytes_set(tree, node->event, m->cpu_sum[to] - m->cpu_sum[from], m->device_sum[to] - m->device_sum[from]);
    m->edges[from]++;
    m->edges[to]--;
}

/* ---- nodes ---- */

static bool is_skipped(const char *name)
{
    static const char *const skipped[] = {
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
        "[memory]",
        "[OutOfMemory]",
    };
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++)
        if (skipped[i][0] == name[0] && strcmp(skipped[i], name) == 0) return true;
    return false;
}

/* Splits NAME.OVERLOAD, as traces have it. No schema name contains a dot. ProfilerStep#N becomes ProfilerStep*. */
static void name_split(struct kp_tree *tree, struct kp_node *node)
{
    const struct kp_kineto_event *e = &tree->trace->events[node->event];
    const char *name = kp_kineto_text(tree->trace, e->name);
    struct kp_strings *strings = tree->trace->strings;
    if (kp_kineto_is_step(name)) {
        node->name = kp_strings_put(strings, "ProfilerStep*", 13);
        return;
    }
    const char *colons = e->kind == KP_KINETO_OP ? strstr(name, "::") : NULL;
    const char *dot = colons ? strchr(colons, '.') : NULL;
    if (!dot ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != (size_t)(colons - name) ||
        strpbrk(colons + 2, ":( /<,"))
        return;
    node->name = kp_strings_put(strings, name, (size_t)(dot - name));
}

uint32_t kp_tree_overload(const struct kp_tree *tree, const struct kp_node *node)
{
    const uint32_t whole = tree->trace->events[node->event].name;
    const char *const name = kp_kineto_text(tree->trace, whole);
    if (node->name == whole || kp_kineto_is_step(name)) return 0;
    const char *const overload = name + strlen(kp_kineto_text(tree->trace, node->name)) + 1;
    return kp_strings_put(tree->trace->strings, overload, strlen(overload));
}

static struct kp_node *node_add(struct kp_tree *tree, size_t event)
{
    const struct kp_kineto_event *e = &tree->trace->events[event];
    struct kp_node *node = KP_KINETO_NEXT(tree->nodes, tree->count, tree->capacity);
    *node = (struct kp_node){.event = (uint32_t)event,
                             .name = e->name,
                             .parent = -1,
                             .forward = -1,
                             .launcher = -1,
                             .call = -1,
                             .first_child = -1,
                             .next_sibling = -1};
    node->start_ns = e->start_ns;
    node->end_ns = e->start_ns + e->dur_ns;
    if (e->kind == KP_KINETO_GPU_ANNOTATION && e->dur_ns >= 2) { /* files show it 1 ns longer at each end than it is */
        node->start_ns++;
        node->end_ns--;
    }
    if (e->flags & KP_KINETO_UNFINISHED && e->kind != KP_KINETO_MEMORY) { /* torch saw no thread end it */
        node->is_async = true;
        if (tree->trace->has_start)
            node->end_ns = tree->trace->end_ns > e->start_ns ? tree->trace->end_ns : e->start_ns;
    }
    const bool is_wait = e->kind == KP_KINETO_GPU_WAIT;
    node->on_device = e->kind == KP_KINETO_GPU || e->kind == KP_KINETO_GPU_ANNOTATION || is_wait;
    node->is_annotation = e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_GPU_ANNOTATION;
    node->is_python = e->kind == KP_KINETO_PYTHON;
    tree->has_device |= node->on_device && !is_wait;
    return node;
}

static bool is_left_out(const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    return e->kind == KP_KINETO_OTHER || e->kind == KP_KINETO_MEMORY || is_skipped(kp_kineto_text(trace, e->name));
}

static void nodes_add(struct kp_tree *tree, struct memory_sums *m)
{
    struct kp_kineto *trace = tree->trace;
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_kineto_event *e = &trace->events[i];
        if (is_left_out(trace, e)) continue;
        struct kp_node *node = node_add(tree, i);
        name_split(tree, node);
        if (m->count && !node->on_device) memory_charge(tree, m, node);
    }
}

/* Adds nodes for memory records outside host events. */
static void memory_add_loose(struct kp_tree *tree, const struct memory_sums *m)
{
    int64_t depth = 0;
    for (size_t i = 0; i < m->count; i++) {
        depth += m->edges[i];
        if (depth > 0) continue;
        node_add(tree, m->records[i].event);
        bytes_set(tree, m->records[i].event, m->records[i].cpu, m->records[i].device);
    }
    for (size_t i = 0; i < tree->trace->count; i++)
        if (tree->trace->events[i].kind == KP_KINETO_MEMORY &&
            is_named(tree->trace, &tree->trace->events[i], "[OutOfMemory]"))
            node_add(tree, i);
}

static int node_order(const void *a, const void *b, void *context)
{
    const struct kp_node *x = a, *y = b;
    const struct kp_kineto_event *events = context;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns) return x->end_ns > y->end_ns ? -1 : 1;
    const unsigned had = events[x->event].flags & KP_KINETO_CONTINUED,
                   has = events[y->event].flags & KP_KINETO_CONTINUED;
    if (had != has) return had ? -1 : 1; /* it began before this piece */
    uint32_t i = events[x->event].index, j = events[y->event].index;
    if (i != j) return i < j ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* ---- nesting ---- */

struct nest_open {
    int32_t node, last_child; /* -1: none yet */
};
struct nest_lane { /* of a thread: the nodes that are open, the inner ones on top */
    struct nest_open *open;
    size_t depth, capacity;
};

static void child_add(struct kp_tree *tree, struct nest_open *parent, int32_t child)
{
    tree->nodes[child].parent = parent->node;
    if (parent->last_child < 0) tree->nodes[parent->node].first_child = child;
    else tree->nodes[parent->last_child].next_sibling = child;
    parent->last_child = child;
}

static void node_nest(struct kp_tree *tree, struct nest_lane *lane, int32_t at)
{
    const struct kp_node *node = &tree->nodes[at];
    for (; lane->depth; lane->depth--) {
        struct nest_open *const top = &lane->open[lane->depth - 1];
        const int64_t end_ns = tree->nodes[top->node].end_ns;
        if (node->start_ns >= end_ns || node->end_ns > end_ns) continue;
        child_add(tree, top, at);
        break;
    }
    *KP_KINETO_NEXT(lane->open, lane->depth, lane->capacity) = (struct nest_open){at, -1};
}

static void nodes_nest(struct kp_tree *tree)
{
    struct kp_keyindex threads = {0};
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->nodes[i].on_device || tree->nodes[i].is_async) continue;
        struct nest_lane none = {0}, *const lane = kp_keyindex_row(&threads, kp_tree_thread(kp_tree_event(tree, i)),
                                                                   &none, sizeof none);
        node_nest(tree, lane, (int32_t)i);
    }
    struct nest_lane *const lanes = threads.rows;
    for (size_t i = 0; i < threads.count; i++) free(lanes[i].open);
    kp_keyindex_fini(&threads);
}

/* Folds an only child with its parent's name into the parent. Parents come first, so one pass folds chains. */
static void nodes_fold(struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct kp_node *node = &tree->nodes[i];
        struct kp_node *parent = node->parent < 0 ? NULL : &tree->nodes[node->parent];
        const bool is_only = parent && parent->first_child == (int32_t)i && node->next_sibling < 0;
        if (!is_only || parent->name != node->name) continue;
        if (kp_tree_event(tree, (size_t)node->parent)->flags & KP_KINETO_SPLIT) {
            tree->unfolded++; /* it may have other children in another piece */
            continue;
        }
        parent->first_child = node->first_child;
        if (tree->works) tree->works[node->parent] = tree->works[i];
        for (int32_t child = node->first_child; child >= 0; child = tree->nodes[child].next_sibling)
            tree->nodes[child].parent = node->parent;
        node->removed = true;
    }
}

/* Adds the device time of children. They come after their parents, so it walks backwards. */
static void device_settle(struct kp_tree *tree)
{
    for (size_t i = tree->works ? tree->count : 0; i-- > 0;) {
        double device = 0, called = 0;
        for (int32_t c = tree->nodes[i].first_child; c >= 0; c = tree->nodes[c].next_sibling) {
            device += tree->works[c].device_us;
            called += tree->works[c].called_us;
        }
        tree->works[i].device_us += device;
        tree->works[i].called_us += called;
    }
}

void kp_tree_values(const struct kp_tree *tree, size_t node, struct kp_values *out)
{
    const struct kp_node *n = &tree->nodes[node];
    double span = kp_tree_span_us(tree, node), cpu = 0, device = 0;
    memset(out, 0, sizeof *out);
    if (n->on_device) {
        out->device_total = out->self_device = span;
        return;
    }
    out->cpu_total = span;
    if (n->is_async) return;
    out->self_cpu_bytes = kp_tree_cpu_bytes(tree, node);
    out->self_device_bytes = kp_tree_device_bytes(tree, node);
    for (int32_t c = n->first_child; c >= 0; c = tree->nodes[c].next_sibling) {
        cpu += kp_tree_span_us(tree, (size_t)c);
        device += kp_tree_work(tree, (size_t)c).device_us;
        out->self_cpu_bytes -= kp_tree_cpu_bytes(tree, (size_t)c);
        out->self_device_bytes -= kp_tree_device_bytes(tree, (size_t)c);
    }
    out->self_cpu = span - cpu;
    out->device_total = kp_tree_work(tree, node).device_us;
    out->self_device = out->device_total - device;
}

int kp_tree_build(struct kp_tree *tree, struct kp_kineto *trace)
{
    memset(tree, 0, sizeof *tree);
    tree->trace = trace;
    struct memory_sums m;
    memory_init(&m, trace);
    trace->profile_memory |= m.count != 0; /* files of 2021 do not say it */
    if (m.has_cpu) tree->cpu_bytes = kp_kineto_zeros(trace->count, sizeof *tree->cpu_bytes);
    if (m.has_device) tree->device_bytes = kp_kineto_zeros(trace->count, sizeof *tree->device_bytes);
    nodes_add(tree, &m);
    memory_add_loose(tree, &m);
    memory_fini(&m);
    if (tree->count > INT32_MAX) return -E2BIG;
    if (tree->count == 0) return 0;
    kp_qsort_r(tree->nodes, tree->count, sizeof *tree->nodes, node_order, trace->events);
    nodes_nest(tree);
    kp_tree_add_kernels(tree);
    nodes_fold(tree);
    device_settle(tree);
    return 0;
}

void kp_tree_fini(struct kp_tree *tree)
{
    free(tree->nodes);
    free(tree->works);
    free(tree->cpu_bytes);
    free(tree->device_bytes);
    tree->nodes = NULL;
    tree->works = NULL;
    tree->cpu_bytes = tree->device_bytes = NULL;
    tree->count = 0;
}

/* ---- who asked for memory ---- */

/* An op that does nothing but allocate. Its shapes are empty. */
static bool is_allocator(const struct kp_tree *tree, int32_t node)
{
    const char *name = kp_kineto_text(tree->trace, tree->nodes[node].name);
    if (strncmp(name, "aten::", 6) != 0) return false;
    name += strncmp(name + 6, "new_", 4) == 0 ? 10 : 6;
    return strncmp(name, "empty", 5) == 0 || strcmp(name, "resize_") == 0 || strcmp(name, "resize_output") == 0;
}

int32_t kp_tree_asker(const struct kp_tree *tree, int32_t node)
{
    while (is_allocator(tree, node)) {
        const int32_t parent = tree->nodes[node].parent;
        if (parent < 0 || kp_tree_event(tree, (size_t)parent)->kind != KP_KINETO_OP) break;
        node = parent;
    }
    return node;
}

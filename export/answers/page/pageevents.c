// SPDX-License-Identifier: Apache-2.0
/* pageevents.c - the events of a trace as columns: by lane (a thread, a stream) and in it by time */
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/answers/stacks/eventpart.h"
#include "export/read/frames/modulename.h"
#include "export/read/facts/selftime.h"
#include "export/read/facts/namefacts.h"

/* ---- lanes ---- */

static struct kp_page_lane lane_of(const struct kp_tree *tree, const struct kp_node *node)
{
    const struct kp_kineto_event *e = &tree->trace->events[node->event];
    return (struct kp_page_lane){
        .pid = e->pid, .tid = e->tid, .on_device = node->on_device, .is_async = node->is_async};
}

static struct kp_page_lane *lane_get(struct kp_page *page, struct kp_keyindex *index, const struct kp_node *node)
{
    const struct kp_page_lane lane = lane_of(page->tree, node);
    const uint64_t key = ((uint64_t)lane.tid << 2 | (uint64_t)lane.on_device << 1 | lane.is_async) ^ (uint64_t)lane.pid
                                                                                                         << 34;
    const size_t at = kp_keyindex_get(index, key);
    if (at == page->lane_count) *KP_KINETO_NEXT(page->lanes, page->lane_count, page->lane_capacity) = lane;
    page->lanes[at].is_main |= kp_node_is_step(page->tree, node);
    return &page->lanes[at];
}

static bool is_shown(const struct kp_node *node) { return !node->removed; }

/* Fills `order` with the nodes that are shown, by lane; nodes come by time. Returns how many. */
static size_t lanes_fill(struct kp_page *page, uint32_t *order)
{
    const struct kp_tree *tree = page->tree;
    struct kp_keyindex index = {0};
    size_t at = 0;
    for (size_t i = 0; i < tree->count; i++)
        if (is_shown(&tree->nodes[i])) lane_get(page, &index, &tree->nodes[i])->count++;
    for (size_t i = 0; i < page->lane_count; i++) {
        page->lanes[i].first = at;
        at += page->lanes[i].count;
        page->lanes[i].count = 0;
    }
    for (size_t i = 0; i < tree->count; i++) {
        if (!is_shown(&tree->nodes[i])) continue;
        struct kp_page_lane *lane = lane_get(page, &index, &tree->nodes[i]);
        order[lane->first + lane->count++] = (uint32_t)i;
    }
    kp_keyindex_fini(&index);
    return at;
}

/* ---- columns ---- */

/* Files of 2021 say Kernel, Memcpy and Memset. */
static enum kp_page_kind device_kind(const char *cat, bool is_comm)
{
    if (strcasecmp(cat, "kernel") == 0) return is_comm ? KP_PAGE_COMM : KP_PAGE_KERNEL;
    return strcasestr(cat, "memcpy") || strcasestr(cat, "memset") ? KP_PAGE_COPY : KP_PAGE_REST;
}

static enum kp_page_kind kind_of(const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    const bool is_of_host = e->kind == KP_KINETO_OP || e->kind == KP_KINETO_ANNOTATION;
    if (is_of_host && kp_namefacts(trace, e->name) & (KP_NAME_COLLECTIVE | KP_NAME_COMM_OP)) return KP_PAGE_COMM;
    switch (e->kind) {
    case KP_KINETO_OP: return KP_PAGE_OP;
    case KP_KINETO_ANNOTATION:
    case KP_KINETO_GPU_ANNOTATION: return KP_PAGE_RANGE;
    case KP_KINETO_PYTHON: return KP_PAGE_PYTHON;
    case KP_KINETO_RUNTIME: return KP_PAGE_RUNTIME;
    case KP_KINETO_GPU: return device_kind(kp_kineto_text(trace, e->cat), kp_namefacts(trace, e->name) & KP_NAME_COMM);
    default: return KP_PAGE_REST;
    }
}

/* Times of a file may be anything: a difference that does not fit is 0. */
static uint64_t span_of(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

static void names_put(struct kp_page *page, const uint32_t *order, size_t count)
{
    const struct kp_tree *const tree = page->tree;
    uint32_t *const names = kp_kineto_room(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = kp_page_text(page, kp_modulename_frame_id(tree->trace, tree->nodes[order[i]].name));
    kp_page_blob_put(&page->blob, "name", names, count);
    free(names);
}

enum time { TIME_AFTER, TIME_SPAN, TIME_INNER };

/* Each event: one of its times, in two halves. TIME_AFTER: since the event before it in its lane. */
static void times_put(struct kp_page *page, const uint32_t *order, size_t count, enum time which, const int64_t *self)
{
    static const char *const names[][2] = {
        {"afterLow", "afterHigh"}, {"spanLow", "spanHigh"}, {"innerLow", "innerHigh"}};
    uint32_t *const low = kp_kineto_room(2 * (count + 1), sizeof *low), *const high = low + count + 1;
    for (size_t lane = 0; lane < page->lane_count; lane++) {
        const struct kp_page_lane *const l = &page->lanes[lane];
        int64_t last_ns = page->base_ns;
        for (size_t i = l->first; i < l->first + l->count; i++) {
            const struct kp_node *const node = &page->tree->nodes[order[i]];
            const uint64_t span = span_of(node->start_ns, node->end_ns);
            const uint64_t own = self[order[i]] > 0 ? (uint64_t)self[order[i]] : 0;
            const uint64_t times[] = {span_of(last_ns, node->start_ns), span, span > own ? span - own : 0};
            kp_page_two_put(&low[i], &high[i], times[which]);
            if (node->start_ns > last_ns) last_ns = node->start_ns;
        }
    }
    kp_page_blob_put(&page->blob, names[which][0], low, count);
    kp_page_blob_put(&page->blob, names[which][1], high, count);
    free(low);
}

static uint32_t gpu_ns(const struct kp_tree *tree, uint32_t node)
{
    const struct kp_node *const n = &tree->nodes[node];
    struct kp_values values;
    kp_tree_values(tree, node, &values);
    const bool is_lone =
        kp_tree_event(tree, node)->kind == KP_KINETO_GPU && n->launcher < 0; /* an annotation's kernels count */
    const double ns = n->on_device ? (is_lone ? (double)span_of(n->start_ns, n->end_ns) : 0) : values.self_device * 1e3;
    return ns > 0 ? ns < (double)UINT32_MAX ? (uint32_t)(ns + 0.5) : UINT32_MAX : 0;
}

static void gpu_put(struct kp_page *page, const uint32_t *order, size_t count)
{
    uint32_t *const gpu = kp_kineto_room(count + 1, sizeof *gpu);
    for (size_t i = 0; i < count; i++) gpu[i] = gpu_ns(page->tree, order[i]);
    kp_page_blob_put(&page->blob, "gpu", gpu, count);
    free(gpu);
}

/* Each event: its kind (enum kp_page_kind), and the part of a step that it belongs to (enum kp_part). */
static void kinds_put(struct kp_page *page, const uint32_t *order, size_t count)
{
    const struct kp_tree *const tree = page->tree;
    uint8_t *const of = kp_kineto_room(tree->count + 1, 1), *const bytes = kp_kineto_room(count + 1, 1);
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)kind_of(tree->trace, kp_tree_event(tree, order[i]));
    kp_page_blob_put_bytes(&page->blob, "kind", bytes, count);
    kp_eventpart_find(tree, of);
    for (size_t i = 0; i < count; i++) bytes[i] = of[order[i]];
    kp_page_blob_put_bytes(&page->blob, "part", bytes, count);
    free(bytes);
    free(of);
}

static void positions_put(struct kp_page *page, const uint32_t *order, size_t count)
{
    uint32_t *positions = kp_kineto_room(page->tree->count + 1, sizeof *positions);
    memset(positions, 0xff, page->tree->count * sizeof *positions);
    for (uint32_t i = 0; i < count; i++) positions[order[i]] = i;
    kp_page_links_put(page, positions);
    kp_page_modules_put(page, order, count);
    if (page->has_gpu) kp_page_works_put(page, positions, order, count);
    free(positions);
}

/* A column at a time: each is deflated before the next is made. */
void kp_page_events_put(struct kp_page *page)
{
    const struct kp_tree *const tree = page->tree;
    uint32_t *const order = kp_kineto_room(tree->count + 1, sizeof *order);
    int64_t *const self = kp_kineto_room(tree->count + 1, sizeof *self);
    const size_t count = lanes_fill(page, order);
    for (size_t i = 0; i < count; i++)
        if (tree->nodes[order[i]].end_ns > page->last_ns) page->last_ns = tree->nodes[order[i]].end_ns;
    kp_selftime(tree, &page->chosen.spans, self);
    names_put(page, order, count);
    for (enum time which = TIME_AFTER; which <= TIME_INNER; which++) times_put(page, order, count, which, self);
    free(self);
    if (page->has_gpu) gpu_put(page, order, count);
    kinds_put(page, order, count);
    positions_put(page, order, count);
    free(order);
}

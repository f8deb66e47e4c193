// SPDX-License-Identifier: Apache-2.0
/* pageevents.c - the events of a trace as columns: by lane (a thread, a stream) and in it by time */
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/answers/stacks/eventpart.h"
#include "export/read/frames/modulename.h"
#include "export/read/facts/selftime.h"
#include "export/read/facts/namefacts.h"

struct columns {
    uint32_t *name, *after_low, *after_high, *span_low, *span_high, *inner_low, *inner_high, *gpu, *order;
    uint8_t *kind;
};

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
    if (at == page->lane_count) {
        page->lanes = kp_kineto_grow(page->lanes, &page->lane_capacity, at + 1, sizeof *page->lanes);
        page->lanes[page->lane_count++] = lane;
    }
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

static void event_put(struct kp_page *page, const struct columns *c, size_t at, const int64_t *self, int64_t *last_ns)
{
    const struct kp_tree *tree = page->tree;
    const struct kp_node *node = &tree->nodes[c->order[at]];
    const struct kp_kineto_event *e = &tree->trace->events[node->event];
    const uint64_t span = span_of(node->start_ns, node->end_ns);
    const uint64_t own = self[c->order[at]] > 0 ? (uint64_t)self[c->order[at]] : 0;
    struct kp_values values;
    c->name[at] = kp_page_text(page, kp_modulename_frame_id(tree->trace, node->name));
    c->kind[at] = (uint8_t)kind_of(tree->trace, e);
    kp_page_two_put(&c->after_low[at], &c->after_high[at], span_of(*last_ns, node->start_ns));
    kp_page_two_put(&c->span_low[at], &c->span_high[at], span);
    kp_page_two_put(&c->inner_low[at], &c->inner_high[at], span > own ? span - own : 0);
    if (node->start_ns > *last_ns) *last_ns = node->start_ns;
    if (node->end_ns > page->last_ns) page->last_ns = node->end_ns;
    if (!page->has_gpu) return;
    kp_tree_values(tree, c->order[at], &values);
    const bool is_lone = e->kind == KP_KINETO_GPU && node->launcher < 0; /* an annotation's kernels count */
    const double ns = node->on_device ? (is_lone ? (double)span : 0) : values.self_device * 1e3;
    c->gpu[at] = ns > 0 ? ns < (double)UINT32_MAX ? (uint32_t)(ns + 0.5) : UINT32_MAX : 0;
}

static void columns_put(struct kp_page *page, const struct columns *c, size_t count)
{
    const struct {
        const char *name;
        const uint32_t *items;
    } rows[] = {{"name", c->name},           {"afterLow", c->after_low}, {"afterHigh", c->after_high},
                {"spanLow", c->span_low},    {"spanHigh", c->span_high}, {"innerLow", c->inner_low},
                {"innerHigh", c->inner_high}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        kp_page_blob_put(&page->blob, rows[i].name, rows[i].items, count);
    if (page->has_gpu) kp_page_blob_put(&page->blob, "gpu", c->gpu, count);
    kp_page_blob_put_bytes(&page->blob, "kind", c->kind, count);
}

/* Each event: the part of a step that it belongs to (enum kp_part). */
static void parts_put(struct kp_page *page, const uint32_t *order, size_t count)
{
    uint8_t *of = kp_kineto_room(page->tree->count + 1, 1), *parts = kp_kineto_room(count + 1, 1);
    kp_eventpart_find(page->tree, of);
    for (size_t i = 0; i < count; i++) parts[i] = of[order[i]];
    kp_page_blob_put_bytes(&page->blob, "part", parts, count);
    free(parts);
    free(of);
}

static void positions_put(struct kp_page *page, const struct columns *c, size_t count)
{
    uint32_t *positions = kp_kineto_room(page->tree->count + 1, sizeof *positions);
    memset(positions, 0xff, page->tree->count * sizeof *positions);
    for (uint32_t i = 0; i < count; i++) positions[c->order[i]] = i;
    kp_page_links_put(page, positions);
    kp_page_modules_put(page, c->order, count);
    if (page->has_gpu) kp_page_works_put(page, positions, c->order, count);
    free(positions);
}

void kp_page_events_put(struct kp_page *page)
{
    enum { COLUMNS = 9 };
    const size_t most = page->tree->count + 1;
    size_t unused = 0;
    uint32_t *words = kp_kineto_grow(NULL, &unused, COLUMNS * most, sizeof *words);
    uint8_t *kinds = kp_kineto_grow(NULL, (unused = 0, &unused), most, 1);
    int64_t *self = kp_kineto_grow(NULL, (unused = 0, &unused), most, sizeof *self);
    const struct columns c = {words,
                              words + most,
                              words + 2 * most,
                              words + 3 * most,
                              words + 4 * most,
                              words + 5 * most,
                              words + 6 * most,
                              words + 7 * most,
                              words + 8 * most,
                              kinds};
    kp_selftime(page->tree, &page->chosen.spans, self);
    const size_t count = lanes_fill(page, c.order);
    for (size_t lane = 0; lane < page->lane_count; lane++) {
        int64_t last_ns = page->base_ns;
        const struct kp_page_lane *l = &page->lanes[lane];
        for (size_t i = 0; i < l->count; i++) event_put(page, &c, l->first + i, self, &last_ns);
    }
    columns_put(page, &c, count);
    parts_put(page, c.order, count);
    positions_put(page, &c, count);
    free(words);
    free(kinds);
    free(self);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * memblocks.c - finds the blocks of a trace: when each was allocated and freed, in which op, step and backward pass
 *
 * One sweep over ops and memory events by time finds each event's place: what was open on its thread. Then the events
 * are sorted by address, where a block's free follows its allocation.
 */
#include "export/answers/memory/memblocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/store/keyindex.h"
#include "export/read/parse/kineto_parse.h"
#include "export/read/store/qsort.h"
#include "export/read/kineto/stepends.h"
#include "export/read/facts/namefacts.h"

#define NO_BLOCK SIZE_MAX
enum { DEVICES_MOST = 256, OLDER_MOST = 1 << 20 };
#define BLOCK_MOST (INT64_C(1) << 46)

struct record {
    int64_t at_ns, bytes, allocated, reserved;
    uint64_t address;
    struct kp_mem_place place;
    uint32_t order;
    uint16_t device;
    bool is_out;
};
struct open_node {
    int64_t end_ns;
    struct kp_mem_place place;
};
struct memory_lane {
    uint64_t thread;
    struct open_node *open;
    size_t count, capacity;
    int32_t pass;
};
struct sweep {
    struct kp_memview *view;
    struct record *records; /* by time */
    size_t count, capacity;
    struct kp_keyindex threads; /* rows: struct memory_lane */
    unsigned optimizers;
};

static const struct kp_mem_place nowhere = {-1, -1, -1, -1, -1, -1, -1, 0};

const char *kp_mem_op_name(const struct kp_memview *view, int32_t node)
{
    return node < 0 ? ""
                    : kp_kineto_text(view->tree->trace, view->tree->trace->events[view->tree->nodes[node].event].name);
}

/* ---- devices ---- */

static bool is_host(int type) { return type == 0 || type == 2 || type == 5; /* CPU, MKLDNN, IDEEP */ }

static uint16_t device_find(struct kp_memview *view, int type, int id)
{
    if (is_host(type)) type = 0, id = -1;
    for (size_t i = 0; i < view->device_count; i++)
        if (view->devices[i].type == type && view->devices[i].id == id) return (uint16_t)i;
    if (view->device_count == DEVICES_MOST) return 0; /* a damaged file may name any number of devices */
    struct kp_mem_device *d = KP_KINETO_NEXT(view->devices, view->device_count, view->device_capacity);
    *d = (struct kp_mem_device){.type = type, .id = id, .reserved_most = -1};
    snprintf(d->name, sizeof d->name, type == 0 ? "CPU" : "GPU %d", id);
    return (uint16_t)(view->device_count - 1);
}

KP_ORDER2(device_order, struct kp_mem_device, type, id)

/* Finds and sorts all devices before records use their indices. */
static void devices_find(struct kp_memview *view)
{
    const struct kp_kineto *trace = view->tree->trace;
    for (size_t i = 0; i < trace->memory_count; i++)
        device_find(view, trace->events[trace->memory[i].event].device_type, trace->memory[i].device);
    if (view->device_count) kp_qsort(view->devices, view->device_count, sizeof *view->devices, device_order);
}

/* ---- events of memory ---- */

KP_ORDER2(time_order, struct record, at_ns, order)

static void records_add(struct sweep *s)
{
    const struct kp_kineto *trace = s->view->tree->trace;
    for (size_t i = 0; i < trace->memory_count; i++) {
        const struct kp_kineto_memory *m = &trace->memory[i];
        const struct kp_kineto_event *e = &trace->events[m->event];
        bool is_out = strcmp(kp_kineto_text(trace, e->name), "[OutOfMemory]") == 0;
        if (!is_out && strcmp(kp_kineto_text(trace, e->name), "[memory]") != 0) continue;
        s->view->no_addresses |= !is_out && !m->address;
        *KP_KINETO_NEXT(s->records, s->count, s->capacity) =
            (struct record){.at_ns = e->start_ns,
                            .bytes = is_out ? m->bytes : e->number,
                            .allocated = m->allocated,
                            .reserved = m->reserved,
                            .address = m->address,
                            .place = nowhere,
                            .order = m->event,
                            .device = device_find(s->view, e->device_type, m->device),
                            .is_out = is_out};
    }
    if (s->count) kp_qsort(s->records, s->count, sizeof *s->records, time_order);
}

/* ---- the sweep ---- */

static struct memory_lane *lane_get(struct sweep *s, const struct kp_kineto_event *e)
{
    const struct memory_lane first = {.thread = kp_tree_thread(e), .pass = -1};
    return kp_keyindex_row(&s->threads, first.thread, &first, sizeof first);
}

static struct kp_mem_place lane_place(struct memory_lane *lane, int64_t at_ns)
{
    struct kp_mem_place place = nowhere;
    while (lane->count && lane->open[lane->count - 1].end_ns < at_ns) lane->count--;
    if (lane->count) place = lane->open[lane->count - 1].place;
    place.thread = lane->thread;
    return place;
}

/* Finds what encloses a range or a Python call, and leaves out what ends before it does. The __exit__ call that ends a
 * range outlives the range and overlaps what comes next. */
static struct kp_mem_place place_around(struct memory_lane *lane, int64_t start_ns, int64_t end_ns)
{
    struct kp_mem_place place = lane_place(lane, start_ns);
    size_t i = lane->count;
    while (i && lane->open[i - 1].end_ns < end_ns) i--;
    if (i == lane->count) return place;
    place = i ? lane->open[i - 1].place : nowhere;
    place.thread = lane->thread;
    return place;
}

/*
 * A pass goes on while its sequence numbers stay below the highest. An autograd node with that number or a higher one
 * begins another pass. So does any op between two nodes, and any optimizer step.
 */
static int32_t pass_at(struct sweep *s, struct memory_lane *lane, const struct kp_kineto_event *e)
{
    struct kp_memview *view = s->view;
    bool has_seq = e->flags & KP_KINETO_HAS_SEQ;
    struct kp_mem_pass *pass = lane->pass < 0 ? NULL : &view->passes[lane->pass];
    if (!pass || !pass->open || pass->optimizers != s->optimizers ||
        (has_seq && pass->most_seq >= 0 && e->number >= pass->most_seq)) {
        lane->pass = (int32_t)view->pass_count;
        pass = KP_KINETO_NEXT(view->passes, view->pass_count, view->pass_capacity);
        *pass = (struct kp_mem_pass){.from_ns = e->start_ns,
                                     .to_ns = e->start_ns,
                                     .forward_ns = INT64_MAX,
                                     .most_seq = -1,
                                     .optimizers = s->optimizers,
                                     .open = true};
    }
    if (has_seq) {
        pass->most_seq = e->number > pass->most_seq ? e->number : pass->most_seq;
        *KP_KINETO_NEXT(view->nodes, view->node_count, view->node_capacity) =
            (struct kp_mem_node){e->number, lane->pass};
    }
    if (e->start_ns + e->dur_ns > pass->to_ns) pass->to_ns = e->start_ns + e->dur_ns;
    return lane->pass;
}

static bool has_schema(const char *name)
{
    const char *colons = strstr(name, "::");
    return colons && strncmp(name, "autograd::engine::", 18) != 0 && !strpbrk(name, " <(/");
}

static void op_enter(struct sweep *s, struct memory_lane *lane, const struct kp_kineto_event *e, int32_t node,
                     struct kp_mem_place *place)
{
    const char *name = kp_kineto_text(s->view->tree->trace, e->name);
    bool is_engine = kp_namefacts(s->view->tree->trace, e->name) & KP_NAME_ENGINE;
    bool in_engine = place->op >= 0 && place->op == place->engine;
    if (place->top < 0) place->top = node;
    if (is_engine && place->engine < 0) {
        place->engine = node;
        place->pass = pass_at(s, lane, e);
    }
    place->op = node;
    if (place->leaf >= 0 || is_engine || !(in_engine || has_schema(name))) return;
    place->leaf = node;
    if (place->engine < 0 && lane->pass >= 0) s->view->passes[lane->pass].open = false;
}

static void node_enter(struct sweep *s, int32_t node)
{
    const struct kp_node *n = &s->view->tree->nodes[node];
    const struct kp_kineto *trace = s->view->tree->trace;
    const struct kp_kineto_event *e = &trace->events[n->event];
    if (n->on_device || e->kind == KP_KINETO_MEMORY) return;
    struct memory_lane *lane = lane_get(s, e);
    struct kp_mem_place place =
        e->kind == KP_KINETO_OP ? lane_place(lane, n->start_ns) : place_around(lane, n->start_ns, n->end_ns);
    if (e->kind == KP_KINETO_OP) {
        op_enter(s, lane, e, node, &place);
    } else if (e->kind == KP_KINETO_ANNOTATION) {
        place.range = node;
        if (kp_mem_is_optimizer(kp_kineto_text(trace, e->name))) {
            place.optimizer = node;
            s->optimizers++;
        }
    }
    *KP_KINETO_NEXT(lane->open, lane->count, lane->capacity) = (struct open_node){n->end_ns, place};
}

static void places_find(struct sweep *s)
{
    const struct kp_tree *tree = s->view->tree;
    size_t node = 0;
    for (size_t i = 0; i < s->count; i++) {
        struct record *r = &s->records[i];
        for (; node < tree->count && tree->nodes[node].start_ns <= r->at_ns; node++) node_enter(s, (int32_t)node);
        r->place = lane_place(lane_get(s, &tree->trace->events[r->order]), r->at_ns);
    }
    for (; node < tree->count; node++) node_enter(s, (int32_t)node);
}

static void sweep_fini(struct sweep *s)
{
    const struct memory_lane *const lanes = s->threads.rows;
    for (size_t i = 0; i < s->threads.count; i++) free(lanes[i].open);
    kp_keyindex_fini(&s->threads);
    free(s->records);
}

/* ---- blocks ---- */

static void before_find(struct sweep *s)
{
    struct kp_memview *view = s->view;
    for (size_t d = 0; d < view->device_count; d++) view->devices[d].before_bytes = -1;
    for (size_t i = 0; i < s->count; i++) {
        const struct record *r = &s->records[i];
        struct kp_mem_device *d = &view->devices[r->device];
        if (r->is_out) {
            *KP_KINETO_NEXT(view->outs, view->out_count, view->out_capacity) =
                (struct kp_mem_out){r->at_ns, r->bytes, r->allocated, r->place, r->device};
        } else if (d->before_bytes < 0 && r->allocated >= 0) {
            d->before_bytes = d->type && r->allocated > r->bytes ? r->allocated - r->bytes : 0;
        }
        if (d->type && r->reserved > d->reserved_most) d->reserved_most = r->reserved;
    }
    for (size_t d = 0; d < view->device_count; d++)
        if (view->devices[d].before_bytes < 0) view->devices[d].before_bytes = 0;
}

KP_ORDERED(address_order, struct record, KP_UP(device) KP_UP(address) KP_UP(at_ns) KP_UP(order))

static struct kp_mem_block *block_add(struct kp_memview *view, const struct record *r, int64_t bytes)
{
    struct kp_mem_block *b = KP_KINETO_NEXT(view->blocks, view->block_count, view->block_capacity);
    *b = (struct kp_mem_block){.from_ns = r->at_ns,
                               .to_ns = INT64_MAX,
                               .bytes = bytes,
                               .address = r->address,
                               .place = r->place,
                               .freed_leaf = -1,
                               .step = -1,
                               .device = r->device,
                               .category = KP_MEM_UNKNOWN};
    return b;
}

/* An allocation at an address in use ends the block there, whose free was not recorded. A free without an allocation
 * belongs to a block from before the window. */
static void record_pair(struct kp_memview *view, size_t *live, const struct record *r)
{
    struct kp_mem_block *b = *live == NO_BLOCK ? NULL : &view->blocks[*live];
    if (r->bytes >= 0) {
        if (b) b->to_ns = r->at_ns;
        *live = r->bytes ? view->block_count : NO_BLOCK;
        if (r->bytes) block_add(view, r, r->bytes);
        return;
    }
    if (!b) {
        struct kp_mem_device *d = &view->devices[r->device];
        b = block_add(view, r, -r->bytes);
        b->from_ns = INT64_MIN;
        b->place = nowhere;
        b->category = KP_MEM_BEFORE;
        d->before_bytes = d->before_bytes > b->bytes ? d->before_bytes - b->bytes : 0;
    }
    b->to_ns = r->at_ns;
    b->freed_leaf = r->place.leaf;
    *live = NO_BLOCK;
}

/* ---- CPU blocks of before, from the keys of our own traces ---- */

static void older_add(struct kp_memview *view, uint16_t cpu, int64_t bytes, int64_t to_ns)
{
    const struct record none = {.place = nowhere, .device = cpu};
    struct kp_mem_block *b = block_add(view, &none, bytes);
    b->from_ns = INT64_MIN;
    b->to_ns = to_ns;
    b->category = KP_MEM_BEFORE;
}

/* Reads "BYTESxCOUNT ". */
static void older_read(struct kp_memview *view, uint16_t cpu)
{
    const char *text = kp_kineto_text(view->tree->trace, view->tree->trace->memory_before);
    char *end;
    for (long left = OLDER_MOST; *text; text = end + strspn(end, " ")) {
        const long long bytes = strtoll(text, &end, 10);
        if (*end != 'x' || bytes <= 0 || bytes > BLOCK_MOST) return;
        for (long long n = strtoll(end + 1, &end, 10); n > 0 && left > 0; n--, left--)
            older_add(view, cpu, bytes, INT64_MAX);
    }
}

/* Reads "MICROSECONDS:BYTES ". */
static void older_freed_read(struct kp_memview *view, uint16_t cpu)
{
    const char *text = kp_kineto_text(view->tree->trace, view->tree->trace->memory_freed);
    const int64_t base_ns = view->tree->trace->base_ns;
    char *end;
    for (; *text; text = end + strspn(end, " ")) {
        const size_t n = strcspn(text, ":");
        if (!text[n]) return;
        const long long bytes = strtoll(text + n + 1, &end, 10);
        if (end == text + n + 1 || bytes <= 0 || bytes > BLOCK_MOST) return;
        older_add(view, cpu, bytes, base_ns + kp_kineto_ns(text, n));
    }
}

static void older_find(struct kp_memview *view)
{
    const struct kp_kineto *trace = view->tree->trace;
    for (uint16_t d = 0; d < view->device_count; d++) {
        struct kp_mem_device *device = &view->devices[d];
        device->knows_before = device->type != 0 || (trace->has_memory_before && !trace->memory_unkept);
        if (device->type != 0) continue;
        older_read(view, d);
        older_freed_read(view, d);
    }
}

/* ---- all blocks ---- */

KP_ORDER3(block_order, struct kp_mem_block, device, from_ns, address)

static void blocks_pair(struct sweep *s)
{
    struct kp_memview *view = s->view;
    size_t live = NO_BLOCK;
    if (s->count) kp_qsort(s->records, s->count, sizeof *s->records, address_order);
    for (size_t i = 0; i < s->count; i++) {
        const struct record *r = &s->records[i];
        if (r->is_out || !r->address) continue;
        if (i && (s->records[i - 1].address != r->address || s->records[i - 1].device != r->device)) live = NO_BLOCK;
        record_pair(view, &live, r);
    }
    older_find(view);
    if (view->block_count) kp_qsort(view->blocks, view->block_count, sizeof *view->blocks, block_order);
    for (size_t i = view->block_count; i-- > 0;) {
        struct kp_mem_device *d = &view->devices[view->blocks[i].device];
        d->first = i;
        d->count++;
    }
}

/* ---- steps ---- */

static void step_add(struct kp_memview *view, int64_t from_ns, int64_t to_ns, long number)
{
    *KP_KINETO_NEXT(view->steps, view->step_count, view->step_capacity) = (struct kp_mem_step){from_ns, to_ns, number};
}

/* If there is no ProfilerStep#, a step ends where a step of the optimizer that counts ends. */
static void steps_of_optimizers(struct kp_memview *view)
{
    const struct kp_kineto *trace = view->tree->trace;
    int64_t from_ns = view->begin_ns;
    struct kp_stepends ends = {0};
    for (size_t i = 0; i < view->tree->count; i++) {
        const struct kp_node *n = &view->tree->nodes[i];
        const struct kp_kineto_event *e = &trace->events[n->event];
        if (!kp_stepends_may(trace, e) || !kp_stepends_counts(&ends, trace, e)) continue;
        step_add(view, from_ns, n->end_ns, (long)view->step_count);
        from_ns = n->end_ns + 1;
    }
    static const char *const sources[] = {"Optimizer.step", "Optimizer.step", "DataLoader", "kprof_step", "backward"};
    view->step_source = sources[ends.kind];
}

static void steps_find(struct kp_memview *view)
{
    const struct kp_kineto *trace = view->tree->trace;
    for (size_t i = 0; i < view->tree->count; i++) {
        const struct kp_node *n = &view->tree->nodes[i];
        const struct kp_kineto_event *e = &trace->events[n->event];
        const char *name = kp_kineto_text(trace, e->name);
        if (e->kind == KP_KINETO_ANNOTATION && kp_kineto_is_step(name))
            step_add(view, n->start_ns, n->end_ns, strtol(name + 13, NULL, 10));
    }
    view->step_source = "ProfilerStep";
    if (!view->step_count) steps_of_optimizers(view);
    for (size_t i = 0; i < view->block_count; i++)
        if (view->blocks[i].from_ns != INT64_MIN)
            view->blocks[i].step = (int32_t)kp_mem_step_at(view, view->blocks[i].from_ns);
}

/* Returns the index of the step that is open at a moment. */
long kp_mem_step_at(const struct kp_memview *view, int64_t at_ns)
{
    const size_t after = kp_rows_from(view->steps, view->step_count, sizeof *view->steps, at_ns + 1);
    return after && view->steps[after - 1].to_ns >= at_ns ? (long)after - 1 : -1;
}

/* ---- the view ---- */

static void window_find(struct kp_memview *view, const struct sweep *s)
{
    const struct kp_tree *tree = view->tree;
    view->zero_ns = tree->trace->start_ns;
    view->begin_ns = s->records[0].at_ns;
    view->end_ns = s->records[s->count - 1].at_ns;
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->nodes[i].start_ns < view->begin_ns) view->begin_ns = tree->nodes[i].start_ns;
        if (tree->nodes[i].end_ns > view->end_ns) view->end_ns = tree->nodes[i].end_ns;
    }
}

static void placed_find(struct kp_memview *view)
{
    const struct kp_tree *tree = view->tree;
    view->placed = kp_kineto_room(tree->count + 1, sizeof *view->placed);
    for (size_t i = 0; i < tree->count; i++) { /* parents come before their children */
        const struct kp_node *node = &tree->nodes[i];
        view->placed[i] = node->stack ? (int32_t)i : node->parent < 0 ? -1 : view->placed[node->parent];
    }
}

int kp_memview_build(struct kp_memview *view, struct kp_tree *tree)
{
    struct sweep s = {.view = view};
    memset(view, 0, sizeof *view);
    view->tree = tree;
    devices_find(view);
    records_add(&s);
    if (!s.count) return -ENODATA;
    window_find(view, &s);
    places_find(&s);
    before_find(&s);
    blocks_pair(&s);
    sweep_fini(&s);
    if (view->no_addresses && !view->block_count && !view->out_count) return -ENODATA;
    steps_find(view);
    placed_find(view);
    kp_memview_categories(view);
    return 0;
}

void kp_memview_fini(struct kp_memview *view)
{
    free(view->blocks);
    free(view->devices);
    free(view->steps);
    free(view->passes);
    free(view->nodes);
    free(view->outs);
    free(view->placed);
    memset(view, 0, sizeof *view);
}

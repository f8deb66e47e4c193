// SPDX-License-Identifier: Apache-2.0
/* memgroups.c - groups blocks by the op that allocated them: live at a moment, or left over from step to step */
#include "export/answers/memory/memblocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_hash.h"
#include "collector/base/kp_order.h"
#include "collector/base/sys/kp_path.h"
#include "export/read/facts/steps/everynth.h"
#include "export/read/frames/framename.h"
#include "export/read/frames/modulename.h"
#include "export/read/frames/ownline.h"
#include "export/read/store/qsort.h"
#include "export/answers/top/toprows.h"

static uint32_t name_of(const struct kp_memview *view, int32_t node)
{
    return node < 0 ? 0 : view->tree->trace->events[view->tree->nodes[node].event].name;
}

void kp_mem_group_place(struct kp_mem_group *row, const struct kp_memview *view, int32_t node)
{
    const int32_t placed = node < 0 ? -1 : view->placed[node];
    row->stack = placed < 0 ? 0 : view->tree->nodes[placed].stack;
    row->is_backward = placed >= 0 && kp_node_is_backward(view->tree, (size_t)placed);
}

static void group_add(struct kp_mem_groups *g, const struct kp_memview *view, const struct kp_mem_block *b)
{
    const bool has_op = b->place.op >= 0;
    *KP_KINETO_NEXT(g->rows, g->count, g->capacity) =
        (struct kp_mem_group){.op = name_of(view, has_op ? b->place.op : b->place.range),
                              .top = name_of(view, has_op ? b->place.top : b->place.range),
                              .category = b->category,
                              .is_older = b->from_ns == INT64_MIN,
                              .bytes = b->bytes,
                              .count = 1,
                              .first_step = b->step,
                              .last_step = b->step,
                              .steps = 1};
    kp_mem_group_place(&g->rows[g->count - 1], view, b->place.op);
}

#define KEY KP_UP(op) KP_UP(top) KP_UP(shapes) KP_UP(stack) KP_UP(category) KP_UP(is_backward) KP_UP(is_older)
KP_ORDERED(key_compare, struct kp_mem_group, KEY)
KP_ORDERED(key_order, struct kp_mem_group, KEY KP_UP(first_step))
KP_ORDERED(bytes_order, struct kp_mem_group, KP_DOWN(bytes) KEY)
KP_ORDERED(asked_order, struct kp_mem_group, KP_UP(op) KP_DOWN(bytes) KEY)

/* Merges the rows of each key, and puts those with most bytes first. */
static void groups_merge(struct kp_mem_groups *g)
{
    size_t kept = 0;
    if (!g->count) return;
    kp_qsort(g->rows, g->count, sizeof *g->rows, key_order);
    for (size_t i = 0; i < g->count; i++) {
        const struct kp_mem_group row = g->rows[i];
        struct kp_mem_group *last = kept ? &g->rows[kept - 1] : NULL;
        if (!last || key_compare(last, &row) != 0) {
            g->rows[kept++] = row;
            continue;
        }
        last->bytes += row.bytes;
        last->kept += row.kept;
        last->count += row.count;
        last->steps += row.first_step != last->last_step;
        last->last_step = row.last_step;
    }
    g->count = kept;
    kp_qsort(g->rows, g->count, sizeof *g->rows, bytes_order);
}

/* Is it a line that the rows `from` to `to` do not have? */
static bool is_new_line(const struct kp_memview *view, const struct kp_mem_group *from, const struct kp_mem_group *to)
{
    enum { LINES_MOST = 32 };
    char its[512], other[512];
    kp_mem_place_text(view, to, its, sizeof its);
    for (int i = 0; from < to && i < LINES_MOST; from++, i++)
        if (strcmp(kp_mem_place_text(view, from, other, sizeof other), its) == 0) return false;
    return true;
}

/* Makes one row of all call sites of an op and of all its shapes. */
static void sites_merge(struct kp_mem_groups *g, const struct kp_memview *view)
{
    size_t kept = 0, first = 0;
    if (!g->count) return;
    struct kp_mem_group *of = kp_kineto_room(g->count, sizeof *of);
    memcpy(of, g->rows, g->count * sizeof *of);
    kp_qsort(of, g->count, sizeof *of, asked_order);
    for (size_t i = 0; i < g->count; i++) {
        if (!i || of[i].op != of[first].op) {
            first = i;
            g->rows[kept++] = of[i];
            continue;
        }
        struct kp_mem_group *row = &g->rows[kept - 1];
        row->bytes += of[i].bytes;
        row->kept += of[i].kept;
        row->count += of[i].count;
        row->others += is_new_line(view, &of[first], &of[i]);
    }
    g->count = kept;
    free(of);
    kp_qsort(g->rows, g->count, sizeof *g->rows, bytes_order);
}

void kp_mem_groups_live(struct kp_mem_groups *g, const struct kp_memview *view, size_t device, int64_t at_ns)
{
    const struct kp_mem_device *d = &view->devices[device];
    memset(g, 0, sizeof *g);
    for (size_t i = d->first; i < d->first + d->count; i++)
        if (view->blocks[i].from_ns <= at_ns && view->blocks[i].to_ns > at_ns) group_add(g, view, &view->blocks[i]);
    groups_merge(g);
}

/* The text of a row of live blocks, but for its numbers. */
static uint64_t shown_key(const struct kp_memview *view, const struct kp_mem_group *row)
{
    char text[1024], place[512];
    kp_mem_place_text(view, row, place, sizeof place);
    const int used =
        snprintf(text, sizeof text, "%u %u %u %d %s", row->op, row->top, row->category, row->is_older, place);
    return kp_hash64(text, (size_t)used < sizeof text ? (size_t)used : sizeof text - 1);
}

void kp_mem_groups_alike(struct kp_mem_groups *g, const struct kp_memview *view)
{
    struct kp_keyindex seen = {0}; /* rows: which of g->rows, counted from 1 */
    size_t kept = 0;
    for (size_t i = 0; i < g->count; i++) {
        size_t *const at = kp_keyindex_row(&seen, shown_key(view, &g->rows[i]), &(size_t){0}, sizeof *at);
        if (!*at) {
            g->rows[kept] = g->rows[i];
            *at = ++kept;
            continue;
        }
        g->rows[*at - 1].bytes += g->rows[i].bytes;
        g->rows[*at - 1].count += g->rows[i].count;
    }
    g->count = kept;
    kp_keyindex_fini(&seen);
    if (kept) kp_qsort(g->rows, kept, sizeof *g->rows, bytes_order);
}

void kp_mem_groups_taken(struct kp_mem_groups *g, const struct kp_memview *view, size_t device, int64_t from_ns,
                         int64_t to_ns)
{
    const struct kp_mem_device *d = &view->devices[device];
    memset(g, 0, sizeof *g);
    for (size_t i = d->first; i < d->first + d->count; i++) {
        const struct kp_mem_block *b = &view->blocks[i];
        if (b->from_ns < from_ns || b->from_ns > to_ns) continue;
        group_add(g, view, b);
        struct kp_mem_group *row = &g->rows[g->count - 1];
        row->category = 0;
        row->top = 0;
        row->kept = b->bytes;
        if (b->place.op < 0) continue;
        const int32_t asker = kp_tree_asker(view->tree, b->place.op);
        row->op = name_of(view, asker);
        row->shapes = kp_kineto_shapes(kp_tree_event(view->tree, (size_t)asker));
        if (b->to_ns <= view->tree->nodes[asker].end_ns) row->kept = 0;
    }
    groups_merge(g);
    sites_merge(g, view);
}

/* In half of the steps before the last, or again and again, as each 10th step does. */
static bool grows(const struct kp_mem_group *row, long steps)
{
    return (row->steps >= 2 && 2 * row->steps >= steps) ||
           kp_everynth_recurs((size_t)row->steps, row->first_step, row->last_step, steps);
}

void kp_mem_groups_leaks(struct kp_mem_groups *g, const struct kp_memview *view, size_t device)
{
    const struct kp_mem_device *d = &view->devices[device];
    size_t kept = 0;
    long before_last = (long)view->step_count - 1;
    /* not the end of the window: a program frees everything when it ends */
    int64_t end_ns = view->step_count ? view->steps[before_last].to_ns : 0;
    memset(g, 0, sizeof *g);
    for (size_t i = d->first; i < d->first + d->count; i++) {
        const struct kp_mem_block *b = &view->blocks[i];
        if (b->to_ns > end_ns && b->step >= 0 && b->step < before_last) group_add(g, view, b);
    }
    groups_merge(g);
    for (size_t i = 0; i < g->count; i++)
        if (grows(&g->rows[i], before_last)) g->rows[kept++] = g->rows[i];
    g->count = kept;
}

size_t kp_mem_groups_shown(const struct kp_mem_groups *g, const struct kp_mem_show *show)
{
    return show->row_limit < 0 || (size_t)show->row_limit > g->count ? g->count : (size_t)show->row_limit;
}

struct kp_mem_group kp_mem_groups_rest(const struct kp_mem_groups *g, size_t shown)
{
    struct kp_mem_group rest = {.bytes = 0};
    for (size_t i = shown; i < g->count; i++) rest.bytes += g->rows[i].bytes, rest.count += g->rows[i].count;
    return rest;
}

void kp_mem_groups_fini(struct kp_mem_groups *g)
{
    free(g->rows);
    g->rows = NULL;
    g->count = 0;
}

/* Writes "file.py(12): name" as every command shows a line, "file.py:12 name". */
static void line_add(char *out, size_t bytes, const char *frame, size_t frame_bytes)
{
    const char *end = memmem(frame, frame_bytes, "): ", 3), *open = end;
    while (open && open > frame && *open != '(') open--;
    if (!open || open == frame) snprintf(out, bytes, "%.*s", (int)frame_bytes, frame);
    else
        snprintf(out, bytes, "%.*s:%.*s %.*s", (int)(open - frame), frame, (int)(end - open - 1), open + 1,
                 (int)(frame + frame_bytes - end - 3), end + 3);
}

static int module_add(struct kp_kineto *trace, char *out, size_t bytes, const char *module, size_t module_bytes)
{
    struct kp_frametext text = {0};
    char frame[512];
    snprintf(frame, sizeof frame, "nn.Module: %.*s", (int)module_bytes, module);
    const int used = snprintf(out, bytes, "%s", kp_framename_module(kp_modulename_frame(&text, trace, frame)));
    kp_frametext_fini(&text);
    return used;
}

/* Writes the innermost nn.Module and line of the program, if the stack has them: "Linear_0, model.py:12 forward". */
const char *kp_mem_place_text(const struct kp_memview *view, const struct kp_mem_group *row, char *out, size_t bytes)
{
    const char *text = row->stack ? kp_kineto_text(view->tree->trace, row->stack) : "", *module = NULL;
    size_t line_bytes = 0;
    const char *line = kp_ownline_frame(view->tree->trace, text, &line_bytes);
    for (; *text && !(module = kp_framename_module(text)); text += *text == ';') text += strcspn(text, ";");
    int used = snprintf(out, bytes, "%s", row->is_backward && (module || line) ? KP_TOP_BACKWARD_OF : "");
    if (module && used < (int)bytes)
        used += module_add(view->tree->trace, out + used, bytes - (size_t)used, module, strcspn(module, ";"));
    if (module && line && used < (int)bytes) used += snprintf(out + used, bytes - (size_t)used, ", ");
    if (line && used >= 0 && (size_t)used < bytes) {
        line_add(out + used, bytes - (size_t)used, line, line_bytes);
        kp_path_shorten(out + used);
    }
    return out;
}

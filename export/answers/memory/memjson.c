// SPDX-License-Identifier: Apache-2.0
/* memjson.c - writes memory as JSON, and torch's raw timeline of one device */
#include "export/answers/memory/memblocks.h"

#include <inttypes.h>

#include "export/show/fields.h"

struct memjson_item { /* of a view: a device, a row of blocks, or a moment without memory */
    const struct kp_memview *view;
    const struct kp_mem_show *show;
    size_t device;
    const struct kp_mem_curve *curve;
    const struct kp_mem_groups *live, *leaks;
};

static long step_at(const struct kp_memview *view, int64_t at_ns)
{
    const long step = kp_mem_step_at(view, at_ns);
    return step < 0 ? -1 : view->steps[step].number;
}

static void categories_put(struct kp_jsonout *j, const struct kp_mem_sum *sum)
{
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) kp_jsonout_whole(j, kp_mem_category_name(k), sum->of[k]);
}
#define SUM(F, IF)            \
    F(WHOLE, total, r->total) \
    F(MORE, , (KP_TYPE("integer"), categories_put, r))
KP_FIELDS(sum, struct kp_mem_sum, SUM)

struct memjson_group {
    const struct kp_memview *view;
    const struct kp_mem_group *row;
    bool is_leak;
};
#define TEXT_OF(id) kp_kineto_text(r->view->tree->trace, id)
#define GROUP(F, IF)                                                             \
    F(TEXT, op, TEXT_OF(r->row->op))                                             \
    F(TEXT, outermost_op, TEXT_OF(r->row->top))                                  \
    F(TEXT, category, kp_mem_category_name(r->row->category))                    \
    IF(r->row->stack, TEXT, stack, TEXT_OF(r->row->stack))                       \
    IF(r->row->is_backward, BOOL, backward, true)                                \
    IF(r->is_leak, WHOLE, steps, r->row->steps)                                  \
    IF(r->is_leak, WHOLE, first_step, r->view->steps[r->row->first_step].number) \
    IF(r->is_leak, WHOLE, last_step, r->view->steps[r->row->last_step].number)   \
    F(WHOLE, bytes, r->row->bytes)                                               \
    F(WHOLE, blocks, r->row->count)
KP_FIELDS(group, struct memjson_group, GROUP)

struct memjson_out {
    const struct kp_memview *view;
    const struct kp_mem_out *of;
};
#define OUT(F, IF)                                                                       \
    F(WHOLE, ns, r->of->at_ns)                                                           \
    IF(step_at(r->view, r->of->at_ns) >= 0, WHOLE, step, step_at(r->view, r->of->at_ns)) \
    F(TEXT, op, kp_mem_op_name(r->view, r->of->place.op))                                \
    F(WHOLE, bytes, r->of->bytes)                                                        \
    F(WHOLE, allocated, r->of->allocated)
KP_FIELDS(out, struct memjson_out, OUT)

/* Writes one point for each moment: [ns, total, one sum for each category]. */
static void timeline_put(struct kp_jsonout *j, const char *key, const struct memjson_item *r)
{
    struct kp_mem_sum now = r->curve->begin;
    int64_t at_ns = r->show->from_ns;
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; i <= r->curve->count; i++) {
        const struct kp_mem_point *const point = i < r->curve->count ? &r->curve->points[i] : NULL;
        if (!point || point->at_ns != at_ns) {
            kp_jsonout_line(j);
            kp_jsonout_open(j, NULL, '[');
            kp_jsonout_whole(j, NULL, at_ns);
            kp_jsonout_whole(j, NULL, now.total);
            for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) kp_jsonout_whole(j, NULL, now.of[k]);
            kp_jsonout_close(j, ']');
        }
        if (!point) break;
        kp_mem_sum_add(&now, point);
        at_ns = point->at_ns;
    }
    kp_jsonout_close(j, ']');
}

#define DEVICE r->view->devices[r->device]
#define STEP_AT_PEAK step_at(r->view, r->curve->peak_ns)
#define DEVICE_ROWS(F, IF)                                                                                         \
    F(TEXT, device, DEVICE.name)                                                                                   \
    F(WHOLE, device_type, DEVICE.type)                                                                             \
    F(WHOLE, device_id, DEVICE.id)                                                                                 \
    F(WHOLE, blocks, DEVICE.count)                                                                                 \
    F(WHOLE, peak_ns, r->curve->peak_ns)                                                                           \
    IF(DEVICE.reserved_most >= 0, WHOLE, reserved_most, DEVICE.reserved_most)                                      \
    IF(STEP_AT_PEAK >= 0, WHOLE, step, STEP_AT_PEAK)                                                               \
    F(LINE, , )                                                                                                    \
    F(OBJECT, peak, (sum, &r->curve->peak))                                                                        \
    F(OBJECT, highest, (sum, &r->curve->most))                                                                     \
    F(OBJECT, begin, (sum, &r->curve->begin))                                                                      \
    F(OBJECT, end, (sum, &r->curve->end))                                                                          \
    F(LINE, , )                                                                                                    \
    F(LINES, live_at_peak,                                                                                         \
      (group, kp_mem_groups_shown(r->live, r->show), &(struct memjson_group){r->view, &r->live->rows[i], false}))  \
    F(LINE, , )                                                                                                    \
    F(LINES, leaks,                                                                                                \
      (group, kp_mem_groups_shown(r->leaks, r->show), &(struct memjson_group){r->view, &r->leaks->rows[i], true})) \
    F(LINE, , )                                                                                                    \
    F(LIST, out_of_memory,                                                                                         \
      (out, r->view->out_count,                                                                                    \
       r->view->outs[i].device == r->device ? &(struct memjson_out){r->view, &r->view->outs[i]} : NULL))           \
    F(LINE, , )                                                                                                    \
    F(OTHER, timeline, (KP_TYPE_ARRAY(KP_TYPE_ARRAY(KP_TYPE("integer"))), timeline_put, r))
KP_FIELDS(device, struct memjson_item, DEVICE_ROWS)

static void devices_put(struct kp_jsonout *j, const char *key, const struct memjson_item *r)
{
    kp_jsonout_open(j, key, '[');
    for (size_t d = 0; d < r->view->device_count; d++) {
        struct kp_mem_curve curve;
        struct kp_mem_groups live, leaks;
        if (!kp_mem_shows(r->show, d)) continue;
        kp_mem_curve_build(&curve, r->view, d, r->show->from_ns, r->show->to_ns);
        kp_mem_groups_live(&live, r->view, d, curve.peak_ns);
        kp_mem_groups_leaks(&leaks, r->view, d);
        kp_fields_put(j, NULL, &device_fields, &(struct memjson_item){r->view, r->show, d, &curve, &live, &leaks});
        kp_jsonout_line(j);
        kp_mem_groups_fini(&live);
        kp_mem_groups_fini(&leaks);
        kp_mem_curve_fini(&curve);
    }
    kp_jsonout_close(j, ']');
}

static void heap_put(struct kp_jsonout *j, const struct memjson_item *r)
{
    if (!r->show->members) return;
    kp_jsonout_key(j, NULL);
    fputs(r->show->members, j->out);
    kp_jsonout_line(j);
}

#define MEMORY(F, IF)                                                                                \
    F(MORE, , ("true", heap_put, r))                                                                 \
    F(TEXT, file, r->show->label)                                                                    \
    F(MAYBE, step_source, r->view->step_source)                                                      \
    F(WHOLE, steps, r->view->step_count)                                                             \
    F(WHOLE, begin_ns, r->view->begin_ns)                                                            \
    F(WHOLE, end_ns, r->view->end_ns)                                                                \
    F(TEXTS, categories, (KP_MEM_CATEGORIES + 1, i ? kp_mem_category_name((unsigned)i - 1) : "All")) \
    F(LINE, , )                                                                                      \
    F(EACH_OF, devices, (device, devices_put, r))
KP_FIELDS(memory, struct memjson_item, MEMORY)

const struct kp_fields *const kp_memjson_schema = &memory_fields;

void kp_memjson_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    kp_fields_line(out, &memory_fields, &(struct memjson_item){.view = view, .show = show});
}

struct raw_out {
    FILE *to;
    const char *comma;
};

/* [time or -1, action, bytes, category]. Actions: 1 before the window, 2 allocated, 4 freed. torch lacks our last
 * category, which becomes Unknown. */
static void raw_put(struct raw_out *o, int64_t at_ns, int action, int64_t bytes, unsigned category)
{
    fprintf(o->to, "%s[%" PRId64 ", %d, %" PRId64 ", %u]", o->comma, at_ns, action, bytes,
            category == KP_MEM_BEFORE ? (unsigned)KP_MEM_UNKNOWN : category);
    o->comma = ", ";
}

void kp_memjson_raw(FILE *out, const struct kp_memview *view, size_t device)
{
    struct raw_out raw = {out, ""};
    struct kp_mem_curve c;
    const struct kp_mem_device *d = &view->devices[device];
    kp_mem_curve_build(&c, view, device, INT64_MIN + 1, INT64_MAX - 1);
    fputc('[', out);
    if (d->before_bytes) raw_put(&raw, -1, 1, d->before_bytes, KP_MEM_BEFORE);
    for (size_t i = d->first; i < d->first + d->count && view->blocks[i].from_ns == INT64_MIN; i++)
        raw_put(&raw, -1, 1, view->blocks[i].bytes, view->blocks[i].category);
    for (size_t i = 0; i < c.count; i++)
        raw_put(&raw, c.points[i].at_ns, c.points[i].bytes < 0 ? 4 : 2, c.points[i].bytes, c.points[i].category);
    fputs("]\n", out);
    kp_mem_curve_fini(&c);
}

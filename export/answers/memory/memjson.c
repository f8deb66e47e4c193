// SPDX-License-Identifier: Apache-2.0
/* memjson.c - writes memory as JSON, and torch's raw timeline of one device */
#include "export/answers/memory/memblocks.h"

#include <inttypes.h>

#include "export/show/plain.h"

static void member_put(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\":", key);
    kp_plain_json(out, text);
    fputc(',', out);
}

static void sum_put(FILE *out, const char *key, const struct kp_mem_sum *sum)
{
    fprintf(out, "\"%s\":{\"total\":%" PRId64, key, sum->total);
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++)
        fprintf(out, ",\"%s\":%" PRId64, kp_mem_category_name(k), sum->of[k]);
    fputs("},", out);
}

static void step_put(FILE *out, const struct kp_memview *view, int64_t at_ns)
{
    long step = kp_mem_step_at(view, at_ns);
    if (step >= 0) fprintf(out, "\"step\":%ld,", view->steps[step].number);
}

static void group_put(FILE *out, const struct kp_memview *view, const struct kp_mem_group *row, bool is_leak)
{
    const struct kp_kineto *trace = view->tree->trace;
    fputc('{', out);
    member_put(out, "op", kp_kineto_text(trace, row->op));
    member_put(out, "outermost_op", kp_kineto_text(trace, row->top));
    member_put(out, "category", kp_mem_category_name(row->category));
    if (row->stack) member_put(out, "stack", kp_kineto_text(trace, row->stack));
    if (row->is_backward) fputs("\"backward\":true,", out);
    if (is_leak)
        fprintf(out, "\"steps\":%ld,\"first_step\":%ld,\"last_step\":%ld,", row->steps,
                view->steps[row->first_step].number, view->steps[row->last_step].number);
    fprintf(out, "\"bytes\":%" PRId64 ",\"blocks\":%zu}", row->bytes, row->count);
}

static void groups_put(FILE *out, const struct kp_memview *view, const char *key, struct kp_mem_groups *g, long limit,
                       bool is_leak)
{
    fprintf(out, "\"%s\":[", key);
    for (size_t i = 0; i < g->count && (limit < 0 || i < (size_t)limit); i++) {
        fputs(i ? ",\n" : "\n", out);
        group_put(out, view, &g->rows[i], is_leak);
    }
    fputs("],\n", out);
    kp_mem_groups_fini(g);
}

static void outs_put(FILE *out, const struct kp_memview *view, size_t device)
{
    const char *comma = "";
    fputs("\"out_of_memory\":[", out);
    for (size_t i = 0; i < view->out_count; i++) {
        const struct kp_mem_out *o = &view->outs[i];
        if (o->device != device) continue;
        fprintf(out, "%s{\"ns\":%" PRId64 ",", comma, o->at_ns);
        step_put(out, view, o->at_ns);
        member_put(out, "op", kp_mem_op_name(view, o->place.op));
        fprintf(out, "\"bytes\":%" PRId64 ",\"allocated\":%" PRId64 "}", o->bytes, o->allocated);
        comma = ",";
    }
    fputs("],\n", out);
}

/* Writes one point for each moment: [ns, total, one sum for each category]. */
static void timeline_put(FILE *out, const struct kp_mem_curve *c, int64_t from_ns)
{
    struct kp_mem_sum now = c->begin;
    int64_t at_ns = from_ns;
    fputs("\"timeline\":[", out);
    for (size_t i = 0; i <= c->count; i++) {
        if (i == c->count || c->points[i].at_ns != at_ns) {
            fprintf(out, "\n[%" PRId64 ",%" PRId64, at_ns, now.total);
            for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) fprintf(out, ",%" PRId64, now.of[k]);
            fputs(i == c->count ? "]" : "],", out);
        }
        if (i == c->count) break;
        kp_mem_sum_add(&now, &c->points[i]);
        at_ns = c->points[i].at_ns;
    }
    fputs("]}", out);
}

static void device_put(FILE *out, const struct kp_memview *view, size_t device, const struct kp_mem_show *show)
{
    const struct kp_mem_device *d = &view->devices[device];
    struct kp_mem_curve c;
    struct kp_mem_groups g;
    kp_mem_curve_build(&c, view, device, show->from_ns, show->to_ns);
    fputc('{', out);
    member_put(out, "device", d->name);
    fprintf(out, "\"device_type\":%d,\"device_id\":%d,\"blocks\":%zu,\"peak_ns\":%" PRId64 ",", d->type, d->id,
            d->count, c.peak_ns);
    if (d->reserved_most >= 0) fprintf(out, "\"reserved_most\":%" PRId64 ",", d->reserved_most);
    step_put(out, view, c.peak_ns);
    fputc('\n', out);
    sum_put(out, "peak", &c.peak);
    sum_put(out, "highest", &c.most);
    sum_put(out, "begin", &c.begin);
    sum_put(out, "end", &c.end);
    fputc('\n', out);
    kp_mem_groups_live(&g, view, device, c.peak_ns);
    groups_put(out, view, "live_at_peak", &g, show->row_limit, false);
    kp_mem_groups_leaks(&g, view, device);
    groups_put(out, view, "leaks", &g, show->row_limit, true);
    outs_put(out, view, device);
    timeline_put(out, &c, show->from_ns);
    kp_mem_curve_fini(&c);
}

void kp_memjson_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    const char *comma = "";
    fputc('{', out);
    if (show->members) fprintf(out, "%s,\n", show->members);
    member_put(out, "file", show->label);
    member_put(out, "step_source", view->step_source);
    fprintf(out, "\"steps\":%zu,\"begin_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"categories\":[\"All\"",
            view->step_count, view->begin_ns, view->end_ns);
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) fprintf(out, ",\"%s\"", kp_mem_category_name(k));
    fputs("],\n\"devices\":[", out);
    for (size_t d = 0; d < view->device_count; d++) {
        if (show->device >= 0 && (size_t)show->device != d) continue;
        fputs(comma, out);
        device_put(out, view, d, show);
        comma = ",\n";
    }
    fputs("]}\n", out);
}

static int raw_category(unsigned category) { return category == KP_MEM_BEFORE ? KP_MEM_UNKNOWN : (int)category; }

/* Writes [time or -1, action, bytes, category]. Actions: 1 before the window, 2 allocated, 4 freed. torch lacks our
 * last category, which becomes Unknown. */
void kp_memjson_raw(FILE *out, const struct kp_memview *view, size_t device)
{
    struct kp_mem_curve c;
    const struct kp_mem_device *d = &view->devices[device];
    const char *comma = "";
    kp_mem_curve_build(&c, view, device, INT64_MIN + 1, INT64_MAX - 1);
    fputc('[', out);
    if (d->before_bytes) {
        fprintf(out, "[-1, 1, %" PRId64 ", %d]", d->before_bytes, KP_MEM_UNKNOWN);
        comma = ", ";
    }
    for (size_t i = d->first; i < d->first + d->count && view->blocks[i].from_ns == INT64_MIN; i++) {
        fprintf(out, "%s[-1, 1, %" PRId64 ", %d]", comma, view->blocks[i].bytes,
                raw_category(view->blocks[i].category));
        comma = ", ";
    }
    for (size_t i = 0; i < c.count; i++) {
        const struct kp_mem_point *p = &c.points[i];
        fprintf(out, "%s[%" PRId64 ", %d, %" PRId64 ", %d]", comma, p->at_ns, p->bytes < 0 ? 4 : 2, p->bytes,
                raw_category(p->category));
        comma = ", ";
    }
    fputs("]\n", out);
    kp_mem_curve_fini(&c);
}

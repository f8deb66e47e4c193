// SPDX-License-Identifier: Apache-2.0
/* otheradvice.c - what a recording without an op of torch tells: its heap, or the functions that were counted */
#include "export/answers/runadvice/judged.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/files/budget.h"
#include "export/answers/heapview/heapview.h"
#include "export/read/symbols/lines.h"
#include "export/read/frames/ownline.h"
#include "export/show/plain.h"
#include "export/answers/top/toprows.h"
#include "export/show/units.h"

enum { TEXT_BYTES = 1024, FRAMES = 3, ROWS = 3 };

bool kp_otheradvice_is_meant(const struct kp_advised *a)
{
    const struct kp_kineto *trace = a->trace;
    if (a->advice.steps) return false;
    for (size_t i = 0; i < trace->count; i++) {
        const struct kp_kineto_event *e = &trace->events[i];
        if (e->kind == KP_KINETO_OP && strcmp(kp_kineto_text(trace, e->cat), "symbol") != 0) return false;
        if (e->kind == KP_KINETO_GPU || e->kind == KP_KINETO_RUNTIME) return false;
    }
    return true;
}

/* ---- the heap ---- */

/* Writes "f at file.py:2", the program's own line, or the innermost frames. */
static void site_text(const struct kp_profile *p, uint32_t frame, char *out, size_t bytes)
{
    char name[TEXT_BYTES];
    size_t used = 0, n = 0;
    *out = 0;
    const struct kp_profile_place *const own = kp_profile_own_line(p, frame);
    if (own) {
        snprintf(out, bytes, "%s:%u %s", kp_profile_text(p, own->file), own->line, kp_profile_text(p, own->function));
        return;
    }
    for (; frame && n < FRAMES && used < bytes; frame = p->frames[frame - 1].around, n++) {
        const struct kp_profile_address *a = &p->addresses[p->frames[frame - 1].address - 1];
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", n ? ", in " : "",
                                 kp_profile_function(p, a, 0, name, sizeof name));
    }
}

struct heap_place {
    char *text;
    uint64_t bytes, blocks;
};

KP_ORDER_DOWN(place_order, struct heap_place, bytes)

static int text_order(const void *a, const void *b)
{
    return strcmp(((const struct heap_place *)a)->text, ((const struct heap_place *)b)->text);
}

/* Adds up call stacks of one line, the largest first. Returns how many there are. */
static size_t places_make(struct heap_place *places, const struct kp_profile *p, bool kept)
{
    char text[4 * TEXT_BYTES];
    size_t n = 0, merged = 0;
    for (size_t i = 0; i < p->sites_n; i++) {
        const struct kp_profile_site *s = &p->sites[i];
        const uint64_t bytes = kept ? s->kept_bytes : s->peak_bytes;
        if (!bytes) continue;
        site_text(p, s->frame, text, sizeof text);
        places[n].text = strdup(text);
        if (places[n].text)
            n++, places[n - 1].bytes = bytes, places[n - 1].blocks = kept ? s->kept_blocks : s->peak_blocks;
    }
    if (n) qsort(places, n, sizeof *places, text_order);
    for (size_t i = 0; i < n; i++) {
        struct heap_place *last = merged ? &places[merged - 1] : NULL;
        if (!last || strcmp(last->text, places[i].text) != 0) {
            places[merged++] = places[i];
            continue;
        }
        last->bytes += places[i].bytes;
        last->blocks += places[i].blocks;
        free(places[i].text);
    }
    if (merged) qsort(places, merged, sizeof *places, place_order);
    return merged;
}

static void places_print(FILE *out, const struct kp_profile *p, bool kept)
{
    char size[32];
    struct heap_place *places = kp_kineto_room(p->sites_n + 1, sizeof *places);
    const size_t n = places_make(places, p, kept);
    for (size_t i = 0; i < n; i++) {
        if (i < ROWS) {
            fprintf(out, "%s  %s in %llu block%s at ", kept ? "leak    " : "peak    ",
                    kp_units_bytes(size, sizeof size, (int64_t)places[i].bytes), (unsigned long long)places[i].blocks,
                    places[i].blocks == 1 ? "" : "s");
            kp_plain_put(out, *places[i].text ? places[i].text : "a call stack that is not known");
            fputs("\n", out);
        }
        free(places[i].text);
    }
    free(places);
}

static bool heap_print(FILE *out, const struct kp_trace_source *source)
{
    char path[4096], why[512], peak[32], kept[32];
    struct kp_profile *p = NULL;
    const struct kp_texts from = kp_trace_source_heap(source);
    if (!source->is_spool && !kp_profile_find(path, sizeof path, source->path)) return false;
    if (!source->is_spool) kp_budget_beside(path);
    if (kp_profile_read(&p, &from, source->label, why, sizeof why)) return false;
    struct kp_lines *lines = kp_lines_open("advise", &(struct kp_lines_options){.lines = true});
    const struct kp_places *names = kp_lines_places(lines);
    if (names) kp_profile_name(p, names);
    fprintf(out, "heap     %s at the peak; %s kept %s\n",
            kp_units_bytes(peak, sizeof peak, (int64_t)p->total.peak_bytes),
            kp_units_bytes(kept, sizeof kept, (int64_t)p->total.kept_bytes),
            p->is_python_over ? "when Python ended" : "at the end");
    places_print(out, p, false);
    places_print(out, p, true);
    fprintf(out, "next     kprof memory has the call stacks%s\n",
            p->steps_n > 1 ? "; kprof memory --leaks what each step left" : "");
    kp_profile_close(p);
    kp_lines_close(lines);
    return true;
}

/* ---- functions by name ---- */

static void functions_print(FILE *out, const struct kp_advised *a)
{
    struct kp_top top;
    kp_top_build(&top, &a->tree, &a->chosen, KP_TOP_BY_OP);
    kp_top_order(&top, KP_TOP_SELF);
    for (size_t i = 0; i < top.count && i < ROWS; i++) {
        const struct kp_top_row *row = &top.rows[i];
        fprintf(out, "calls    %lld of ", (long long)row->cost.count);
        kp_plain_put(out, kp_kineto_text(a->trace, row->name));
        fprintf(out, ": %.3f ms, %.3f us each\n", row->cost.total_ns / 1e6,
                row->cost.count ? row->cost.total_ns / 1e3 / (double)row->cost.count : 0);
    }
    if (top.count) fprintf(out, "next     kprof report has all of them\n");
    kp_top_fini(&top);
}

void kp_otheradvice_print(FILE *out, const struct kp_advised *a, const struct kp_trace_source *source)
{
    const bool has_heap = heap_print(out, source);
    functions_print(out, a);
    if (has_heap || a->tree.count) return;
    fprintf(out, "no torch operator, no call and no heap in it: `kprof events` shows what there is\n");
}

// SPDX-License-Identifier: Apache-2.0
/*
 * mempage.c - writes memory as one page: for each device the curve and tables; and the host's heap
 *
 * A script draws the curve (memdraw.c), all else is HTML. Nothing is fetched.
 */
#include "export/answers/memory/memblocks.h"

#include <string.h>

#include "export/read/kineto/kineto_facts.h"
#include "export/show/html.h"
#include "export/show/units.h"

enum { PLACE_BYTES = 256 };

struct memory_page {
    FILE *out;
    const struct kp_memview *view;
    const struct kp_mem_show *show;
    struct kp_mem_curve curve;
};

static void size_put(FILE *out, int64_t bytes) { fprintf(out, "<td class=\"n\">%s</td>", kp_units_size(bytes)); }

static void text_cell(FILE *out, const char *text)
{
    fputs("<td class=\"o\">", out);
    kp_html_text(out, text);
    fputs("</td>", out);
}

/* ---- the drawing ---- */

static void drawing_put(const struct memory_page *p)
{
    fputs("<div><div class=\"curve\" tabindex=\"0\" role=\"slider\" aria-label=\"Memory over time. Arrow keys move "
          "the moment, P goes to the peak.\" aria-valuemin=\"0\"><svg aria-hidden=\"true\"></svg></div>\n<p "
          "class=\"told\" role=\"status\"></p><noscript><p>A script of this page draws the curve.</p></noscript>\n"
          "<script type=\"application/json\">",
          p->out);
    kp_memdraw_data(p->out, p->view, p->show, &p->curve);
    fputs("</script></div>\n", p->out);
}

/* ---- tables ---- */

static void table_open(FILE *out, const char *title, const char *about)
{
    fprintf(out, "<h3>%s</h3>\n", title);
    if (about) fprintf(out, "<p>%s</p>\n", about);
    fprintf(out, "<div class=\"scroll\"><table aria-label=\"%s\">\n", title);
}

static void sums_row(const struct memory_page *p, const char *name, const int64_t of[4])
{
    fprintf(p->out, "<tr><td>%s</td>", name);
    for (int i = 0; i < 4; i++) size_put(p->out, of[i]);
    fputs("</tr>\n", p->out);
}

static void categories_put(const struct memory_page *p)
{
    const struct kp_mem_curve *c = &p->curve;
    table_open(p->out, "By category", NULL);
    fputs("<thead><tr><th>Category</th><th class=\"n\">At the peak</th><th class=\"n\">Its own highest</th><th "
          "class=\"n\">At the start</th><th class=\"n\">At the end</th></tr></thead>\n",
          p->out);
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++)
        if (c->most.of[k])
            sums_row(p, kp_mem_category_name(k),
                     (const int64_t[]){c->peak.of[k], c->most.of[k], c->begin.of[k], c->end.of[k]});
    fputs("<tfoot>", p->out);
    sums_row(p, "All", (const int64_t[]){c->peak.total, c->most.total, c->begin.total, c->end.total});
    fputs("</tfoot></table></div>\n", p->out);
}

static bool has_places(const struct kp_mem_groups *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->rows[i].stack) return true;
    return false;
}

static void places_put(const struct memory_page *p, const struct kp_mem_group *row, bool places)
{
    const struct kp_kineto *trace = p->view->tree->trace;
    const char *op = kp_kineto_text(trace, row->op);
    char place[PLACE_BYTES];
    text_cell(p->out, *op ? op : row->is_older ? "(before recording)" : "(outside any op)");
    text_cell(p->out, kp_kineto_text(trace, row->top));
    if (places) text_cell(p->out, kp_mem_place_text(p->view, row, place, sizeof place));
    fputs("</tr>\n", p->out);
}

static void places_head(FILE *out, bool places)
{
    fprintf(out, "<th>Op</th><th>Outermost op</th>%s</tr></thead>\n", places ? "<th>Module, line</th>" : "");
}

static void rest_put(const struct memory_page *p, const struct kp_mem_groups *g, size_t shown)
{
    const struct kp_mem_group rest = kp_mem_groups_rest(g, shown);
    const size_t more = g->count - shown;
    if (!more) return;
    fputs("<tr>", p->out);
    size_put(p->out, rest.bytes);
    fprintf(p->out, "<td class=\"n\">%zu</td><td colspan=\"5\">%zu more row%s</td></tr>\n", rest.count, more,
            kp_units_s(more));
}

static void live_put(const struct memory_page *p, size_t device)
{
    struct kp_mem_groups g;
    kp_mem_groups_live(&g, p->view, device, p->curve.peak_ns);
    kp_mem_groups_alike(&g, p->view);
    const size_t shown = kp_mem_groups_shown(&g, p->show);
    const bool places = has_places(&g);
    table_open(p->out, "Live at the peak, by op",
               places ? NULL : "kprof run --with-stack adds the module and the line of the program.");
    fputs("<thead><tr><th class=\"n\">Size</th><th class=\"n\">Blocks</th><th>Category</th>", p->out);
    places_head(p->out, places);
    for (size_t i = 0; i < shown; i++) {
        fputs("<tr>", p->out);
        size_put(p->out, g.rows[i].bytes);
        fprintf(p->out, "<td class=\"n\">%zu</td><td>%s</td>", g.rows[i].count,
                kp_mem_category_name(g.rows[i].category));
        places_put(p, &g.rows[i], places);
    }
    rest_put(p, &g, shown);
    if (p->curve.device->before_bytes) {
        fputs("<tr>", p->out);
        size_put(p->out, p->curve.device->before_bytes);
        fprintf(p->out, "<td></td><td colspan=\"4\">%s</td></tr>\n", kp_mem_category_name(KP_MEM_BEFORE));
    }
    fputs("</table></div>\n", p->out);
    kp_mem_groups_fini(&g);
}

static void leak_row(const struct memory_page *p, const struct kp_mem_group *row, bool places)
{
    fputs("<tr>", p->out);
    size_put(p->out, row->bytes);
    fprintf(p->out, "<td class=\"n\">%zu</td>", row->count);
    size_put(p->out, row->bytes / row->steps);
    fprintf(p->out, "<td>%ld, in %ld to %ld</td>", row->steps, p->view->steps[row->first_step].number,
            p->view->steps[row->last_step].number);
    places_put(p, row, places);
}

static void leaks_put(const struct memory_page *p, size_t device)
{
    struct kp_mem_groups g;
    if (p->view->step_count < 3) {
        fprintf(p->out,
                "<h3>Growth from step to step is unknown</h3><p>It takes three steps, the recording has %zu.</p>\n",
                p->view->step_count);
        return;
    }
    kp_mem_groups_leaks(&g, p->view, device);
    const bool places = has_places(&g);
    const size_t shown = kp_mem_groups_shown(&g, p->show);
    if (!g.count) {
        fputs("<h3>Nothing grows from step to step</h3>\n", p->out);
    } else {
        table_open(p->out, "Grows from step to step",
                   "Allocated in one step, and still there when the last step ends.");
        fputs("<thead><tr><th class=\"n\">Size</th><th class=\"n\">Blocks</th><th class=\"n\">A step</th><th>Steps "
              "that left "
              "some</th>",
              p->out);
        places_head(p->out, places);
        for (size_t i = 0; i < shown; i++) leak_row(p, &g.rows[i], places);
        rest_put(p, &g, shown);
        fputs("</table></div>\n", p->out);
    }
    kp_mem_groups_fini(&g);
}

static void outs_put(const struct memory_page *p, size_t device)
{
    for (size_t i = 0; i < p->view->out_count; i++) {
        const struct kp_mem_out *o = &p->view->outs[i];
        if (o->device != device || o->at_ns < p->show->from_ns || o->at_ns > p->show->to_ns) continue;
        fprintf(p->out, "<p><b>Out of memory</b> at %.3f ms: %s requested, %s in use, in ",
                kp_mem_ms(p->view, o->at_ns), kp_units_size(o->bytes), kp_units_size(o->allocated));
        kp_html_text(p->out, o->place.op < 0 ? "no op" : kp_mem_op_name(p->view, o->place.op));
        fputs("</p>\n", p->out);
    }
}

/* ---- the page ---- */

static void facts_put(const struct memory_page *p, const struct kp_mem_device *d)
{
    const long step = kp_mem_step_at(p->view, p->curve.peak_ns);
    fprintf(p->out, "<h2>%s: peak %s</h2>\n<p>At %.3f ms", d->name, kp_units_size(p->curve.peak.total),
            kp_mem_ms(p->view, p->curve.peak_ns));
    if (step >= 0) fprintf(p->out, " (step %ld)", p->view->steps[step].number);
    fprintf(p->out, "; %zu block%s recorded", d->count, kp_units_s(d->count));
    if (d->reserved_most >= 0) fprintf(p->out, ", at most %s reserved", kp_units_size(d->reserved_most));
    fprintf(p->out, ".%s</p>\n", d->knows_before ? "" : " " KP_MEM_BEFORE_MISSING);
}

static void device_put(struct memory_page *p, size_t device)
{
    const struct kp_mem_device *d = &p->view->devices[device];
    kp_mem_curve_build(&p->curve, p->view, device, p->show->from_ns, p->show->to_ns);
    facts_put(p, d);
    outs_put(p, device);
    if (d->count || d->before_bytes) {
        drawing_put(p);
        categories_put(p);
        live_put(p, device);
        leaks_put(p, device);
    }
    kp_mem_curve_fini(&p->curve);
}

/* Lines of the heap's text by their indent: a title, a site, a frame of the site's stack. */
static void heap_put(FILE *out, const char *text)
{
    bool in_site = false;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        const size_t indent = strspn(text, " ");
        char line[4096];
        n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(n > indent ? n - indent : 0), text + (n > indent ? indent : n));
        if (in_site && indent < 8) fputs("</details>\n", out), in_site = false;
        if (!line[0]) continue;
        const bool is_title = !indent && line[strlen(line) - 1] == ':';
        const char *tag = is_title ? "h3" : indent < 4 ? "p" : indent < 8 ? "summary" : "div";
        if (indent >= 4 && indent < 8) fputs("<details>", out), in_site = true;
        fprintf(out, "<%s>", tag);
        kp_html_text(out, line);
        fprintf(out, "</%s>\n", tag);
    }
    if (in_site) fputs("</details>\n", out);
}

static void head_put(FILE *out, const struct kp_memview *view, const char *path)
{
    const char *slash = strrchr(path, '/'), *label = slash && slash[1] ? slash + 1 : path;
    const char *const script = view ? kp_kineto_fact(view->tree->trace, "kprof.script") : NULL;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n", out);
    fputs("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta "
          "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src "
          "'unsafe-inline'\"><title>Memory: ",
          out);
    kp_html_text(out, script ? script : label);
    fputs("</title>\n<style>\n", out);
    fputs(kp_html_look_css, out);
    fputs("main{padding-top:1rem}h2{margin-top:1.6rem}h3{font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.2rem "
          "0;color:var(--dim);max-width:60rem}.scroll{width:fit-content;max-width:100%}#scheme{float:right}"
          "</style></head>\n<body><main>\n" KP_HTML_SCHEME_BUTTON "<h1>Memory",
          out);
    if (script) fputs(" of ", out), kp_html_text(out, script);
    fputs(" <small>", out);
    kp_html_text(out, label);
    fputs("</small></h1>\n", out);
}

static void window_put(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    fprintf(out, "<p>%zu step%s in %s. Times are after the profiler's start.</p>\n", view->step_count,
            kp_units_s(view->step_count), kp_units_ms((double)(view->end_ns - view->begin_ns)));
    char steps[80];
    if (show->is_part)
        fprintf(out, "<p>Shown: %s, %s. <code>--step all</code> shows all.</p>\n",
                kp_units_steps(steps, sizeof steps, show->first_step, show->last_step),
                kp_units_ms((double)(show->to_ns - show->from_ns)));
}

void kp_mempage_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show, const char *heap)
{
    struct memory_page p = {.out = out, .view = view, .show = show};
    head_put(out, view, show->label);
    if (view) window_put(out, view, show);
    if (view && view->no_addresses)
        fputs("<p>Some events of memory have no address (traces of 2021): they are left out.</p>\n", out);
    for (size_t d = 0; view && d < view->device_count; d++)
        if (kp_mem_shows(show, d)) device_put(&p, d);
    if (heap) {
        fputs("<h2>Heap of the host</h2>\n", out);
        heap_put(out, heap);
    }
    fputs("<script>\n", out);
    fputs(kp_html_scheme_js, out);
    if (view) kp_memdraw_script(out);
    fputs("</script>\n</main></body></html>\n", out);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * memsvg.c - draws the timeline as SVG, a panel for each device in torch's colours
 *
 * The time is cut into 800 stretches, and each shows its highest moment. So a peak of a microsecond shows, and the file
 * does not grow with the window. A stretch's title, which the mouse shows, has the numbers.
 */
#include "export/report/memory/memblocks.h"

#include <stdlib.h>
#include <string.h>

#include "export/report/html.h"
#include "export/report/memory/memticks.h"
#include "export/report/units.h"

enum {
    SLICES = 800,
    LEFT = 90,
    RIGHT = 20,
    WIDTH = LEFT + SLICES + RIGHT,
    PLOT = 260,
    HEAD = 46,
    PANEL = HEAD + PLOT + 34,
    LEGEND = 18,
    LETTER = 6,
    Y_TICKS = 6,
    X_TICKS = 8,
    STEP_NUMBERS = 16
};

static const char *const colours[KP_MEM_CATEGORIES] = {"#006400", "#daa520", "#222222", "#9370db", "#e03030",
                                                       "#1414cd", "#4169e1", "#999999", "#cccccc"};

struct panel {
    const struct kp_memview *view;
    const struct kp_mem_show *show;
    struct kp_mem_curve curve;
    struct kp_mem_sum *slices;
    struct kp_ticks_axis y, x;
    int64_t at[SLICES];
    double top; /* y of the plot */
};

static double y_of(const struct panel *p, int64_t bytes)
{
    return p->top + PLOT - (double)bytes / kp_ticks_at(&p->y, p->y.count - 1) * PLOT;
}

/* Draws a category's area: along its upper edge to the right, along its lower edge back. */
static void area_put(FILE *out, const struct panel *p, unsigned category)
{
    int64_t below[SLICES];
    for (size_t i = 0; i < SLICES; i++) {
        below[i] = 0;
        for (unsigned k = 0; k < category; k++) below[i] += p->slices[i].of[k];
    }
    fprintf(out, "<path fill=\"%s\" d=\"", colours[category]);
    for (size_t i = 0; i < SLICES; i++)
        fprintf(out, "%c%zu %.1fh1", i ? 'L' : 'M', LEFT + i, y_of(p, below[i] + p->slices[i].of[category]));
    for (size_t i = SLICES; i-- > 0;) fprintf(out, "L%zu %.1fh-1", LEFT + i + 1, y_of(p, below[i]));
    fputs("z\"/>\n", out);
}

static void title_put(FILE *out, const struct panel *p, size_t i)
{
    char size[32];
    long step = kp_mem_step_at(p->view, p->at[i]);
    fprintf(out, "%.3f ms", (double)(p->at[i] - p->view->begin_ns) / 1e6);
    if (step >= 0) fprintf(out, ", %s#%ld", p->view->step_source, p->view->steps[step].number);
    fprintf(out, "\nAll: %s", kp_units_bytes(size, sizeof size, p->slices[i].total));
    for (unsigned k = KP_MEM_CATEGORIES; k-- > 0;)
        if (p->slices[i].of[k])
            fprintf(out, "\n%s: %s", kp_mem_category_name(k), kp_units_bytes(size, sizeof size, p->slices[i].of[k]));
}

static double x_of(const struct panel *p, int64_t ns)
{
    double span = (double)(p->show->to_ns - p->show->from_ns);
    return LEFT + (span > 0 ? (double)(ns - p->show->from_ns) / span : 0) * SLICES;
}

static bool is_shown(const struct panel *p, const struct kp_mem_step *step)
{
    return step->from_ns >= p->show->from_ns && step->from_ns <= p->show->to_ns;
}

static void steps_put(FILE *out, const struct panel *p)
{
    size_t shown = 0, seen = 0;
    for (size_t i = 0; i < p->view->step_count; i++) shown += is_shown(p, &p->view->steps[i]);
    const size_t every = kp_ticks_every(shown, STEP_NUMBERS);
    for (size_t i = 0; i < p->view->step_count; i++) {
        const struct kp_mem_step *step = &p->view->steps[i];
        if (!is_shown(p, step) || seen++ % every) continue;
        double x = x_of(p, step->from_ns);
        fprintf(out, "<path class=\"s\" d=\"M%.1f %.1fv%d\"/><text class=\"n\" x=\"%.1f\" y=\"%.1f\">%ld</text>\n", x,
                p->top, PLOT, x + 2, p->top + 9, step->number);
    }
}

static void axes_put(FILE *out, const struct panel *p)
{
    char text[48];
    for (int i = 0; i < p->y.count; i++) {
        double y = p->top + PLOT - (double)i * PLOT / (p->y.count - 1);
        fprintf(out, "<path class=\"g\" d=\"M%d %.1fh%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT, y, SLICES, LEFT - 6, y + 4, kp_ticks_text(text, sizeof text, &p->y, i));
    }
    for (int i = 0; i < p->x.count; i++)
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                x_of(p, p->view->begin_ns + (int64_t)kp_ticks_at(&p->x, i)), p->top + PLOT + 15,
                kp_ticks_text(text, sizeof text, &p->x, i));
}

/* Names the categories of this panel, each as wide as its text. */
static void legend_put(FILE *out, const struct panel *p)
{
    unsigned x = LEFT;
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) {
        if (!p->curve.most.of[k]) continue;
        fprintf(
            out,
            "<rect x=\"%u\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%u\" y=\"%.1f\">%s</text>\n",
            x, p->top - 18, colours[k], x + 14, p->top - 9, kp_mem_category_name(k));
        x += 30 + LETTER * (unsigned)strlen(kp_mem_category_name(k));
    }
}

static void panel_put(FILE *out, struct panel *p, size_t device, double y)
{
    char size[32];
    p->top = y + HEAD;
    kp_mem_curve_build(&p->curve, p->view, device, p->show->from_ns, p->show->to_ns);
    p->slices = kp_mem_curve_slices(&p->curve, p->show->from_ns, p->show->to_ns, SLICES, p->at);
    p->y = kp_ticks_bytes(p->curve.peak.total, Y_TICKS);
    p->x = kp_ticks_time(p->show->from_ns - p->view->begin_ns, p->show->to_ns - p->view->begin_ns, X_TICKS);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" class=\"h\">%s: peak %s at %.3f ms</text>\n", LEFT, y + HEAD - 26,
            p->curve.device->name, kp_units_bytes(size, sizeof size, p->curve.peak.total),
            (double)(p->curve.peak_ns - p->view->begin_ns) / 1e6);
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++)
        if (p->curve.most.of[k]) area_put(out, p, k);
    legend_put(out, p);
    axes_put(out, p);
    steps_put(out, p);
    for (size_t i = 0; i < SLICES; i++) {
        fprintf(out, "<rect class=\"t\" x=\"%zu\" y=\"%.1f\" width=\"1\" height=\"%d\"><title>", LEFT + i, p->top,
                PLOT);
        title_put(out, p, i);
        fputs("</title></rect>\n", out);
    }
    free(p->slices);
    kp_mem_curve_fini(&p->curve);
}

void kp_memsvg_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    struct panel p = {.view = view, .show = show};
    size_t panels = show->device < 0 ? view->device_count : 1, drawn = 0;
    const int height = HEAD + LEGEND + (int)panels * PANEL;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" viewBox=\"0 0 %d %d\">\n", WIDTH, height);
    fputs(
        "<style>text{font:10px "
        "monospace;pointer-events:none}.h{font-size:13px}.g{stroke:#ccc;stroke-width:.5}.s{stroke:#888;stroke-width:.5;"
        "stroke-dasharray:3}.n{fill:#666}.t{fill:#000;fill-opacity:0}.t:hover{fill-opacity:.25}</style>\n<rect "
        "width=\"100%\" height=\"100%\" "
        "fill=\"#fcfcf8\"/>\n<text x=\"90\" y=\"18\" class=\"h\">",
        out);
    kp_html_text(out, show->label);
    fputs("</text>\n", out);
    for (size_t d = 0; d < view->device_count; d++)
        if (show->device < 0 || (size_t)show->device == d) panel_put(out, &p, d, LEGEND + 10 + (double)drawn++ * PANEL);
    fputs("</svg>\n", out);
}

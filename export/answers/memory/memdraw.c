// SPDX-License-Identifier: Apache-2.0
/*
 * memdraw.c - writes what curve.js draws of a device: sums of 800 stretches, each by its highest moment
 *
 * So a peak of a microsecond shows, and the file does not grow with the window.
 */
#include "export/answers/memory/memblocks.h"

#include <stdlib.h>
#include <string.h>

#include "export/show/jsonout.h"
#include "export/show/html.h"
#include "export/show/units.h"

enum { SLICES = 800 };

static void steps_put(struct kp_jsonout *j, const struct kp_memview *view, const struct kp_mem_show *show)
{
    kp_jsonout_open(j, "steps", '[');
    for (size_t i = 0; i < view->step_count; i++) {
        const struct kp_mem_step *step = &view->steps[i];
        if (step->from_ns < show->from_ns || step->from_ns > show->to_ns) continue;
        kp_jsonout_wholes(j, NULL, KP_JSONOUT_NUMBERS(step->number, step->from_ns - view->zero_ns));
    }
    kp_jsonout_close(j, ']');
}

/* Each slice: its highest moment, and the bytes of each category then. */
static void slices_put(struct kp_jsonout *j, const struct kp_memview *view, const struct kp_mem_show *show,
                       const struct kp_mem_curve *curve)
{
    int64_t at[SLICES], row[1 + KP_MEM_CATEGORIES];
    struct kp_mem_sum *slices = kp_mem_curve_slices(curve, show->from_ns, show->to_ns, SLICES, at);
    kp_jsonout_open(j, "slices", '[');
    for (size_t i = 0; i < SLICES; i++) {
        row[0] = at[i] - view->zero_ns;
        memcpy(row + 1, slices[i].of, sizeof slices[i].of);
        kp_jsonout_line(j);
        kp_jsonout_wholes(j, NULL, row, 1 + KP_MEM_CATEGORIES);
    }
    kp_jsonout_close(j, ']');
    free(slices);
}

void kp_memdraw_data(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show,
                     const struct kp_mem_curve *curve)
{
    struct kp_jsonout *const j = KP_JSONOUT(out);
    const int64_t span_ns = show->to_ns - show->from_ns;
    kp_jsonout_open(j, NULL, '{');
    kp_jsonout_whole(j, "from", show->from_ns - view->zero_ns);
    kp_jsonout_whole(j, "span", span_ns > 0 ? span_ns : 1);
    kp_jsonout_open(j, "names", '[');
    for (unsigned k = 0; k < KP_MEM_CATEGORIES; k++) kp_jsonout_text(j, NULL, kp_mem_category_name(k));
    kp_jsonout_close(j, ']');
    kp_jsonout_wholes(j, "most", curve->most.of, KP_MEM_CATEGORIES);
    kp_jsonout_open(j, "peak", '{');
    kp_jsonout_whole(j, "at", curve->peak_ns - view->zero_ns);
    kp_jsonout_whole(j, "total", curve->peak.total);
    kp_jsonout_wholes(j, "of", curve->peak.of, KP_MEM_CATEGORIES);
    kp_jsonout_close(j, '}');
    steps_put(j, view, show);
    slices_put(j, view, show, curve);
    kp_jsonout_close(j, '}');
}

void kp_memdraw_script(FILE *out)
{
    fwrite(kp_memcurve_script, 1, (size_t)(kp_memcurve_file_end - kp_memcurve_script), out);
}

/* ---- the curve as one SVG file, a panel for each device ---- */

enum { WIDTH = 1000, PANEL = 420, HEAD = 34, BELOW = 36 };

static void panel_put(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show, size_t device, int y)
{
    struct kp_mem_curve curve;
    kp_mem_curve_build(&curve, view, device, show->from_ns, show->to_ns);
    fprintf(out,
            "<g transform=\"translate(0,%d)\"><text class=\"h\" x=\"12\" y=\"%d\">%s: peak %s at %.3f ms after the "
            "profiler's start</text>\n"
            "<text class=\"without\" x=\"12\" y=\"%d\">A browser draws the curve: open this file in one.</text>\n"
            "<text class=\"told\" x=\"12\" y=\"%d\"></text><svg x=\"12\" y=\"%d\" class=\"curve\" tabindex=\"0\" "
            "role=\"slider\" aria-label=\"Memory over time\"></svg>\n<metadata>",
            y, HEAD + 18, curve.device->name, kp_units_size(curve.peak.total), kp_mem_ms(view, curve.peak_ns),
            HEAD + 48, HEAD + BELOW, HEAD + BELOW + 8);
    kp_memdraw_data(out, view, show, &curve);
    fputs("</metadata></g>\n", out);
    kp_mem_curve_fini(&curve);
}

void kp_memsvg_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show)
{
    const int panels = show->device < 0 ? (int)view->device_count : 1;
    int drawn = 0;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" "
            "viewBox=\"0 0 %d %d\">\n<style>\n",
            WIDTH, HEAD + panels * PANEL);
    fputs(kp_html_look_css, out);
    fputs(":root{background:var(--paper)}text{font:12px var(--sans);fill:#5c636d;fill:var(--dim)}\n"
          ".h{font-size:15px;font-weight:600;fill:#1d1d1f;fill:var(--ink)}.curve{outline:none}\n"
          "</style>\n<text x=\"12\" y=\"22\">",
          out);
    kp_html_text(out, show->label);
    fputs("</text>\n", out);
    for (size_t d = 0; d < view->device_count; d++)
        if (kp_mem_shows(show, d)) panel_put(out, view, show, d, drawn++ * PANEL);
    fputs("<script><![CDATA[\n", out);
    kp_memdraw_script(out);
    fputs("]]></script>\n</svg>\n", out);
}

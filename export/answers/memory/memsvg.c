// SPDX-License-Identifier: Apache-2.0
/* memsvg.c - the curve of memory as one SVG file, a panel for each device. Its script draws it: memdraw.c */
#include "export/show/html.h"
#include "export/answers/memory/memblocks.h"
#include "export/show/units.h"

enum { WIDTH = 1000, PANEL = 420, HEAD = 34, BELOW = 36 };

static void panel_put(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show, size_t device, int y)
{
    char size[32];
    struct kp_mem_curve curve;
    kp_mem_curve_build(&curve, view, device, show->from_ns, show->to_ns);
    fprintf(out,
            "<g transform=\"translate(0,%d)\"><text class=\"h\" x=\"12\" y=\"%d\">%s: peak %s at %.3f ms after the "
            "profiler's start</text>\n"
            "<text class=\"without\" x=\"12\" y=\"%d\">A browser draws the curve: open this file in one.</text>\n"
            "<text class=\"told\" x=\"12\" y=\"%d\"></text><svg x=\"12\" y=\"%d\" class=\"curve\" tabindex=\"0\" "
            "role=\"slider\" aria-label=\"Memory over time\"></svg>\n<metadata>",
            y, HEAD + 18, curve.device->name, kp_units_bytes(size, sizeof size, curve.peak.total),
            (double)(curve.peak_ns - view->zero_ns) / 1e6, HEAD + 48, HEAD + BELOW, HEAD + BELOW + 8);
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
        if (show->device < 0 || (size_t)show->device == d) panel_put(out, view, show, d, drawn++ * PANEL);
    fputs("<script><![CDATA[\n", out);
    kp_memdraw_script(out);
    fputs("]]></script>\n</svg>\n", out);
}

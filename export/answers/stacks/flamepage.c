// SPDX-License-Identifier: Apache-2.0
/*
 * flamepage.c - writes the SVG of a flame graph: its head, legend, colours and boxes
 *
 * If scripts do not run it is a picture of 1200 units that fits its window's width. The script (flame.js, flamefile.js)
 * lays it out for the window, so that letters keep their size.
 */
#include "export/answers/stacks/flamepage.h"

#include "export/show/html.h"
#include "export/show/letters.h"
#include "export/show/units.h"

enum { WIDTH = 1200, ROW = 18, TOP = 96, BOTTOM = 12, SIDE = 10, LETTER = 7, SHADES = 4, VALUE_BYTES = 40 };

/* A part's colour: hue, and how much of it. */
static const struct {
    unsigned hue, chroma;
} part_colours[KP_PARTS] = {
    [KP_PART_LOADING] = {195, 100},  [KP_PART_FORWARD] = {130, 80}, [KP_PART_BACKWARD] = {28, 100},
    [KP_PART_OPTIMIZER] = {275, 80}, [KP_PART_OTHER] = {220, 25},   [KP_PART_THREADS] = {60, 45},
};
static const enum kp_part legend[] = {KP_PART_LOADING,   KP_PART_FORWARD, KP_PART_BACKWARD,
                                      KP_PART_OPTIMIZER, KP_PART_OTHER,   KP_PART_THREADS};

static const char *value_text(char *out, enum kp_flame_unit unit, int64_t value)
{
    if (unit == KP_FLAME_THREADS) return snprintf(out, VALUE_BYTES, "%lld", (long long)value), out;
    return unit == KP_FLAME_BYTES ? kp_units_bytes(out, VALUE_BYTES, value)
                                  : kp_units_scaled(out, VALUE_BYTES, (double)value, 1);
}

/* A box's colour by day or by night. */
static void colour_put(FILE *out, unsigned part, unsigned kind, unsigned shade, bool is_dark)
{
    static const unsigned chroma[] = {60, 80, 25}, light[] = {82, 66, 74}, dark[] = {26, 38, 30};
    fprintf(out, "hsl(%u,%u%%,%u%%)", part_colours[part].hue,
            part_colours[part].chroma * chroma[kind] / 100 * (is_dark ? 7 : 10) / 10,
            is_dark ? dark[kind] + 2 * shade : light[kind] - 3 * shade);
}

static void colours_put(FILE *out, unsigned part, unsigned kind, unsigned shade)
{
    fputs("light-dark(", out);
    colour_put(out, part, kind, shade, false);
    fputs(",", out);
    colour_put(out, part, kind, shade, true);
    fputs(")", out);
}

/* A program that is no browser may know no light-dark(): it takes the first colour. */
void kp_flamepage_colours(FILE *out)
{
    for (unsigned part = 0; part < KP_PARTS; part++) {
        fprintf(out, ":root{--f%u:", part);
        colours_put(out, part, KP_FLAME_OP, 0);
        fputs("}\n", out);
        for (unsigned i = 0; i < KP_FLAME_KINDS * SHADES; i++) {
            fprintf(out, ".c%u%u%u{fill:", part, i / SHADES, i % SHADES);
            colour_put(out, part, i / SHADES, i % SHADES, false);
            fputs(";fill:", out);
            colours_put(out, part, i / SHADES, i % SHADES);
            fputs("}", out);
        }
    }
    fputc('\n', out);
}

static void style_put(FILE *out)
{
    fputs("<style>\n", out);
    fputs(kp_html_look_css, out);
    kp_flamepage_colours(out);
    fputs(".bg{fill:#fff;fill:var(--paper)}.flame .title{font-size:16px;font-weight:bold}.flame "
          ".dim{fill:#555;fill:var(--dim)}\n"
          ".flame "
          ".k{cursor:pointer;fill:#1f5fbf;fill:var(--accent)}.k:hover,.k:focus{text-decoration:underline}#scheme{"
          "position:absolute;right:10px;top:8px}"
          "\n</style>\n",
          out);
}

static void legend_put(FILE *out, const struct kp_flame_show *show, const struct kp_flame_head *head)
{
    char value[VALUE_BYTES];
    unsigned x = SIDE;
    for (size_t i = 0; i < sizeof legend / sizeof *legend; i++) {
        const enum kp_part part = legend[i];
        if (!head->parts[part]) continue;
        char text[96];
        const int bytes = snprintf(text, sizeof text, "%s %s, %.1f %%", kp_part_name(part),
                                   value_text(value, show->unit, head->parts[part]),
                                   head->total ? 100.0 * (double)head->parts[part] / (double)head->total : 0);
        fprintf(out,
                "<g class=\"l\" transform=\"translate(%u,54)\"><rect class=\"c%u10\" width=\"12\" height=\"12\"/>"
                "<text x=\"17\" y=\"10\">%s</text></g>\n",
                x, (unsigned)part, text);
        x += 17 + (unsigned)bytes * LETTER + 24;
    }
}

static unsigned height_of(const struct kp_flame_head *head) { return TOP + BOTTOM + (head->deepest + 1) * ROW; }

void kp_flamepage_begin(FILE *out, const struct kp_flame_show *show, const struct kp_flame_head *head)
{
    char total[VALUE_BYTES];
    const unsigned height = height_of(head);
    if (show->is_page) {
        fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
              "content=\"width=device-width\"><title>",
              out);
        kp_html_text(out, show->title);
        fputs("</title></head><body>\n" KP_HTML_SCHEME_BUTTON, out);
    } else {
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" aria-label=\"Flame graph\" class=\"flame\" width=\"100%%\" "
            "viewBox=\"0 0 %d %u\" "
            "preserveAspectRatio=\"xMinYMin meet\">\n",
            WIDTH, height);
    static const char *const widths[] = {"time", "bytes", "threads"};
    style_put(out);
    fprintf(out,
            "<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n<text id=\"title\" class=\"title\" x=\"%d\" "
            "y=\"22\">",
            SIDE);
    kp_html_text(out, show->title);
    fprintf(out,
            "</text>\n<text id=\"total\" class=\"dim\" x=\"%d\" y=\"41\">total %s; width is %s; a click zooms, / or "
            "Ctrl-F searches, Esc goes back</text>\n",
            SIDE, value_text(total, show->unit, head->total), widths[show->unit]);
    legend_put(out, show, head);
    fprintf(out,
            "<text id=\"reset\" class=\"k\" tabindex=\"0\" role=\"button\" x=\"%d\" y=\"86\" "
            "style=\"display:none\">back</text><text id=\"search\" class=\"k\" tabindex=\"0\" role=\"button\" "
            "x=\"%d\" y=\"86\">search</text><text id=\"told\" class=\"dim\" x=\"120\" y=\"86\"></text>\n",
            SIDE + 60, SIDE);
}

/* The name as far as a box has room for it. */
static void name_put(FILE *out, const char *name, size_t fits)
{
    char shown[256];
    if (fits > 2) kp_html_text(out, kp_letters_fit(shown, sizeof shown, name, fits, fits - 2, ".."));
}

void kp_flamepage_box(FILE *out, const struct kp_flame_show *show, const struct kp_flame_box *b)
{
    char value[VALUE_BYTES];
    const double scale = WIDTH - 2 * SIDE, x = SIDE + b->from * scale, y = TOP + (double)b->depth * ROW;
    fprintf(out, "<g class=\"b\" data-x=\"%.6f\" data-w=\"%.6f\" data-d=\"%u\"><title>", b->from, b->width, b->depth);
    kp_html_text(out, b->name);
    fprintf(out, " (%s, %.2f%%)</title><rect class=\"c%u%u%u\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"/>",
            value_text(value, show->unit, b->value), b->width * 100, b->colour.part, (unsigned)b->colour.kind,
            b->colour.shade % SHADES, x, y, b->width * scale, ROW - 1);
    fprintf(out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + ROW - 5);
    name_put(out, b->name, (size_t)(b->width * scale / LETTER));
    fputs("</text></g>\n", out);
}

void kp_flamepage_end(FILE *out, const struct kp_flame_show *show)
{
    fputs("<script><![CDATA[\n", out);
    fwrite(kp_flame_script, 1, (size_t)(kp_flame_file_end - kp_flame_script), out);
    fputs("]]></script>\n</svg>\n", out);
    if (show->is_page) fprintf(out, "<script>\n%s</script></body></html>\n", kp_html_scheme_js);
}

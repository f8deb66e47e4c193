// SPDX-License-Identifier: Apache-2.0
/*
 * flame.c - draws a flame graph as one SVG file, with a script in it that zooms and searches
 *
 * Stacks come folded ("outer;inner"). Frames of one name under one parent become one box, as wide as their total time.
 * Boxes too narrow to be seen are left out, so the file does not grow with the run.
 */
#include "export/report/folded.h"

#include <stdlib.h>
#include <string.h>

#include "export/report/html.h"

enum { WIDTH = 1200, ROW = 17, TOP = 46, BOTTOM = 12, SIDE = 10, LETTER = 7, SLOTS_FIRST = 256 };
#define NARROW 0.0002 /* of the whole */

struct box {
    char *name;
    int64_t total;
    uint32_t parent, first, next; /* box numbers, 0: none */
    uint32_t depth;
};
struct kp_flame {
    struct box *boxes; /* 0 is the whole; a parent comes before its children */
    size_t count, capacity;
    uint32_t *slots; /* boxes by parent and name, 0: free; a power of two */
    size_t slot_count;
};

static uint32_t box_add(struct kp_flame *f, const char *name, size_t bytes, uint32_t parent)
{
    size_t copied = 0;
    f->boxes = kp_kineto_grow(f->boxes, &f->capacity, f->count + 1, sizeof *f->boxes);
    struct box *b = &f->boxes[f->count];
    *b = (struct box){.name = kp_kineto_grow(NULL, &copied, bytes + 1, 1), .parent = parent};
    memcpy(b->name, name, bytes);
    b->name[bytes] = 0;
    if (f->count) {
        b->depth = f->boxes[parent].depth + 1;
        b->next = f->boxes[parent].first;
        f->boxes[parent].first = (uint32_t)f->count;
    }
    return (uint32_t)f->count++;
}

struct kp_flame *kp_flame_open(void)
{
    size_t capacity = 0;
    struct kp_flame *f = kp_kineto_grow(NULL, &capacity, 1, sizeof *f);
    *f = (struct kp_flame){0};
    box_add(f, "all", 3, 0);
    return f;
}

void kp_flame_close(struct kp_flame *f)
{
    for (size_t i = 0; i < f->count; i++) free(f->boxes[i].name);
    free(f->boxes);
    free(f->slots);
    free(f);
}

/* Finds the box's slot, or the free one where it belongs. */
static size_t slot_of(const struct kp_flame *f, uint32_t parent, const char *name, size_t bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ parent;
    for (size_t i = 0; i < bytes; i++) h = (h ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    size_t at = (size_t)((h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (f->slot_count - 1);
    for (; f->slots[at]; at = (at + 1) & (f->slot_count - 1)) {
        const struct box *b = &f->boxes[f->slots[at]];
        if (b->parent == parent && strncmp(b->name, name, bytes) == 0 && !b->name[bytes]) break;
    }
    return at;
}

static void slots_widen(struct kp_flame *f)
{
    size_t unused = 0, count = f->slot_count ? 2 * f->slot_count : SLOTS_FIRST;
    free(f->slots);
    f->slots = kp_kineto_grow(NULL, &unused, count, sizeof *f->slots);
    memset(f->slots, 0, count * sizeof *f->slots);
    f->slot_count = count;
    for (size_t i = 1; i < f->count; i++)
        f->slots[slot_of(f, f->boxes[i].parent, f->boxes[i].name, strlen(f->boxes[i].name))] = (uint32_t)i;
}

static uint32_t box_get(struct kp_flame *f, uint32_t parent, const char *name, size_t bytes)
{
    if (2 * (f->count + 1) > f->slot_count) slots_widen(f);
    const size_t at = slot_of(f, parent, name, bytes);
    if (!f->slots[at]) f->slots[at] = box_add(f, name, bytes, parent);
    return f->slots[at];
}

void kp_flame_add(void *flame, const char *stack, int64_t us)
{
    struct kp_flame *f = flame;
    uint32_t at = 0;
    f->boxes[0].total += us;
    while (*stack) {
        size_t bytes = strcspn(stack, ";");
        at = box_get(f, at, stack, bytes);
        f->boxes[at].total += us;
        stack += bytes + (stack[bytes] == ';');
    }
}

/* ---- drawing ---- */

static int name_order(const void *a, const void *b, void *context)
{
    const struct kp_flame *f = context;
    return strcmp(f->boxes[*(const uint32_t *)a].name, f->boxes[*(const uint32_t *)b].name);
}

struct numbers {
    uint32_t *of;
    size_t capacity;
};

/* Sorts children by name, so that two graphs of one program look alike. Their names differ. */
static void children_sort(struct kp_flame *f, uint32_t parent, struct numbers *numbers)
{
    size_t n = 0;
    for (uint32_t i = f->boxes[parent].first; i; i = f->boxes[i].next) {
        numbers->of = kp_kineto_grow(numbers->of, &numbers->capacity, n + 1, sizeof *numbers->of);
        numbers->of[n++] = i;
    }
    if (n < 2) return;
    qsort_r(numbers->of, n, sizeof *numbers->of, name_order, f);
    f->boxes[parent].first = numbers->of[0];
    for (size_t i = 0; i < n; i++) f->boxes[numbers->of[i]].next = i + 1 < n ? numbers->of[i + 1] : 0;
}

/* Python is orange, C is blue, nn.Module is green. A name always gets the same shade. */
static void colour_put(FILE *out, const char *name)
{
    unsigned h = 2166136261u;
    for (const char *p = name; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
    unsigned hue = strncmp(name, "<built-in", 9) == 0     ? 190 + h % 30
                   : strncmp(name, "nn.Module:", 10) == 0 ? 90 + h % 40
                                                          : 15 + h % 40;
    fprintf(out, "hsl(%u,%u%%,%u%%)", hue, 60 + h / 64 % 25, 62 + h / 4096 % 14);
}

static void box_put(const struct kp_flame *f, FILE *out, uint32_t i, double x, double width, unsigned height)
{
    const struct box *b = &f->boxes[i];
    const double scale = WIDTH - 2 * SIDE, y = height - BOTTOM - (double)(b->depth + 1) * ROW;
    const size_t fits = (size_t)(width * scale / LETTER);
    fprintf(out, "<g class=\"b\" data-x=\"%.6f\" data-w=\"%.6f\" data-d=\"%u\"><title>", x, width, b->depth);
    kp_html_text(out, b->name);
    fprintf(out, " (%lld us, %.2f%%)</title><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"",
            (long long)b->total, width * 100, SIDE + x * scale, y, width * scale, ROW - 1);
    colour_put(out, b->name);
    fprintf(out, "\"/><text x=\"%.2f\" y=\"%.1f\">", SIDE + x * scale + 3, y + ROW - 5);
    if (fits >= 4) {
        char shown[256];
        size_t bytes = strlen(b->name), most = fits < sizeof shown - 1 ? fits : sizeof shown - 1;
        snprintf(shown, sizeof shown, "%s", b->name);
        if (bytes > most) memcpy(shown + most - 2, "..", 3);
        for (size_t k = 0; k < most && shown[k]; k++) /* not ASCII: the cut may leave half a letter */
            if ((unsigned char)shown[k] >= 0x80) shown[k] = '?';
        kp_html_text(out, shown);
    }
    fputs("</text></g>\n", out);
}

/* Draws all boxes, without recursion: Python stacks may be a thousand deep. */
static void boxes_put(struct kp_flame *f, FILE *out, unsigned height)
{
    const double all = f->boxes[0].total ? (double)f->boxes[0].total : 1;
    size_t capacity = 0;
    struct numbers numbers = {0};
    double *starts = kp_kineto_grow(NULL, &capacity, f->count, sizeof *starts);
    starts[0] = 0;
    for (uint32_t i = 0; i < f->count; i++) { /* a parent comes before its children */
        double at = starts[i], width = (double)f->boxes[i].total / all;
        children_sort(f, i, &numbers);
        for (uint32_t c = f->boxes[i].first; c; c = f->boxes[c].next) {
            starts[c] = at;
            at += (double)f->boxes[c].total / all;
        }
        if (width >= NARROW) box_put(f, out, i, starts[i], width, height);
    }
    free(starts);
    free(numbers.of);
}

static const char script[] =
    "<script><![CDATA[\n"
    "(function(){var W=1200,S=10,L=7,boxes=[].slice.call(document.querySelectorAll('g.b')),from=0,width=1;\n"
    "var names=boxes.map(function(g){return g.querySelector('title').textContent});\n"
    "function draw(){boxes.forEach(function(g,i){var "
    "x=(+g.dataset.x-from)/width,w=+g.dataset.w/width,r=g.children[1],t=g.children[2];\n"
    "var l=Math.max(x,0),e=Math.min(x+w,1);if(e-l<1e-5){g.style.display='none';return}g.style.display='';\n"
    "r.setAttribute('x',S+l*(W-2*S));r.setAttribute('width',Math.max((e-l)*(W-2*S)-.3,.3));t.setAttribute('x',S+l*(W-2*"
    "S)+3);\n"
    "var n=names[i].replace(/ "
    "\\([^(]*\\)$/,''),f=Math.floor((e-l)*(W-2*S)/L);t.textContent=f<4?'':n.length>f?n.slice(0,f-2)+'..':n;});\n"
    "document.getElementById('reset').style.display=width<1?'':'none';}\n"
    "function find(text){var total=0,re=null;if(text)try{re=new RegExp(text)}catch(e){alert(e.message);return}\n"
    "var spans=[];boxes.forEach(function(g,i){var hit=re&&re.test(names[i].replace(/ "
    "\\([^(]*\\)$/,''));g.classList.toggle('hit',!!hit);\n"
    "if(hit)spans.push([+g.dataset.x,+g.dataset.x+ +g.dataset.w]);});spans.sort(function(a,b){return a[0]-b[0]});var "
    "end=-1;\n"
    "spans.forEach(function(s){if(s[1]>end){total+=s[1]-Math.max(s[0],end);end=s[1]}});\n"
    "document.getElementById('found').textContent=re?'matched '+(total*100).toFixed(2)+'%':'';}\n"
    "boxes.forEach(function(g){g.addEventListener('click',function(){from=+g.dataset.x;width=+g.dataset.w;draw();});\n"
    "g.addEventListener('mouseover',function(){document.getElementById('told').textContent=g.querySelector('title')."
    "textContent;});});\n"
    "document.getElementById('reset').addEventListener('click',function(){from=0;width=1;draw();});\n"
    "function ask(){find(prompt('frames that match (regular expression; nothing: none)')||'');}\n"
    "document.getElementById('search').addEventListener('click',ask);\n"
    "window.addEventListener('keydown',function(e){if((e.ctrlKey||e.metaKey)&&e.key==='f'||e.key==='/"
    "'){e.preventDefault();ask();}\n"
    "if(e.key==='Escape'){from=0;width=1;draw();}});\n"
    "draw();})();\n"
    "]]></script>\n";

void kp_flame_write(struct kp_flame *f, FILE *out, const char *title)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->boxes[i].depth > deepest && (double)f->boxes[i].total >= NARROW * (double)f->boxes[0].total)
            deepest = f->boxes[i].depth;
    const unsigned height = TOP + BOTTOM + (deepest + 1) * ROW;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" ", out);
    fprintf(out, "width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\">\n", WIDTH, height, WIDTH, height);
    fputs("<style>text{font:11px monospace;pointer-events:none}rect{stroke:#fff;stroke-width:.5}g.b{cursor:pointer}"
          "g.b:hover rect{stroke:#000}g.hit rect{fill:#e040e0}.k{cursor:pointer;pointer-events:all;fill:#06c}</style>\n"
          "<rect width=\"100%\" height=\"100%\" fill=\"#fcfcf8\"/>\n",
          out);
    fputs("<text x=\"10\" y=\"18\" style=\"font-size:14px\">", out);
    kp_html_text(out, title);
    fprintf(out, "</text>\n<text id=\"reset\" class=\"k\" x=\"10\" y=\"36\" style=\"display:none\">reset zoom</text>"
                 "<text id=\"told\" x=\"100\" y=\"36\"></text><text id=\"found\" x=\"960\" y=\"18\"></text>"
                 "<text id=\"search\" class=\"k\" x=\"1130\" y=\"18\">search</text>\n");
    boxes_put(f, out, height);
    fputs(script, out);
    fputs("</svg>\n", out);
}

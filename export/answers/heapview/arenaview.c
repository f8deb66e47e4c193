// SPDX-License-Identifier: Apache-2.0
/* arenaview.c - says what Python's small objects took, which are no blocks of the heap, and how to see them */
#include <stdlib.h>

#include "export/answers/heapview/heapview.h"
#include "collector/base/kp_order.h"
#include "export/show/plain.h"
#include "export/show/units.h"

enum { LINES_SHOWN = 3, LINES_MOST = 64 };

struct arena_view {
    FILE *out;
    const struct kp_profile *p;
    size_t from, to; /* steps, by index */
};
struct line_count {
    const struct kp_profile_place *place;
    size_t arenas;
};

static bool is_growth(const struct arena_view *l, const struct kp_profile_arena *a)
{
    return kp_profile_is_arena_growth(l->p, l->from, l->to, a);
}

KP_ORDER_DOWN(by_arenas, struct line_count, arenas)

static void line_note(struct line_count of[LINES_MOST], size_t *n, const struct kp_profile_place *place)
{
    size_t i = 0;
    while (i < *n && (of[i].place->line != place->line || of[i].place->file != place->file)) i++;
    if (i == LINES_MOST) return;
    if (i == *n) of[(*n)++] = (struct line_count){.place = place};
    of[i].arenas++;
}

/* The program's lines that ran when Python needed one more arena: most likely those that keep objects. */
static void arena_lines_print(const struct arena_view *l)
{
    struct line_count of[LINES_MOST];
    size_t n = 0;
    for (size_t i = 0; i < l->p->arenas_n; i++) {
        const struct kp_profile_arena *a = &l->p->arenas[i];
        const struct kp_profile_place *own = is_growth(l, a) ? kp_profile_own_line(l->p, a->frame) : NULL;
        if (own) line_note(of, &n, own);
    }
    if (n) qsort(of, n, sizeof *of, by_arenas);
    for (size_t i = 0; i < n && i < LINES_SHOWN; i++) {
        const struct kp_profile_place *const place = of[i].place;
        kp_plain_fmt(l->out, "%s%s at %s:%u (%zu)",
                     i ? ", " : "your lines that needed a new one: ", kp_profile_text(l->p, place->function),
                     kp_profile_text(l->p, place->file), place->line, of[i].arenas);
    }
    if (n) fputc('\n', l->out);
}

static void arenas_print(const struct arena_view *l, size_t there, uint64_t bytes, size_t grown, uint64_t grown_bytes)
{
    fprintf(
        l->out,
        "Python keeps objects of up to 512 bytes (instances, small dicts, tuples, numbers) in arenas, not in blocks of "
        "this heap: %zu arena%s, %.1f MiB\n",
        there, kp_units_s(there), (double)bytes / (1 << 20));
    if (grown)
        fprintf(l->out, "%zu of the arenas (%.1f MiB) came in steps after the start-up and stayed\n", grown,
                (double)grown_bytes / (1 << 20));
    arena_lines_print(l);
    fputs("to see each such object with its line: PYTHONMALLOC=malloc kprof run "
          "--malloc trace "
          "--with-stack --schedule active=1000 -- ..\n",
          l->out);
}

void kp_arenaview_write(FILE *out, const struct kp_profile *p, size_t from, size_t to, enum kp_arenaview_part part)
{
    const struct arena_view l = {.out = out, .p = p, .from = from, .to = to};
    size_t there = 0, grown = 0;
    uint64_t bytes = 0, grown_bytes = 0;
    for (size_t i = 0; i < p->arenas_n; i++) {
        const struct kp_profile_arena *a = &p->arenas[i];
        there += !a->is_unmapped;
        bytes += a->is_unmapped ? 0 : a->bytes;
        grown += is_growth(&l, a);
        grown_bytes += is_growth(&l, a) ? a->bytes : 0;
    }
    const bool is_told = part == KP_ARENAS_ALL || (part == KP_ARENAS_GREW && grown);
    if (there && is_told) arenas_print(&l, there, bytes, grown, grown_bytes);
    if (there && part == KP_ARENAS_RESTED && !grown)
        fprintf(out, "Python's objects of up to 512 bytes: no arena of theirs (%zu, %.1f MiB) came in these steps\n",
                there, (double)bytes / (1 << 20));
}

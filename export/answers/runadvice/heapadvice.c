// SPDX-License-Identifier: Apache-2.0
/*
 * heapadvice.c - what steps leave on the host's heap, as findings of a trace
 *
 * Step 0 may have the start-up in it, and the last step still uses what it has. So neither counts.
 */
#include "export/answers/runadvice/judged.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "collector/base/sys/kp_path.h"
#include "export/read/facts/steps/everynth.h"
#include "export/read/files/budget.h"
#include "export/answers/heapview/heapview.h"
#include "export/read/symbols/lines.h"

enum { FINDINGS_MOST = 5, STEPS_LEAST = 3, TEXT_BYTES = 1024, PLACES_MOST = 16 };
enum { BYTES_LEAST = 4096, BYTES_CRITICAL = 65536 }; /* a step */
#define STEPS_SHARE 0.8

struct leaving {          /* a line of the program; where none is known, the function that allocates */
    uint64_t line;        /* file and line, 0: none */
    uint32_t innermost;   /* an address: of a line that of the row that left most */
    uint32_t frame;       /* of one of its call stacks */
    uint32_t first, step; /* the first step that left some, and the last */
    uint64_t bytes, row_bytes;
    size_t steps;
};

static bool is_place(const struct leaving *a, const struct leaving *b)
{
    return a->line == b->line && (a->line || a->innermost == b->innermost);
}

KP_ORDERED(step_order, struct leaving, KP_UP(line) if (!x->line){KP_UP(innermost)} KP_UP(step))
KP_ORDER_DOWN(most_first, struct leaving, bytes)

static struct leaving leaving_of(const struct kp_profile *p, const struct kp_profile_leak *leak)
{
    const uint32_t frame = p->sites[leak->site].frame;
    const struct kp_profile_place *own = kp_profile_own_line(p, frame);
    return (struct leaving){.line = own ? (uint64_t)own->file << 32 | own->line : 0,
                            .innermost = frame ? p->frames[frame - 1].address : 0,
                            .frame = frame,
                            .first = leak->step,
                            .step = leak->step,
                            .bytes = leak->bytes,
                            .row_bytes = leak->bytes};
}

/* The blocks that steps from `from` to `to` left, a row a place, the largest first. The caller frees it. */
static struct leaving *leaving_list(const struct kp_profile *p, size_t from, size_t to, size_t *count)
{
    size_t n;
    struct kp_profile_leak *leaks = kp_profile_leaks(p, from, to, &n);
    struct leaving *of = kp_kineto_room(n + 1, sizeof *of);
    for (size_t i = 0; i < n; i++) of[i] = leaving_of(p, &leaks[i]);
    free(leaks);
    qsort(of, n, sizeof *of, step_order);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        struct leaving *last = *count ? &of[*count - 1] : NULL;
        if (!last || !is_place(last, &of[i])) {
            of[*count] = of[i];
            of[(*count)++].steps = 1;
            continue;
        }
        last->steps += of[i].step != last->step;
        last->step = of[i].step;
        last->bytes += of[i].bytes;
        if (of[i].row_bytes <= last->row_bytes) continue;
        last->row_bytes = of[i].row_bytes;
        last->innermost = of[i].innermost;
        last->frame = of[i].frame;
    }
    qsort(of, *count, sizeof *of, most_first);
    return of;
}

/* ---- the finding ---- */

/* "make_row at leaky.c:3": the function that called malloc. */
static const char *function_text(const struct kp_advised *a, const struct kp_profile *p, uint32_t address,
                                 const struct kp_places *names)
{
    char text[TEXT_BYTES], name[TEXT_BYTES];
    struct kp_place of[PLACES_MOST];
    if (!address) return NULL;
    const struct kp_profile_address *at = &p->addresses[address - 1];
    const int found = names ? kp_profile_places(p, at, names, of, PLACES_MOST) : 0;
    if (found <= 0 || !of[0].function)
        return kp_strings_keep(a->trace->strings, kp_profile_function(p, at, 0, name, sizeof name));
    const char *const plain = kp_profile_plain(names, of[0].function, name, sizeof name);
    if (of[0].file && of[0].line)
        snprintf(text, sizeof text, "%s at %s:%u", plain, kp_path_base(of[0].file), (unsigned)of[0].line);
    else snprintf(text, sizeof text, "%s", plain);
    return kp_strings_keep(a->trace->strings, text);
}

static const char *line_text(const struct kp_advised *a, const struct kp_profile *p, uint32_t frame)
{
    char text[TEXT_BYTES];
    const struct kp_profile_place *own = kp_profile_own_line(p, frame);
    if (!own) return NULL;
    snprintf(text, sizeof text, "%s:%u %s", kp_path_base(kp_profile_text(p, own->file)), own->line,
             kp_profile_text(p, own->function));
    return kp_strings_keep(a->trace->strings, text);
}

static void heap_tell(struct kp_advice *out, size_t at, const struct kp_finding *f)
{
    kp_finding_insert(out, at, f);
    if (out->is_unrecorded) out->missing = NULL;
    out->is_unrecorded = out->is_healthy = out->is_well = false;
}

static void unjudged_add(struct kp_advice *out, const char *what)
{
    if (out->unjudged_count < KP_UNJUDGED_MAX) out->unjudged[out->unjudged_count++] = what;
}

/* Python's small objects are no blocks. Did they need arenas in these steps? */
static bool has_new_arenas(const struct kp_profile *p, size_t from, size_t to)
{
    for (size_t i = 0; i < p->arenas_n; i++)
        if (kp_profile_is_arena_growth(p, from, to, &p->arenas[i])) return true;
    return false;
}

/* Do most of the steps [from, to) leave some there? */
static bool is_each(const struct leaving *l, size_t from, size_t to)
{
    return (double)l->steps >= STEPS_SHARE * (double)(to - from);
}

static bool grows(const struct leaving *l, size_t from, size_t to)
{
    return (double)l->bytes >= BYTES_LEAST * (double)(to - from) &&
           (is_each(l, from, to) || kp_everynth_recurs(l->steps, l->first, l->step, (long)(to - from)));
}

static const char *change_of(const char *line)
{
    if (!line) return "Free it, or keep less from step to step; kprof memory --leaks has the call stacks, by step.";
    return "Keep less from step to step. This line makes what is kept; look for what holds its result: a list, a dict, "
           "a cache, a queue, or a logger with a buffer. kprof memory --leaks has the call stacks, by step.";
}

static void profile_judge(struct kp_advised *a, const struct kp_profile *p, const struct kp_places *names)
{
    const size_t from = kp_profile_is_startup(p, 0, p->steps_n, 0), to = p->steps_n ? p->steps_n - 1 : 0;
    size_t count, told = 0;
    if (!p->steps_n)
        unjudged_add(&a->advice, "what each step leaves on the host's heap (kprof run --schedule active=1000)");
    if (has_new_arenas(p, from, to))
        unjudged_add(&a->advice, "Python's small objects, which grew (PYTHONMALLOC=malloc; kprof memory --leaks)");
    if (to < from + STEPS_LEAST) return;
    struct leaving *of = leaving_list(p, from, to, &count);
    for (size_t i = 0; i < count && told < FINDINGS_MOST; i++) {
        if (!grows(&of[i], from, to)) continue;
        const double each = (double)of[i].bytes / (double)(to - from);
        const bool is = is_each(&of[i], from, to);
        const char *const line = line_text(a, p, of[i].frame);
        const struct kp_finding f = {.id = "heap-grows",
                                     .what = is ? "each step leaves memory on the host's heap"
                                                : "some steps leave memory on the host's heap, per step on average",
                                     .change = change_of(line),
                                     .where = function_text(a, p, of[i].innermost, names),
                                     .line = line,
                                     .step_bytes = each,
                                     .is_critical = is && each >= BYTES_CRITICAL,
                                     .steps = of[i].steps};
        heap_tell(&a->advice, told++, &f);
    }
    free(of);
}

void kp_heapadvice_add(struct kp_advised *a, const char *path)
{
    char heap[4096], why[512];
    struct kp_profile *p = NULL;
    if (!a->advice.steps || !kp_profile_find(heap, sizeof heap, path)) return;
    kp_budget_beside(heap);
    const struct kp_texts from = {kp_text_file_each, heap};
    if (kp_profile_read(&p, &from, path, why, sizeof why)) return;
    struct kp_lines *lines = kp_lines_open("advise", &(struct kp_lines_options){.lines = true});
    profile_judge(a, p, kp_lines_places(lines));
    kp_profile_close(p);
    kp_lines_close(lines);
}

// SPDX-License-Identifier: Apache-2.0
/* heap_formats.c - writes a heap's profile for other programs: folded stacks, JSON, heaptrack's format with lines */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/heapview/heapfold.h"
#include "export/answers/heapview/heapview.h"
#include "export/answers/stacks/flame.h"
#include "export/read/parse/kineto_parse.h"
#include "export/show/fields.h"
#include "export/show/plain.h"

enum { NAME_BYTES = 4096 };

/* --- measures --- */

const char *const kp_profile_by_names[KP_BY_N] = {"peak", "leaked", "allocated", "temporary"};

static uint64_t measure(const struct kp_profile_site *s, enum kp_profile_by by)
{
    switch (by) {
    case KP_BY_PEAK: return s->peak_bytes;
    case KP_BY_LEAKED: return s->live_bytes;
    case KP_BY_ALLOCATED: return s->bytes;
    default: return s->temporary_bytes;
    }
}

/* --- stacks, outermost first --- */

struct frame_list {
    uint32_t *frames; /* innermost first */
    size_t n, cap;
};

/* The interpreter's calls are left out of a stack that has Python's own frames. */
static void stack_fill(const struct kp_profile *p, uint32_t frame, struct frame_list *s)
{
    struct kp_heapfold fold = {.is_all = p->all_frames || !kp_profile_has_python(p, frame)};
    s->n = 0;
    for (; frame; frame = p->frames[frame - 1].around) {
        const struct kp_profile_address *a = &p->addresses[p->frames[frame - 1].address - 1];
        const char *function = a->n ? kp_profile_text(p, p->places[a->at + a->n - 1].function) : NULL;
        if (kp_profile_is_python(p, a)) kp_heapfold_pass(&fold);
        else if (kp_heapfold_take(&fold, kp_profile_text(p, a->module), function)) continue;
        *KP_KINETO_NEXT(s->frames, s->n, s->cap) = frame;
    }
}

static void folded_name_put(FILE *out, const char *name)
{
    char plain[4 * NAME_BYTES];
    kp_plain_text(plain, sizeof plain, name, strlen(name));
    for (char *c = plain; *c; c++) fputc(*c == ';' ? ',' : *c, out);
}

/* As in the stacks of a trace: "file.py(12): f". */
static void python_name_put(const struct kp_profile *p, FILE *out, const struct kp_profile_place *place)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s(%u): %s", kp_profile_text(p, place->file), place->line,
             kp_profile_text(p, place->function));
    folded_name_put(out, name);
}

static void folded_put(const struct kp_profile *p, FILE *out, const struct frame_list *s)
{
    char room[NAME_BYTES];
    for (size_t i = s->n; i-- > 0;) {
        const struct kp_profile_address *a = &p->addresses[p->frames[s->frames[i] - 1].address - 1];
        for (uint32_t place = a->n ? a->n : 1; place-- > 0;) {
            if (place + 1 != (a->n ? a->n : 1) || i + 1 != s->n) fputc(';', out);
            if (kp_profile_is_python(p, a)) python_name_put(p, out, &p->places[a->at]);
            else folded_name_put(out, kp_profile_function(p, a, place, room, sizeof room));
        }
    }
    if (!s->n) fputs("(no call stack)", out);
}

/* A line a call stack, as flamegraph.pl reads it: "outer;inner BYTES". */
void kp_profile_folded(const struct kp_profile *p, FILE *out, enum kp_profile_by by)
{
    struct frame_list s = {0};
    for (size_t i = 0; i < p->sites_n; i++) {
        const uint64_t bytes = measure(&p->sites[i], by);
        if (!bytes) continue;
        stack_fill(p, p->sites[i].frame, &s);
        folded_put(p, out, &s);
        fprintf(out, " %llu\n", (unsigned long long)bytes);
    }
    free(s.frames);
}

void kp_profile_flame(const struct kp_profile *p, FILE *out, enum kp_profile_by by, const char *title)
{
    const struct kp_flame_show show = {.title = title, .unit = KP_FLAME_BYTES};
    struct kp_flame *flame = kp_flame_open();
    struct frame_list s = {0};
    char *text = NULL;
    size_t n = 0;
    FILE *line = open_memstream(&text, &n);
    for (size_t i = 0; line && i < p->sites_n; i++) {
        const uint64_t bytes = measure(&p->sites[i], by);
        if (!bytes) continue;
        rewind(line);
        stack_fill(p, p->sites[i].frame, &s);
        folded_put(p, line, &s);
        fputc(0, line);
        if (fflush(line) == 0) kp_flame_add(flame, text, (int64_t)bytes);
    }
    if (line) fclose(line);
    kp_flame_write(flame, out, &show);
    kp_flame_close(flame);
    free(text);
    free(s.frames);
}

/* --- JSON --- */

/* clang-format off */
#define SUMS(F, IF) \
    F(WHOLE, allocations, r->allocations) \
    F(WHOLE, bytes, r->bytes) \
    F(WHOLE, temporary, r->temporary) \
    F(WHOLE, temporary_bytes, r->temporary_bytes) \
    F(WHOLE, peak_blocks, r->peak_blocks) \
    F(WHOLE, peak_bytes, r->peak_bytes) \
    F(WHOLE, live_blocks, r->live_blocks) \
    F(WHOLE, live_bytes, r->live_bytes)
KP_FIELDS(sums, struct kp_profile_site, SUMS)

#define SITE(F, IF) F(WHOLE, frame, (int64_t)r->frame - 1) F(PART, , (sums, r))
KP_FIELDS(site, struct kp_profile_site, SITE)

struct profile_address {
    const struct kp_profile *profile;
    const struct kp_profile_address *of;
    const struct kp_profile_place *place;
};
#define TEXT_OF(id) kp_profile_text(r->profile, id)
#define PLACE(F, IF) \
    F(TEXT, name, TEXT_OF(r->place->function)) \
    IF(r->place->file, TEXT, file, TEXT_OF(r->place->file)) \
    IF(r->place->file, WHOLE, line, r->place->line)
KP_FIELDS(place, struct profile_address, PLACE)

#define PLACES (place, r->of->n, &(struct profile_address){r->profile, r->of, &r->profile->places[r->of->at + i]})
#define ADDRESS(F, IF) \
    F(TEXT, module, TEXT_OF(r->of->module)) \
    F(WHOLE, offset, r->of->offset) \
    F(LIST, functions, PLACES)
KP_FIELDS(address, struct profile_address, ADDRESS)

#define STEP(F, IF) \
    F(WHOLE, step, r->number) \
    F(WHOLE, left_blocks, r->left_blocks) \
    F(WHOLE, left_bytes, r->left_bytes) \
    F(WHOLE, still_blocks, r->still_blocks) \
    F(WHOLE, still_bytes, r->still_bytes)
KP_FIELDS(step, struct kp_profile_step, STEP)

struct profile_leak { /* by whom a step's blocks were left */
    const struct kp_profile *profile;
    const struct kp_profile_leak *of;
};
#define LEAK(F, IF) \
    F(WHOLE, site, r->of->site) \
    F(WHOLE, step, r->profile->steps[r->of->step].number) \
    F(WHOLE, blocks, r->of->blocks) \
    F(WHOLE, bytes, r->of->bytes)
KP_FIELDS(leak, struct profile_leak, LEAK)
/* clang-format on */

static void frames_put(struct kp_jsonout *j, const char *key, const struct kp_profile *p)
{
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; i < p->frames_n; i++) {
        kp_jsonout_open(j, NULL, '[');
        kp_jsonout_whole(j, NULL, (int64_t)p->frames[i].address - 1);
        kp_jsonout_whole(j, NULL, (int64_t)p->frames[i].around - 1);
        kp_jsonout_close(j, ']');
    }
    kp_jsonout_close(j, ']');
}

static void leaks_put(struct kp_jsonout *j, const char *key, const struct kp_profile *p)
{
    size_t n;
    struct kp_profile_leak *of = kp_profile_leaks(p, 0, p->steps_n, &n);
    kp_jsonout_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        kp_jsonout_line(j);
        kp_fields_put(j, NULL, &leak_fields, &(struct profile_leak){p, &of[i]});
    }
    kp_jsonout_close(j, ']');
    free(of);
}

/* Addresses and frames once. A frame is [address, caller's frame or -1], a site has its innermost frame, or -1. */
/* clang-format off */
#define PROFILE(F, IF) \
    F(TEXT, program, r->program ? r->program : "") \
    F(OBJECT, total, (sums, &r->total)) \
    F(LINE, , ) \
    F(LINES, addresses, (address, r->addresses_n, &(struct profile_address){r, &r->addresses[i], NULL})) \
    F(LINE, , ) \
    F(OTHER, frames, (KP_TYPE_ARRAY(KP_TYPE_ARRAY(KP_TYPE("integer"))), frames_put, r)) \
    F(LINE, , ) \
    F(LINES, sites, (site, r->sites_n, &r->sites[i])) \
    IF(r->steps_n, LINE, , ) \
    IF(r->steps_n, LINES, steps, (step, r->steps_n, &r->steps[i])) \
    IF(r->steps_n, LINE, , ) \
    IF(r->steps_n, EACH_OF, leaks, (leak, leaks_put, r))
KP_FIELDS(profile, struct kp_profile, PROFILE)
/* clang-format on */

const struct kp_fields *const kp_profile_schema = &profile_fields;

void kp_profile_json(const struct kp_profile *p, FILE *out) { kp_fields_line(out, &profile_fields, p); }

/* --- heaptrack --- */

struct copying {
    FILE *out;
    bool is_inside, is_kept; /* of the line that the last piece ended in */
};

/* Leaves out texts and addresses, which are written with the debug files' names. Lines of numbers and comments stay. */
static int piece_copy(void *context, const char *text, size_t bytes)
{
    struct copying *c = context;
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        const size_t n = next ? (size_t)(next + 1 - at) : (size_t)(end - at);
        if (!c->is_inside) c->is_kept = *at && strchr("ta+-c#", *at);
        if (c->is_kept) fwrite(at, 1, n, c->out);
        c->is_inside = !next;
        at += n;
    }
    return ferror(c->out) ? -EIO : 0;
}

int kp_profile_heaptrack(const struct kp_profile *p, FILE *out, const struct kp_texts *from, char *why,
                         size_t why_bytes)
{
    struct copying copying = {.out = out};
    kp_plain_fmt(out, "v 10400 2\nX %s", p->program ? p->program : "");
    for (size_t i = 0; i < p->texts_n; i++) kp_plain_fmt(out, "\ns %s", p->texts[i]);
    fputc('\n', out);
    for (size_t i = 0; i < p->addresses_n; i++) {
        const struct kp_profile_address *a = &p->addresses[i];
        fprintf(out, "i %llx %x", (unsigned long long)a->offset, a->module);
        for (uint32_t k = 0; k < a->n; k++) {
            const struct kp_profile_place *place = &p->places[a->at + k];
            fprintf(out, " %x %x %x", place->function, place->file, place->line);
        }
        fputc('\n', out);
    }
    return from->each(from->from, piece_copy, &copying, why, why_bytes);
}

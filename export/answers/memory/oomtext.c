// SPDX-License-Identifier: Apache-2.0
/* oomtext.c - reads what was live when an allocation failed, and prints it: a sentence, then lines by what they hold */
#include "export/answers/memory/oomtext.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/text/kp_digits.h"
#include "collector/base/text/kp_jsonread.h"
#include "collector/base/text/kp_jsonvalue.h"
#include "collector/base/sys/kp_path.h"
#include "export/read/kineto/kineto.h"
#include "export/show/fields.h"
#include "export/show/plain.h"
#include "export/show/units.h"

enum { PLACE_BYTES = 360, DIGITS_MOST = 18 };

/* ---- reading ---- */

/* A whole number; -1: there is none. */
static int64_t number_of(struct kp_jsonvalue object, const char *key)
{
    const struct kp_jsonvalue v = kp_jsonvalue_member(object, key);
    char text[DIGITS_MOST + 1] = "";
    if (!v.at || v.bytes > DIGITS_MOST || *v.at < '0' || *v.at > '9') return -1;
    memcpy(text, v.at, v.bytes);
    return (int64_t)kp_digits(text);
}

static void text_of(char *out, size_t room, struct kp_jsonvalue object, const char *key)
{
    const struct kp_jsonvalue v = kp_jsonvalue_member(object, key);
    *out = '\0';
    if (v.at && kp_jsonvalue_is_string(v)) kp_jsonvalue_text(out, room, v);
}

static void site_read(struct kp_oom_site *s, struct kp_jsonvalue v)
{
    text_of(s->file, sizeof s->file, v, "file");
    text_of(s->function, sizeof s->function, v, "function");
    text_of(s->category, sizeof s->category, v, "category");
    text_of(s->module, sizeof s->module, v, "module");
    s->line = number_of(v, "line");
    s->bytes = number_of(v, "bytes");
    s->blocks = number_of(v, "blocks");
    s->largest = number_of(v, "largest");
    s->grows = number_of(v, "grows");
    s->first_step = number_of(v, "first_step");
    s->last_step = number_of(v, "last_step");
}

bool kp_oom_read(struct kp_oom *out, const char *text, size_t bytes, const char **why)
{
    const struct kp_jsonvalue object = {text, bytes};
    const char *at = NULL;
    struct kp_jsonvalue v;
    size_t offset;
    *out = (struct kp_oom){0};
    if (kp_jsonread_check_object(text, bytes, &offset, why) != 0) return false;
    *why = "it does not say what was live out of memory";
    if (number_of(object, "oom") < 1) return false;
    text_of(out->text, sizeof out->text, object, "text");
    text_of(out->device, sizeof out->device, object, "device");
    text_of(out->limit_by, sizeof out->limit_by, object, "limit_by");
    static const char *const keys[] = {"rank",   "pid",    "step",      "time_ms",  "asked", "live",
                                       "blocks", "unkept", "allocated", "reserved", "limit"};
    int64_t *const to[] = {&out->rank,   &out->pid,    &out->step,      &out->time_ms,  &out->asked, &out->live,
                           &out->blocks, &out->unkept, &out->allocated, &out->reserved, &out->limit};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) *to[i] = number_of(object, keys[i]);
    v = kp_jsonvalue_member(object, "asked_at");
    if (v.at && *v.at == '{') site_read(&out->at, v);
    const struct kp_jsonvalue sites = kp_jsonvalue_member(object, "sites");
    while (sites.at && *sites.at == '[' && kp_jsonvalue_element(sites, &at, &v)) {
        struct kp_oom_site *const s = KP_KINETO_NEXT(out->sites, out->count, out->capacity);
        *s = (struct kp_oom_site){0};
        if (*v.at == '{') site_read(s, v);
    }
    return true;
}

void kp_oom_fini(struct kp_oom *oom)
{
    free(oom->sites);
    *oom = (struct kp_oom){0};
}

/* ---- text ---- */

/* "k.py:4 work"; "a place that is not known". */
static void place_put(char out[PLACE_BYTES], const struct kp_oom_site *s)
{
    if (!*s->file) snprintf(out, PLACE_BYTES, "a place that is not known");
    else snprintf(out, PLACE_BYTES, "%s:%ld %s", kp_path_base(s->file), (long)s->line, s->function);
}

static void growing_print(FILE *out, const struct kp_oom *o)
{
    char place[PLACE_BYTES];
    for (size_t i = 0; i < o->count; i++) {
        if (o->sites[i].grows <= 0) continue;
        place_put(place, &o->sites[i]);
        kp_plain_fmt(out, "  each of the last steps left at least %s from %s\n", kp_units_size(o->sites[i].grows),
                     place);
    }
}

void kp_oom_print(FILE *out, const struct kp_oom *o, long row_limit)
{
    char place[PLACE_BYTES];
    const size_t most = row_limit > 0 && (size_t)row_limit < o->count ? (size_t)row_limit : o->count;
    if (o->rank >= 0) kp_plain_fmt(out, "rank %ld: ", (long)o->rank);
    kp_plain_fmt(out, "%s\n", o->text);
    growing_print(out, o);
    fprintf(out, "\n  %10s  %8s  %10s  %-16s  %s\n", "Live", "Blocks", "Largest", "Steps", "Allocated at");
    for (size_t i = 0; i < most; i++) {
        const struct kp_oom_site *const s = &o->sites[i];
        char steps[48];
        place_put(place, s);
        snprintf(steps, sizeof steps, s->first_step == s->last_step ? "%ld" : "%ld to %ld", (long)s->first_step,
                 (long)s->last_step);
        fprintf(out, "  %10s  %8ld  %10s  %-16s  ", kp_units_size(s->bytes), (long)s->blocks, kp_units_size(s->largest),
                steps);
        kp_plain_fmt(out, *s->category ? "%s (%s%s%s)\n" : "%s\n", place, s->category, *s->module ? " of " : "",
                     s->module);
    }
    if (most < o->count) fprintf(out, "  %zu more lines: -n 0\n", o->count - most);
    if (o->unkept > 0) fprintf(out, "  %ld blocks are missing, as the table was full\n", (long)o->unkept);
}

/* ---- JSON ---- */

/* clang-format off */
#define SITE(F, IF) \
    F(MAYBE, file, *r->file ? r->file : NULL) \
    F(MAYBE_WHOLE, line, r->line) \
    F(TEXT, function, r->function) \
    F(TEXT, category, r->category) \
    F(TEXT, module, r->module) \
    F(MAYBE_WHOLE, bytes, r->bytes) \
    F(MAYBE_WHOLE, blocks, r->blocks) \
    F(MAYBE_WHOLE, largest, r->largest) \
    F(MAYBE_WHOLE, first_step, r->first_step) \
    F(MAYBE_WHOLE, last_step, r->last_step) \
    F(MAYBE_WHOLE, grows, r->grows)
KP_FIELDS(oom_site, struct kp_oom_site, SITE)

#define OOM(F, IF) \
    F(VERSION, oom, 1) \
    F(TEXT, text, r->text) \
    F(MAYBE_WHOLE, rank, r->rank) \
    F(WHOLE, pid, r->pid) \
    F(WHOLE, step, r->step) \
    F(TEXT, device, r->device) \
    F(WHOLE, asked, r->asked) \
    F(OBJECT, asked_at, (oom_site, &r->at)) \
    F(WHOLE, live, r->live) \
    F(WHOLE, blocks, r->blocks) \
    F(MAYBE_WHOLE, allocated, r->allocated) \
    F(MAYBE_WHOLE, reserved, r->reserved) \
    F(MAYBE_WHOLE, limit, r->limit) \
    F(LIST, sites, (oom_site, r->count, &r->sites[i]))
KP_FIELDS(oom, struct kp_oom, OOM)
/* clang-format on */

const struct kp_fields *const kp_oom_schema = &oom_fields;

void kp_oom_json(FILE *out, const struct kp_oom *o) { kp_fields_line(out, &oom_fields, o); }

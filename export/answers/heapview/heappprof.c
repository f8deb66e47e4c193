// SPDX-License-Identifier: Apache-2.0
/*
 * heappprof.c - writes a heap's profile as pprof's profile.proto, which pprof reads with or without gzip
 *
 * Modules get places of their own far apart, since addresses count as their files do.
 */
#include <stdlib.h>
#include <string.h>

#include "export/answers/heapview/heapview.h"
#include "export/read/store/protobuf.h"

enum { NAME_BYTES = 4096, MODULE_SHIFT = 40 };
/* Numbers of fields, by message (github.com/google/pprof, profile.proto). */
enum { PROFILE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_TEXT = 6, PROFILE_DURATION = 10, PROFILE_DEFAULT = 14 };
enum { TYPE_NAME = 1, TYPE_UNIT = 2, SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum { MAPPING_ID = 1, MAPPING_START = 2, MAPPING_LIMIT = 3, MAPPING_FILE = 5, MAPPING_BUILD = 6, MAPPING_NAMED = 7 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2, FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM = 3, FUNCTION_FILE = 4 };

/* Fields of 0 are left out. */
static void field_number(struct kp_proto *m, unsigned field, uint64_t value)
{
    if (value) kp_proto_number(m, field, value);
}

struct writing {
    const struct kp_profile *p;
    FILE *out;
    struct kp_proto profile, part, inner;
    struct kp_strings *texts, *functions; /* their ids are pprof's numbers of texts and functions */
    uint32_t texts_n, functions_n;
};

static void part_end(struct writing *w, unsigned field)
{
    w->profile.bytes = 0;
    kp_proto_message(&w->profile, field, &w->part);
    fwrite(w->profile.data, 1, w->profile.bytes, w->out);
    w->part.bytes = 0;
}

/* Texts are written where they first come up: the order among themselves is what counts. 0 is the empty text. */
static uint32_t text_number(struct writing *w, const char *text)
{
    const uint32_t id = kp_strings_put(w->texts, text, strlen(text));
    if (id < w->texts_n) return id;
    w->texts_n = id + 1;
    w->profile.bytes = 0;
    kp_proto_bytes(&w->profile, PROFILE_TEXT, text, strlen(text));
    fwrite(w->profile.data, 1, w->profile.bytes, w->out);
    return id;
}

static void types_put(struct writing *w)
{
    static const char *const types[][2] = {{"alloc_objects", "count"},     {"alloc_space", "bytes"},
                                           {"temporary_objects", "count"}, {"temporary_space", "bytes"},
                                           {"inuse_objects", "count"},     {"inuse_space", "bytes"},
                                           {"peak_objects", "count"},      {"peak_space", "bytes"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        field_number(&w->part, TYPE_NAME, text_number(w, types[i][0]));
        field_number(&w->part, TYPE_UNIT, text_number(w, types[i][1]));
        part_end(w, PROFILE_TYPE);
    }
}

/* A mapping for each text, though only some are modules': a module's number is its text's. */
static void mappings_put(struct writing *w)
{
    const struct kp_profile *p = w->p;
    bool *is_module = kp_kineto_zeros(p->texts_n + 1, 1);
    for (size_t i = 0; i < p->addresses_n; i++) is_module[p->addresses[i].module] = true;
    for (uint32_t i = 1; i <= p->texts_n; i++) {
        if (!is_module[i]) continue;
        field_number(&w->part, MAPPING_ID, i);
        field_number(&w->part, MAPPING_START, (uint64_t)i << MODULE_SHIFT);
        field_number(&w->part, MAPPING_LIMIT, (uint64_t)(i + 1) << MODULE_SHIFT);
        field_number(&w->part, MAPPING_FILE, text_number(w, p->texts[i - 1]));
        if (i <= p->builds_n && p->builds[i - 1])
            field_number(&w->part, MAPPING_BUILD, text_number(w, p->builds[i - 1]));
        field_number(&w->part, MAPPING_NAMED, 1);
        part_end(w, PROFILE_MAPPING);
    }
    free(is_module);
}

/* A function is a name in a file. */
static uint32_t function_number(struct writing *w, const char *name, const char *file)
{
    char key[2 * NAME_BYTES];
    const int n = snprintf(key, sizeof key, "%s\n%s", name, file);
    const uint32_t id = kp_strings_put(w->functions, key, n < (int)sizeof key ? (size_t)n : sizeof key - 1);
    if (id < w->functions_n) return id;
    w->functions_n = id + 1;
    struct kp_proto part = w->part;
    w->part = (struct kp_proto){0};
    field_number(&w->part, FUNCTION_ID, id);
    field_number(&w->part, FUNCTION_NAME, text_number(w, name));
    field_number(&w->part, FUNCTION_SYSTEM, text_number(w, name));
    field_number(&w->part, FUNCTION_FILE, text_number(w, file));
    part_end(w, PROFILE_FUNCTION);
    kp_proto_fini(&w->part);
    w->part = part;
    return id;
}

static void location_put(struct writing *w, uint32_t number)
{
    const struct kp_profile *p = w->p;
    const struct kp_profile_address *a = &p->addresses[number - 1];
    char room[NAME_BYTES];
    field_number(&w->part, LOCATION_ID, number);
    field_number(&w->part, LOCATION_MAPPING, a->module);
    field_number(&w->part, LOCATION_ADDRESS, ((uint64_t)a->module << MODULE_SHIFT) + a->offset);
    for (uint32_t i = 0; i < (a->n ? a->n : 1); i++) {
        const struct kp_profile_place *place = i < a->n ? &p->places[a->at + i] : NULL;
        const char *name = kp_profile_function(p, a, i, room, sizeof room);
        w->inner.bytes = 0;
        field_number(&w->inner, LINE_FUNCTION, function_number(w, name, place ? kp_profile_text(p, place->file) : ""));
        field_number(&w->inner, LINE_NUMBER, place ? place->line : 0);
        kp_proto_message(&w->part, LOCATION_LINE, &w->inner);
    }
    part_end(w, PROFILE_LOCATION);
}

static void sample_put(struct writing *w, const struct kp_profile_site *s)
{
    const struct kp_profile *p = w->p;
    const uint64_t values[] = {s->allocations, s->bytes,      s->temporary,   s->temporary_bytes,
                               s->live_blocks, s->live_bytes, s->peak_blocks, s->peak_bytes};
    w->inner.bytes = 0;
    for (uint32_t f = s->frame; f; f = p->frames[f - 1].around) kp_proto_varint(&w->inner, p->frames[f - 1].address);
    kp_proto_message(&w->part, SAMPLE_LOCATION, &w->inner);
    w->inner.bytes = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) kp_proto_varint(&w->inner, values[i]);
    kp_proto_message(&w->part, SAMPLE_VALUE, &w->inner);
    part_end(w, PROFILE_SAMPLE);
}

void kp_profile_pprof(const struct kp_profile *p, FILE *out)
{
    struct writing w = {.p = p, .out = out, .texts = kp_strings_open(), .functions = kp_strings_open()};
    w.functions_n = 1;
    kp_proto_bytes(&w.profile, PROFILE_TEXT, "", 0);
    fwrite(w.profile.data, 1, w.profile.bytes, out);
    w.texts_n = 1;
    types_put(&w);
    mappings_put(&w);
    for (uint32_t i = 1; i <= p->addresses_n; i++) location_put(&w, i);
    for (size_t i = 0; i < p->sites_n; i++) sample_put(&w, &p->sites[i]);
    const uint32_t shown = text_number(&w, "peak_space");
    w.profile.bytes = 0;
    field_number(&w.profile, PROFILE_DURATION, p->ms * 1000000);
    field_number(&w.profile, PROFILE_DEFAULT, shown);
    fwrite(w.profile.data, 1, w.profile.bytes, out);
    kp_strings_close(w.texts);
    kp_strings_close(w.functions);
    kp_proto_fini(&w.profile);
    kp_proto_fini(&w.part);
    kp_proto_fini(&w.inner);
}

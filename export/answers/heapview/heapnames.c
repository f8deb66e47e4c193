// SPDX-License-Identifier: Apache-2.0
/*
 * heapnames.c - functions and source lines of the addresses of a heap's profile
 *
 * The file has the functions of symbol tables. Debug files, where there are any, give source lines and inlined
 * functions.
 */
#include <stdlib.h>
#include <string.h>

#include "export/answers/heapview/heapview.h"
#include "collector/base/sys/kp_path.h"
#include "export/write/names/shorten.h"
#include "export/read/frames/ownline.h"

enum { PLACES_MOST = 64, NAME_BYTES = 4096 };

struct naming {
    struct kp_profile *p;
    const struct kp_places *places;
    struct kp_strings *known; /* texts looked for before */
    uint32_t *number_of;      /* by the id there: the text's number */
    size_t number_of_cap;
};

/* The number of a text that the profile may have already. */
static uint32_t *number_at(struct naming *n, const char *text)
{
    const uint32_t id = kp_strings_put(n->known, text, strlen(text));
    n->number_of = kp_kineto_grow_zeros(n->number_of, &n->number_of_cap, (size_t)id + 1, sizeof *n->number_of);
    return &n->number_of[id];
}

static uint32_t text_get(struct naming *n, const char *text)
{
    if (!text) return 0;
    uint32_t *number = number_at(n, text);
    if (!*number) *number = kp_profile_text_add(n->p, text, strlen(text));
    return *number;
}

/* heaptrack leaves out these two by these names. */
static const char *name_of_new(const char *name)
{
    if (strcmp(name, "operator new") == 0) return "operator new(unsigned long)";
    return strcmp(name, "operator new[]") == 0 ? "operator new[](unsigned long)" : name;
}

const char *kp_profile_plain(const struct kp_places *places, const char *mangled, char *out, size_t bytes)
{
    const char *const plain = mangled && places->plain ? places->plain(places->context, mangled) : mangled;
    if (!plain) return "?";
    if (strlen(plain) >= bytes) return mangled;
    (void)kp_symbol_short(plain, out, bytes);
    return name_of_new(out);
}

static uint32_t function_get(struct naming *n, const char *mangled)
{
    char name[NAME_BYTES];
    return text_get(n, kp_profile_plain(n->places, mangled, name, sizeof name));
}

int kp_profile_places(const struct kp_profile *p, const struct kp_profile_address *a, const struct kp_places *places,
                      struct kp_place *out, int most)
{
    const char *build = a->module && a->module <= p->builds_n ? p->builds[a->module - 1] : NULL;
    struct kp_frame frame = {.path = kp_profile_text(p, a->module), .offset = a->offset};
    if (!build || !a->offset || strlen(build) >= sizeof frame.build_id) return 0;
    snprintf(frame.build_id, sizeof frame.build_id, "%s", build);
    return places->find(places->context, &frame, a->offset - 1, out, most);
}

static void address_name(struct naming *n, struct kp_profile_address *a)
{
    struct kp_profile *p = n->p;
    struct kp_place of[PLACES_MOST];
    const int found = kp_profile_places(p, a, n->places, of, PLACES_MOST);
    if (found <= 0 || !of[found - 1].function) return;
    a->at = (uint32_t)p->places_n;
    a->n = (uint32_t)found;
    for (int i = 0; i < found; i++) {
        const struct kp_profile_place place = {function_get(n, of[i].function), text_get(n, of[i].file), of[i].line};
        *KP_KINETO_NEXT(p->places, p->places_n, p->places_cap) = place;
    }
}

void kp_profile_name(struct kp_profile *p, const struct kp_places *places)
{
    struct naming n = {.p = p, .places = places, .known = kp_strings_open()};
    for (uint32_t i = 0; i < p->texts_n; i++) *number_at(&n, p->texts[i]) = i + 1;
    for (size_t i = 0; i < p->addresses_n; i++) address_name(&n, &p->addresses[i]);
    kp_strings_close(n.known);
    free(n.number_of);
}

bool kp_profile_is_python(const struct kp_profile *p, const struct kp_profile_address *a)
{
    return a->n == 1 && p->places[a->at].file && strcmp(kp_profile_text(p, a->module), "Python") == 0;
}

bool kp_profile_has_python(const struct kp_profile *p, uint32_t frame)
{
    for (; frame; frame = p->frames[frame - 1].around)
        if (kp_profile_is_python(p, &p->addresses[p->frames[frame - 1].address - 1])) return true;
    return false;
}

const struct kp_profile_place *kp_profile_own_line(const struct kp_profile *p, uint32_t frame)
{
    for (; frame; frame = p->frames[frame - 1].around) {
        const struct kp_profile_address *a = &p->addresses[p->frames[frame - 1].address - 1];
        const struct kp_profile_place *place = kp_profile_is_python(p, a) ? &p->places[a->at] : NULL;
        if (place && kp_ownline_is_file(p->installed, kp_profile_text(p, place->file))) return place;
    }
    return NULL;
}

const char *kp_profile_function(const struct kp_profile *p, const struct kp_profile_address *a, uint32_t place,
                                char *out, size_t bytes)
{
    const char *const path = kp_profile_text(p, a->module);
    if (place < a->n && p->places[a->at + place].function) return kp_profile_text(p, p->places[a->at + place].function);
    snprintf(out, bytes, "%s%s0x%llx", kp_path_base(path), *path ? "+" : "", (unsigned long long)a->offset);
    return out;
}

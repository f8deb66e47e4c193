// SPDX-License-Identifier: Apache-2.0
/*
 * wanted.c - finds out quickly whether a name is tapped
 *
 * Called by: tap_modules.c and got.c, one thread at a time (dlfollow.c's turn)
 * Owns:      the names, the taps of each, a hash table over the names
 * Locks:     none
 * Memory:    fixed tables
 * On fail:   -errno; nothing changed
 *
 * A scan asks for some hundred thousand names, nearly all of them not wanted. A bit for each pair of first letters
 * rejects most. Only a name that begins like a wanted one is hashed.
 */
#include "preload/hook/wanted.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_poison.h"

enum { BUCKETS = 4096, PAIR_BITS = 1 << 16, NONE = 0 };

struct wanted_name {
    const char *symbol;
    uint32_t hash;
    uint16_t first; /* index in `entries` */
};
struct entry {
    const struct kp_tap *tap;
    uint16_t next;
};

struct own_set {
    const struct kp_tap *first, *end;
    bool is_common;
};
enum { OWN_SETS_MAX = 8 };

static struct own_set own_sets[OWN_SETS_MAX];
static uint32_t own_set_count;
static struct wanted_name names[KP_WANTED_MAX];
static uint32_t name_count;
static struct entry entries[KP_WANTED_MAX + 1]; /* entry 0 is NONE */
static uint32_t entries_used;
static uint16_t buckets[BUCKETS]; /* number of a name + 1 */
static uint64_t pairs[PAIR_BITS / 64];

static uint32_t pair_of(const char *name) { return (uint32_t)(uint8_t)name[0] << 8 | (name[0] ? (uint8_t)name[1] : 0); }

static uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

uint32_t kp_wanted_find(const char *name)
{
    uint32_t pair = pair_of(name);
    if (!(pairs[pair / 64] >> (pair % 64) & 1)) return KP_NOT_WANTED;
    uint32_t hash = hash_of(name);
    for (uint32_t at = hash % BUCKETS; buckets[at]; at = (at + 1) % BUCKETS) {
        uint32_t number = buckets[at] - 1u;
        if (names[number].hash == hash && strcmp(names[number].symbol, name) == 0) return number;
    }
    return KP_NOT_WANTED;
}

uint32_t kp_wanted_count(void) { return name_count; }

const char *kp_wanted_name(uint32_t number) { return names[number].symbol; }

static uint32_t add_name(const char *symbol)
{
    uint32_t number = kp_wanted_find(symbol), pair = pair_of(symbol), at;
    if (number != KP_NOT_WANTED) return number;
    number = name_count++;
    names[number] = (struct wanted_name){.symbol = symbol, .hash = hash_of(symbol)};
    for (at = names[number].hash % BUCKETS; buckets[at]; at = (at + 1) % BUCKETS) continue;
    buckets[at] = (uint16_t)(number + 1);
    pairs[pair / 64] |= UINT64_C(1) << (pair % 64);
    return number;
}

static void add_tap(const struct kp_tap *tap)
{
    struct wanted_name *name = &names[add_name(tap->symbol)];
    const uint16_t at = (uint16_t)++entries_used;
    entries[at] = (struct entry){.tap = tap, .next = name->first};
    name->first = at;
}

static bool is_taken(const struct kp_tap *tap)
{
    uint32_t number = kp_wanted_find(tap->symbol);
    if (number == KP_NOT_WANTED) return false;
    for (uint16_t at = names[number].first; at; at = entries[at].next)
        if (entries[at].tap->real == tap->real) return true;
    return false;
}

int kp_wanted_add(const struct kp_tap *taps, uint32_t tap_count)
{
    uint32_t new_names = 0;
    for (uint32_t t = 0; t < tap_count; t++) {
        if (is_taken(&taps[t])) return -EEXIST;
        new_names += kp_wanted_find(taps[t].symbol) == KP_NOT_WANTED;
    }
    if (name_count + new_names > KP_WANTED_MAX || tap_count > KP_WANTED_MAX - entries_used) return -ENOSPC;
    for (uint32_t t = 0; t < tap_count; t++) add_tap(&taps[t]);
    return 0;
}

bool kp_wanted_has(const struct kp_tap *taps)
{
    uint32_t number = kp_wanted_find(taps[0].symbol);
    if (number == KP_NOT_WANTED) return false;
    for (uint16_t at = names[number].first; at; at = entries[at].next)
        if (entries[at].tap == taps) return true;
    return false;
}

static bool is_inside(const struct kp_image *image, uintptr_t at) { return at >= image->lo && at < image->hi; }

static int take_set(const struct kp_tap *taps, uint32_t tap_count, bool is_common)
{
    if (own_set_count == OWN_SETS_MAX) return -ENOSPC;
    own_sets[own_set_count++] = (struct own_set){taps, taps + tap_count, is_common};
    return 0;
}

int kp_wanted_take_own(const struct kp_tap *taps, uint32_t tap_count) { return take_set(taps, tap_count, false); }

int kp_wanted_take_common(const struct kp_tap *taps, uint32_t tap_count) { return take_set(taps, tap_count, true); }

static bool set_of(const struct kp_tap *tap, bool is_common)
{
    for (uint32_t i = 0; i < own_set_count; i++)
        if (tap >= own_sets[i].first && tap < own_sets[i].end && own_sets[i].is_common == is_common) return true;
    return false;
}

static bool takes_own(const struct kp_tap *tap) { return set_of(tap, false); }

bool kp_wanted_is_own(uint32_t number, uintptr_t address)
{
    for (uint16_t at = names[number].first; at; at = entries[at].next)
        if ((uintptr_t)entries[at].tap->real == address && takes_own(entries[at].tap)) return true;
    return false;
}

bool kp_wanted_is_common(uint32_t number)
{
    for (uint16_t at = names[number].first; at; at = entries[at].next)
        if (set_of(entries[at].tap, true)) return true;
    return false;
}

static bool is_defined_in(const struct kp_image *image, uint32_t number)
{
    const uint32_t index = kp_image_hashed(image, names[number].symbol);
    return index && image->symbols[index].st_shndx != SHN_UNDEF;
}

/* May `image`, which defines the tapped name itself, get this tap in its slots? */
static bool takes_from(const struct kp_image *image, const struct kp_tap *tap)
{
    return takes_own(tap) || (set_of(tap, true) && kp_image_is_libc(image));
}

/* A library that defines the name calls its own function by it, so it gets only taps that takes_from allows. */
const struct kp_tap *kp_wanted_choose(const struct kp_image *image, uint32_t number, uintptr_t holds, bool may_be_lazy)
{
    const struct kp_tap *only = NULL;
    uint32_t count = 0;
    for (uint16_t at = names[number].first; at; at = entries[at].next) {
        const struct kp_tap *tap = entries[at].tap;
        if (is_inside(image, (uintptr_t)tap->real) && !takes_from(image, tap)) {
            may_be_lazy = false;
            continue;
        }
        if (holds == (uintptr_t)tap->real) return tap;
        only = tap;
        count++;
    }
    if (!may_be_lazy || count != 1 || !is_inside(image, holds)) return NULL;
    /* An unbound slot in a module that defines the name may lead to either function: no tap, unless it is a runtime. */
    return set_of(only, true) && is_defined_in(image, number) && !kp_image_is_runtime(image) ? NULL : only;
}

const struct kp_tap *kp_wanted_held(uint32_t number, uintptr_t holds)
{
    for (uint16_t at = names[number].first; at; at = entries[at].next)
        if (holds == (uintptr_t)entries[at].tap->tap) return entries[at].tap;
    return NULL;
}

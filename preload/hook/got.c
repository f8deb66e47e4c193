// SPDX-License-Identifier: Apache-2.0
/*
 * got.c - finds and rewrites the words through which a module calls a named function
 *
 * Called by: modules.c: find under the loader's list lock, write later with the module held by a reference
 * Owns:      nothing
 * Locks:     none
 * On fail:   -errno; the word is as it was
 *
 * Most of a module's words are of no interest, so names are compared once per imported symbol and not once per
 * word: libtorch_cpu has about thirty words per imported name. A word under RELRO sits in a page which the loader has
 * made read-only; the page is made writable for the one store and read-only again, as the program headers say.
 */
#include "preload/hook/got.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_poison.h"

#if defined(__x86_64__)
enum { RELOC_JUMP_SLOT = R_X86_64_JUMP_SLOT, RELOC_GLOB_DAT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { RELOC_JUMP_SLOT = R_AARCH64_JUMP_SLOT, RELOC_GLOB_DAT = R_AARCH64_GLOB_DAT };
#else
#error "no relocation types for this processor"
#endif

enum { IMPORTS_MAX = 8 };
#define NO_TAP UINT32_MAX

struct import {
    uint32_t symbol, tap;
};

static uint32_t tap_of_name(const char *name, const struct kp_tap *taps, uint32_t tap_count)
{
    for (uint32_t t = 0; t < tap_count; t++)
        if (name[0] == taps[t].symbol[0] && name[1] == taps[t].symbol[1] && strcmp(name, taps[t].symbol) == 0)
            return t;
    return NO_TAP;
}

/* A module that defines the name itself means its own function by it: hands off. */
static uint32_t tap_of_symbol(const struct kp_image *image, uint32_t symbol, const struct kp_tap *taps,
                              uint32_t tap_count)
{
    if (image->symbols[symbol].st_shndx != SHN_UNDEF) return NO_TAP;
    return tap_of_name(kp_image_name(image, symbol), taps, tap_count);
}

/* Up to IMPORTS_MAX imported symbols that are tapped. More than that (many versions of one name) are left alone. */
static uint32_t find_imports(const struct kp_image *image, const struct kp_tap *taps, uint32_t tap_count,
                             struct import out[IMPORTS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < image->imports_end && count < IMPORTS_MAX; i++) {
        uint32_t tap = tap_of_symbol(image, i, taps, tap_count);
        if (tap != NO_TAP) out[count++] = (struct import){.symbol = i, .tap = tap};
    }
    for (uint32_t t = 0; t < tap_count && image->imports_end && count < IMPORTS_MAX; t++) {
        uint32_t symbol = kp_image_hashed(image, taps[t].symbol);
        if (symbol >= image->imports_end && image->symbols[symbol].st_shndx == SHN_UNDEF)
            out[count++] = (struct import){.symbol = symbol, .tap = t};
    }
    return count;
}

struct search {
    const struct kp_image *image;
    const struct kp_tap *taps;
    uint32_t tap_count;
    const struct import *imports;
    uint32_t import_count;
    struct kp_slot *slots;
    uint32_t found;
};

static uint32_t tap_of_reloc(const struct search *s, uint32_t symbol)
{
    if (!s->image->imports_end) return tap_of_symbol(s->image, symbol, s->taps, s->tap_count);
    for (uint32_t i = 0; i < s->import_count; i++)
        if (s->imports[i].symbol == symbol) return s->imports[i].tap;
    return NO_TAP;
}

static void search_table(struct search *s, const ElfW(Rela) *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(table[i].r_info), symbol = (uint32_t)ELF64_R_SYM(table[i].r_info);
        if ((type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT) || !symbol || table[i].r_addend) continue;
        uint32_t tap = tap_of_reloc(s, symbol);
        uintptr_t at = s->image->base + table[i].r_offset;
        if (tap == NO_TAP || at < s->image->lo || at + sizeof(void *) > s->image->hi || at % sizeof(void *)) continue;
        if (s->found < KP_GOT_SLOTS_MAX)
            s->slots[s->found] = (struct kp_slot){.at = at, .tap = tap, .is_relro = kp_image_in_relro(s->image, at)};
        s->found++;
    }
}

uint32_t kp_got_find(const struct kp_image *image, const struct kp_tap *taps, uint32_t tap_count,
                     struct kp_slot slots[KP_GOT_SLOTS_MAX])
{
    struct import imports[IMPORTS_MAX];
    struct search s = {.image = image, .taps = taps, .tap_count = tap_count, .imports = imports, .slots = slots};
    s.import_count = find_imports(image, taps, tap_count, imports);
    if (image->imports_end && s.import_count == 0) return 0;
    search_table(&s, image->plt, image->plt_count);
    search_table(&s, image->rela, image->rela_count);
    return s.found;
}

uintptr_t kp_got_read(uintptr_t at)
{
    return kp_load_relaxed((_Atomic uintptr_t *)at);
}

bool kp_got_is_takable(const struct kp_image *image, const struct kp_slot *slot, const struct kp_tap *tap)
{
    uintptr_t holds = kp_got_read(slot->at);
    return holds == (uintptr_t)tap->real || (holds >= image->lo && holds < image->hi);
}

int kp_got_write(const struct kp_slot *slot, uintptr_t expected, uintptr_t value)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(slot->at & ~(page_bytes - 1));
    if (slot->is_relro && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return -errno;
    bool done = kp_cas_acq_rel((_Atomic uintptr_t *)slot->at, &expected, value);
    if (slot->is_relro && mprotect(page, page_bytes, PROT_READ) != 0) return -errno;
    return done ? 0 : -EAGAIN;
}

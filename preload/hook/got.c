// SPDX-License-Identifier: Apache-2.0
/*
 * got.c - finds and rewrites the PLT/GOT slots through which a module calls a named function
 *
 * Called by: tap_modules.c: find under the loader's list lock, write later with the module held by a reference
 * Owns:      a scratch list
 * Locks:     none; one thread at a time (dlfollow.c's turn)
 * On fail:   -errno; the slot is unchanged
 *
 * libtorch_cpu has about thirty slots per imported name, so names are compared once per imported symbol and not once
 * per slot. The loader has made RELRO pages read-only: such a page is made writable for the one store.
 */
#include "preload/hook/got.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#if defined(__x86_64__)
enum { RELOC_JUMP_SLOT = R_X86_64_JUMP_SLOT, RELOC_GLOB_DAT = R_X86_64_GLOB_DAT, RELOC_POINTER = R_X86_64_64 };
#elif defined(__aarch64__)
enum { RELOC_JUMP_SLOT = R_AARCH64_JUMP_SLOT, RELOC_GLOB_DAT = R_AARCH64_GLOB_DAT, RELOC_POINTER = R_AARCH64_ABS64 };
#else
#error "no relocation types for this processor"
#endif

enum { IMPORTS_MAX = KP_WANTED_MAX, SYMBOL_BITS = 8192 };

struct import {
    uint32_t symbol, name;
};

/* Static, as they are too large for a small stack; one thread at a time uses them. */
static struct import imports[IMPORTS_MAX];
static uint32_t import_count;
static uint64_t symbol_bits[SYMBOL_BITS / 64]; /* a filter: the bit of each import is set, and perhaps others' */

/* A module that defines the name calls its own function by it. So it is left alone, unless a tap is _own or _common. */
static bool is_callable(const struct kp_image *image, uint32_t symbol, uint32_t name)
{
    const ElfW(Sym) *s = &image->symbols[symbol];
    return s->st_shndx == SHN_UNDEF || kp_wanted_is_own(name, image->base + s->st_value) || kp_wanted_is_common(name);
}

static uint32_t name_of_symbol(const struct kp_image *image, uint32_t symbol, uint32_t first)
{
    uint32_t name = kp_wanted_find(kp_image_name(image, symbol));
    return name == KP_NOT_WANTED || name < first || !is_callable(image, symbol, name) ? KP_NOT_WANTED : name;
}

static void add_import(uint32_t symbol, uint32_t name)
{
    if (import_count == IMPORTS_MAX) return;
    imports[import_count++] = (struct import){.symbol = symbol, .name = name};
    symbol_bits[symbol % SYMBOL_BITS / 64] |= UINT64_C(1) << (symbol % 64);
}

/* Collects the wanted imports in `imports`, in rising order except for hashed ones. */
static void find_imports(const struct kp_image *image, uint32_t first)
{
    import_count = 0;
    memset(symbol_bits, 0, sizeof symbol_bits);
    for (uint32_t i = 1; i < image->imports_end; i++) {
        uint32_t name = name_of_symbol(image, i, first);
        if (name != KP_NOT_WANTED) add_import(i, name);
    }
    for (uint32_t name = first; name < kp_wanted_count() && image->imports_end; name++) {
        uint32_t symbol = kp_image_hashed(image, kp_wanted_name(name));
        if (symbol >= image->imports_end && is_callable(image, symbol, name)) add_import(symbol, name);
    }
}

struct reloc_search {
    const struct kp_image *image;
    uint32_t first, found;
    kp_got_fn each;
    void *arg;
};

static uint32_t name_of_reloc(const struct reloc_search *s, uint32_t symbol)
{
    if (!s->image->imports_end) return name_of_symbol(s->image, symbol, s->first);
    if (!(symbol_bits[symbol % SYMBOL_BITS / 64] >> (symbol % 64) & 1)) return KP_NOT_WANTED;
    for (uint32_t i = 0; i < import_count; i++)
        if (imports[i].symbol == symbol) return imports[i].name;
    return KP_NOT_WANTED;
}

bool kp_got_is_word(uint32_t type) { return type == RELOC_JUMP_SLOT || type == RELOC_GLOB_DAT; }

/* In a module with text relocations a pointer may lie in a read-only page, so its pointers are left alone. */
static bool is_of_interest(const struct kp_image *image, uint32_t type)
{
    return kp_got_is_word(type) || (type == RELOC_POINTER && !image->has_text_relocations);
}

static void search_table(struct reloc_search *s, const ElfW(Rela) * table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(table[i].r_info), symbol = (uint32_t)ELF64_R_SYM(table[i].r_info);
        if (!symbol || table[i].r_addend || !is_of_interest(s->image, type)) continue;
        uint32_t name = name_of_reloc(s, symbol);
        uintptr_t at = s->image->base + table[i].r_offset;
        if (name == KP_NOT_WANTED || at < s->image->lo || at + sizeof(void *) > s->image->hi || at % sizeof(void *))
            continue;
        s->each(s->arg, &(struct kp_slot){.at = at,
                                          .name = name,
                                          .is_relro = kp_image_in_relro(s->image, at),
                                          .is_pointer = type == RELOC_POINTER});
        s->found++;
    }
}

uint32_t kp_got_find(const struct kp_image *image, uint32_t first, kp_got_fn each, void *arg)
{
    struct reloc_search s = {.image = image, .first = first, .each = each, .arg = arg};
    find_imports(image, first);
    if (image->imports_end && import_count == 0) return 0;
    search_table(&s, image->plt, image->plt_count);
    search_table(&s, image->rela, image->rela_count);
    return s.found;
}

uintptr_t kp_got_read(uintptr_t at) { return kp_load_relaxed((_Atomic uintptr_t *)at); }

int kp_got_write(const struct kp_slot *slot, uintptr_t expected, uintptr_t value)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(slot->at & ~(page_bytes - 1));
    int rc = slot->is_relro ? kp_io_mprotect(page, page_bytes, PROT_READ | PROT_WRITE) : 0;
    if (rc < 0) return rc;
    bool done = kp_cas_acq_rel((_Atomic uintptr_t *)slot->at, &expected, value);
    /* The slot is written even if this fails. It is tried twice: the kernel may be out of mappings for a moment. */
    if (slot->is_relro && kp_io_mprotect(page, page_bytes, PROT_READ) != 0)
        (void)kp_io_mprotect(page, page_bytes, PROT_READ);
    return done ? 0 : -EAGAIN;
}

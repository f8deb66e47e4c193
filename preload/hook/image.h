// SPDX-License-Identifier: Apache-2.0
/*
 * image.h - what the loader's memory says about one loaded module
 */
#ifndef KP_IMAGE_H
#define KP_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_image {
    uintptr_t base;               /* what is added to addresses of the file */
    uintptr_t lo, hi;             /* mapped range, first to last PT_LOAD */
    uintptr_t relro_lo, relro_hi; /* made read-only by the loader after relocation, in whole pages; empty: lo == hi */
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_bytes;
    const ElfW(Rela) * plt; /* JUMP_SLOTs */
    size_t plt_count;
    const ElfW(Rela) * rela; /* the rest, RELATIVE ones at the front left out */
    size_t rela_count;
    const uint32_t *gnu_hash;
    const ElfW(Half) * versions; /* of each symbol; NULL: none */
    const ElfW(Verneed) * needs; /* versions of other modules' symbols; NULL: none */
    uint32_t imports_end;        /* undefined symbols have smaller indices, but for hashed ones; 0: not known */
    bool has_text_relocations;
};

/* Fills *image from what dl_iterate_phdr tells. false: no dynamic section, or not in a form we know. */
bool kp_image_read(struct kp_image *image, const struct dl_phdr_info *info);
/* Name of symbol `index`, or "" when it lies outside the string table. */
const char *kp_image_name(const struct kp_image *image, uint32_t index);
/* Index of a hashed symbol of that name, 0: none. Defined symbols are hashed, and imported functions of which an
 * executable takes the address. */
uint32_t kp_image_hashed(const struct kp_image *image, const char *name);
/* One behind the last symbol; 0: not known. */
uint32_t kp_image_symbols_end(const struct kp_image *image);
/* Which version of another module's symbol is asked for; NULL: none. */
const char *kp_image_version(const struct kp_image *image, uint32_t index);
/* libc, or the library of C++: they call by words what they define themselves, so that the program may have it
 * replaced. */
bool kp_image_is_runtime(const struct kp_image *image);
bool kp_image_is_libc(const struct kp_image *image);
/* Whether the loader has made the page of this address read-only. */
static inline bool kp_image_in_relro(const struct kp_image *image, uintptr_t at)
{
    return at >= image->relro_lo && at < image->relro_hi;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * image.h - tables of one loaded module, from its dynamic section in memory
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_image {
    uintptr_t base;               /* load address: memory address minus address in the file */
    uintptr_t lo, hi;             /* mapped range, first to last PT_LOAD */
    uintptr_t relro_lo, relro_hi; /* made read-only by the loader after relocation, in whole pages; empty: lo == hi */
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_bytes;
    const ElfW(Rela) * plt; /* JUMP_SLOTs */
    size_t plt_count;
    const ElfW(Rela) * rela; /* other relocations, without the RELATIVE ones at the front */
    size_t rela_count;
    const uint32_t *gnu_hash;
    const ElfW(Half) * versions; /* of each symbol; NULL: none */
    const ElfW(Verneed) * needs; /* versions of other modules' symbols; NULL: none */
    uint32_t imports_end;        /* undefined symbols that are not hashed have smaller indices; 0: not known */
    bool has_text_relocations;
};

/* Fills *image from the data of dl_iterate_phdr. false: no dynamic section, or one of an unknown form. */
bool kp_image_read(struct kp_image *image, const struct dl_phdr_info *info);
/* Name of symbol `index`, or "" when it lies outside the string table. */
const char *kp_image_name(const struct kp_image *image, uint32_t index);
/* Index of a hashed symbol of that name, 0: none. Defined symbols are hashed, and imported functions of which an
 * executable takes the address. */
uint32_t kp_image_hashed(const struct kp_image *image, const char *name);
/* Number of symbols; 0: not known. */
uint32_t kp_image_symbols_end(const struct kp_image *image);
/* The version that the module asks for with an imported symbol; NULL: none. */
const char *kp_image_version(const struct kp_image *image, uint32_t index);
/* Is it libc or the C++ library? They call their own functions through slots, so that a program can replace them. */
bool kp_image_is_runtime(const struct kp_image *image);
bool kp_image_is_libc(const struct kp_image *image);
/* Does the address lie in a segment of data that is only read? With code in it, its page would have to be writable and
 * executable for a moment. */
bool kp_image_is_data(const struct dl_phdr_info *info, uintptr_t at);
/* Does the address lie in RELRO, which the loader makes read-only? */
static inline bool kp_image_in_relro(const struct kp_image *image, uintptr_t at)
{
    return at >= image->relro_lo && at < image->relro_hi;
}

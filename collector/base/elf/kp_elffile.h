// SPDX-License-Identifier: Apache-2.0
/* kp_elffile.h - symbols of a program or library, read from its file */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KP_BUILD_ID_TEXT 72

struct kp_elf_symbol {
    uint64_t at, bytes; /* address and size in the file; a size of 0 is unknown */
    uint32_t name;      /* offset of the name in the string table */
    bool is_global;
};
/* Returning non-zero stops the walk and becomes its result. */
typedef int (*kp_elf_fn)(void *context, const struct kp_elf_symbol *symbol);

struct kp_elf_table {
    uint64_t at, bytes, names_at, names_bytes;
};
struct kp_elf {
    int fd;                            /* -1: closed */
    char build_id[KP_BUILD_ID_TEXT];   /* hexadecimal, or "-" */
    struct kp_elf_table full, dynamic; /* .symtab and .dynsym; `bytes` is 0 without one */
};
/* 0 or -errno. -EINVAL: no ELF file of this machine's type. */
int kp_elf_open(struct kp_elf *elf, const char *path);
void kp_elf_close(struct kp_elf *elf);
/*
 * Finds the build id among notes in memory, which the host may unmap at any time. Writes it in hexadecimal with a NUL,
 * or nothing when none fits.
 */
void kp_elf_build_id(uintptr_t notes, size_t bytes, char *out, size_t out_bytes);
int kp_elf_functions(const struct kp_elf *elf, const struct kp_elf_table *table, kp_elf_fn fn, void *context);
/* A symbol's name, cut to `bytes`; "" when it cannot be read. */
void kp_elf_name(const struct kp_elf *elf, const struct kp_elf_table *table, uint32_t name, char *out, size_t bytes);

/* Reads many names that lie close together in the file, a block at a time. */
struct kp_elf_names {
    const struct kp_elf *elf;
    const struct kp_elf_table *table;
    uint32_t from, bytes; /* the part of the string table in the block */
    char block[65536], name[4096];
};
void kp_elf_names_begin(struct kp_elf_names *n, const struct kp_elf *elf, const struct kp_elf_table *table);
char *kp_elf_names_get(struct kp_elf_names *n, uint32_t name); /* valid until the next call; the caller may change it */

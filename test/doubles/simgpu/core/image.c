// SPDX-License-Identifier: Apache-2.0
/* image.c - reads names out of cubins (ELF), fat binaries and PTX; what it cannot read it takes for holding any name */
#include "test/doubles/simgpu/core/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static void add(struct sim_image *image, const char *name, size_t length, size_t bytes, bool is_kernel)
{
    if (image->count == image->room) {
        image->room = image->room ? 2 * image->room : 16;
        image->symbols = realloc(image->symbols, image->room * sizeof *image->symbols);
        if (image->symbols == NULL) abort();
    }
    char *copy = strndup(name, length);
    if (copy == NULL) abort();
    image->symbols[image->count++] = (struct sim_symbol){copy, bytes, is_kernel};
}

/* Kernels are global functions (device functions that were not inlined are local or weak); variables may be local. */
static void read_elf(struct sim_image *image, const unsigned char *base)
{
    const Elf64_Ehdr *header = (const void *)base;
    const Elf64_Shdr *sections = (const void *)(base + header->e_shoff);
    for (unsigned i = 0; header->e_shoff && i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header->e_shnum) continue;
        const Elf64_Sym *symbols = (const void *)(base + sections[i].sh_offset);
        const char *names = (const char *)base + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            unsigned type = ELF64_ST_TYPE(symbols[k].st_info), bind = ELF64_ST_BIND(symbols[k].st_info);
            const char *name = names + symbols[k].st_name;
            bool is_kernel = type == STT_FUNC && bind == STB_GLOBAL;
            if (*name == '\0' || (!is_kernel && (type != STT_OBJECT || symbols[k].st_shndx == SHN_UNDEF))) continue;
            add(image, name, strlen(name), symbols[k].st_size, is_kernel);
        }
    }
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/* ".global .align 4 .b8 name[20];": the name is the last word before a bracket, a value or the end. */
static void read_ptx_variables(struct sim_image *image, const char *text)
{
    for (const char *at = strstr(text, "\n.global"); at; at = strstr(at + 1, "\n.global")) {
        size_t end = strcspn(at + 1, "[=;\n") + 1, begin, bits = 0, count = 1;
        while (end > 1 && !is_of_name(at[end - 1])) end--;
        for (begin = end; begin > 1 && is_of_name(at[begin - 1]);) begin--;
        const char *type = strstr(at + 1, " .b");
        if (type && type < at + begin) bits = strtoul(type + 3, NULL, 10);
        if (at[end] == '[') count = strtoul(at + end + 1, NULL, 10);
        if (end > begin) add(image, at + begin, end - begin, bits / 8 * count, false);
    }
}

static void read_ptx(struct sim_image *image, const char *text)
{
    read_ptx_variables(image, text);
    for (const char *at = strstr(text, ".entry"); at; at = strstr(at, ".entry")) {
        at += strlen(".entry");
        at += strspn(at, " \t\r\n");
        size_t length = 0;
        while (is_of_name(at[length])) length++;
        if (length > 0) add(image, at, length, 0, true);
    }
}

/* --- fat binaries: a header, then entries of code for one architecture each --- */
enum { FAT_MAGIC = 0xba55ed50, WRAPPER_MAGIC = 0x466243b1, KIND_PTX = 1, KIND_ELF = 2, COMPRESSED = 0x2000 | 0x8000 };
struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};
struct fat_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options_at;
    uint16_t minor, major;
    uint32_t arch, name_at, name_bytes;
    uint64_t flags;
};
struct wrapper {
    uint32_t magic, version;
    const void *data, *more;
};

static void read_fat(struct sim_image *image, const unsigned char *base)
{
    const struct fat_header *header = (const void *)base;
    const unsigned char *at = base + header->header_bytes, *end = at + header->bytes;
    bool is_read = false;
    while (!is_read && at + sizeof(struct fat_entry) <= end) {
        const struct fat_entry *entry = (const void *)at;
        const unsigned char *code = at + entry->header_bytes;
        if (entry->header_bytes == 0) break;
        if (entry->kind == KIND_ELF && !(entry->flags & COMPRESSED) && memcmp(code, ELFMAG, SELFMAG) == 0) {
            read_elf(image, code);
            is_read = true;
        }
        at = code + entry->bytes;
    }
    if (!is_read) image->is_open = true;
}

void sim_image_read(struct sim_image *image, const void *code)
{
    uint32_t magic;
    *image = (struct sim_image){0};
    memcpy(&magic, code, sizeof magic);
    if (magic == WRAPPER_MAGIC) {
        code = ((const struct wrapper *)code)->data;
        memcpy(&magic, code, sizeof magic);
    }
    if (memcmp(code, ELFMAG, SELFMAG) == 0) read_elf(image, code);
    else if (magic == FAT_MAGIC) read_fat(image, code);
    else read_ptx(image, code);
    if (image->count == 0) image->is_open = true;
}

void sim_image_close(struct sim_image *image)
{
    for (size_t i = 0; i < image->count; i++) free(image->symbols[i].name);
    free(image->symbols);
    *image = (struct sim_image){0};
}

const struct sim_symbol *sim_image_find(const struct sim_image *image, const char *name, bool is_kernel)
{
    for (size_t i = 0; i < image->count; i++)
        if (image->symbols[i].is_kernel == is_kernel && strcmp(image->symbols[i].name, name) == 0)
            return &image->symbols[i];
    return NULL;
}

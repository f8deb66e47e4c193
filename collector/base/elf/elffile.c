// SPDX-License-Identifier: Apache-2.0
/*
 * elffile.c - reads the symbol tables of an ELF file
 *
 * Called by: export/write/names/framenames.c, preload/calltrace/hidden.c, on the export thread inside the host; the CLI
 * Memory:    a block on the stack. The file is not mapped, so a file that shrinks causes no SIGBUS in the host.
 * On fail:   what cannot be read is left out. Files may be damaged: every size is checked against the file's length.
 */
#include "collector/base/elf/kp_elffile.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/base/sys/kp_filecheck.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

enum { BEFORE = 16384, SYMBOLS_AT_ONCE = 512, SECTIONS_MAX = 4096, NOTES_MAX = 4096, NOTE_NAME_MAX = 64 };

typedef bool (*read_fn)(const void *context, void *to, size_t bytes, uint64_t at);

static bool read_at(const void *elf, void *to, size_t bytes, uint64_t at)
{
    return at < INT64_MAX && kp_io_pread(((const struct kp_elf *)elf)->fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool read_memory(const void *unused, void *to, size_t bytes, uint64_t at)
{
    (void)unused;
    return kp_io_peek((const void *)(uintptr_t)at, to, bytes) == 0;
}

/* Finds the build id among the notes from `at` to `end`, and writes it in hexadecimal. */
static void note_read(read_fn read, const void *context, uint64_t at, uint64_t end, char *out, size_t out_bytes)
{
    uint32_t head[4]; /* sizes of name and text, kind, name */
    uint8_t id[(KP_BUILD_ID_TEXT - 1) / 2];
    const size_t most = (out_bytes - 1) / 2 < sizeof id ? (out_bytes - 1) / 2 : sizeof id;
    while (at + sizeof head <= end && read(context, head, sizeof head, at)) {
        const uint64_t text = at + 12 + (((uint64_t)head[0] + 3) & ~UINT64_C(3));
        if (head[0] > NOTE_NAME_MAX || text > end || head[1] > end - text) return;
        if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && memcmp(&head[3], "GNU", 4) == 0 && head[1] <= most) {
            if (!read(context, id, head[1], text)) return;
            for (uint32_t i = 0; i < head[1]; i++) kp_fmt(out + 2 * i, 3, "%02x", id[i]);
            return;
        }
        at = text + (((uint64_t)head[1] + 3) & ~UINT64_C(3));
    }
}

void kp_elf_build_id(uintptr_t notes, size_t bytes, char *out, size_t out_bytes)
{
    note_read(read_memory, NULL, notes, notes + bytes, out, out_bytes);
}

static void section_note(struct kp_elf *elf, const Elf64_Ehdr *head, const Elf64_Shdr *s, uint64_t file_bytes)
{
    Elf64_Shdr names;
    if (s->sh_type == SHT_NOTE)
        note_read(read_at, elf, s->sh_offset, s->sh_offset + (s->sh_size < NOTES_MAX ? s->sh_size : NOTES_MAX),
                  elf->build_id, sizeof elf->build_id);
    if ((s->sh_type != SHT_SYMTAB && s->sh_type != SHT_DYNSYM) || s->sh_entsize != sizeof(Elf64_Sym)) return;
    if (s->sh_link >= head->e_shnum ||
        !read_at(elf, &names, sizeof names, head->e_shoff + (uint64_t)s->sh_link * sizeof names))
        return;
    if (s->sh_offset > file_bytes || s->sh_size > file_bytes - s->sh_offset) return; /* only listed, in a debug file */
    if (names.sh_type != SHT_STRTAB || names.sh_offset > file_bytes || names.sh_size > file_bytes - names.sh_offset)
        return;
    *(s->sh_type == SHT_SYMTAB ? &elf->full : &elf->dynamic) =
        (struct kp_elf_table){s->sh_offset, s->sh_size, names.sh_offset, names.sh_size};
}

static int sections_read(struct kp_elf *elf)
{
    Elf64_Ehdr head;
    Elf64_Shdr section;
    struct stat st;
    if (kp_io_fstat(elf->fd, &st) != 0 || !S_ISREG(st.st_mode) || !read_at(elf, &head, sizeof head, 0)) return -EINVAL;
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_ident[EI_DATA] != ELFDATA2LSB)
        return -EINVAL;
    if (head.e_shentsize != sizeof section || head.e_shnum > SECTIONS_MAX) return -EINVAL;
    for (uint32_t i = 0; i < head.e_shnum; i++) {
        if (!read_at(elf, &section, sizeof section, head.e_shoff + (uint64_t)i * sizeof section)) break;
        section_note(elf, &head, &section, (uint64_t)st.st_size);
    }
    return 0;
}

int kp_elf_open(struct kp_elf *elf, const char *path)
{
    *elf = (struct kp_elf){.fd = path[0] == '/' ? kp_filecheck_open_plain(path) : -1, .build_id = "-"};
    if (elf->fd < 0) return -ENOENT;
    const int rc = sections_read(elf);
    if (rc) kp_elf_close(elf);
    return rc;
}

void kp_elf_close(struct kp_elf *elf)
{
    if (elf->fd >= 0) kp_io_close(elf->fd);
    elf->fd = -1;
}

int kp_elf_functions(const struct kp_elf *elf, const struct kp_elf_table *table, kp_elf_fn fn, void *context)
{
    Elf64_Sym of[SYMBOLS_AT_ONCE];
    int rc = 0;
    for (uint64_t done = 0; !rc && done + sizeof *of <= table->bytes;) {
        const uint64_t left = (table->bytes - done) / sizeof *of, n = left < SYMBOLS_AT_ONCE ? left : SYMBOLS_AT_ONCE;
        if (!read_at(elf, of, n * sizeof *of, table->at + done)) return 0;
        done += n * sizeof *of;
        for (uint64_t i = 0; !rc && i < n; i++) {
            const unsigned type = ELF64_ST_TYPE(of[i].st_info);
            if ((type != STT_FUNC && type != STT_GNU_IFUNC) || of[i].st_shndx == SHN_UNDEF || !of[i].st_value) continue;
            const struct kp_elf_symbol s = {of[i].st_value, of[i].st_size, of[i].st_name,
                                            ELF64_ST_BIND(of[i].st_info) != STB_LOCAL};
            rc = fn(context, &s);
        }
    }
    return rc;
}

void kp_elf_name(const struct kp_elf *elf, const struct kp_elf_table *table, uint32_t name, char *out, size_t bytes)
{
    const uint64_t left = name < table->names_bytes ? table->names_bytes - name : 0;
    const size_t n = left < bytes - 1 ? (size_t)left : bytes - 1;
    out[0] = 0;
    if (n && read_at(elf, out, n, table->names_at + name)) out[n] = 0;
    else out[0] = 0;
}

void kp_elf_names_begin(struct kp_elf_names *n, const struct kp_elf *elf, const struct kp_elf_table *table)
{
    n->elf = elf;
    n->table = table;
    n->bytes = 0;
}

char *kp_elf_names_get(struct kp_elf_names *n, uint32_t name)
{
    const uint64_t left = name < n->table->names_bytes ? n->table->names_bytes - name : 0;
    uint64_t at = name - n->from;
    if (name < n->from || at >= n->bytes ||
        !memchr(n->block + at, 0, n->bytes - at)) { /* the block does not have the whole name */
        at = left && name > BEFORE ? BEFORE : left ? name : 0;
        n->from = name - (uint32_t)at;
        n->bytes = left + at < sizeof n->block ? (uint32_t)(left + at) : (uint32_t)sizeof n->block;
        if (n->bytes && !read_at(n->elf, n->block, n->bytes, n->table->names_at + n->from)) n->bytes = 0;
    }
    const char *from = n->block + at;
    const size_t bytes =
        n->bytes > at ? strnlen(from, n->bytes - at < sizeof n->name ? n->bytes - at : sizeof n->name - 1) : 0;
    memcpy(n->name, from, bytes);
    n->name[bytes] = 0;
    return n->name;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * elfhead.c - reads machine, dynamic linker and build id of an ELF file
 *
 * The file may be hostile. libelf checks each offset against the file's length, and at most NOTES_MOST bytes of notes
 * are read.
 */
#include "export/read/symbols/elfhead.h"

#include <errno.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NOTES_MOST = 65536 };

static Elf *elf_open(int fd)
{
    Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(fd, ELF_C_READ, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF) return elf;
    elf_end(elf);
    return NULL;
}

static int interp_read(Elf *elf, char *out, size_t bytes)
{
    GElf_Phdr ph;
    size_t n;
    if (elf_getphdrnum(elf, &n) != 0) return -EBADMSG;
    for (size_t i = 0; i < n; i++) {
        if (!gelf_getphdr(elf, (int)i, &ph)) return -EBADMSG;
        if (ph.p_type != PT_INTERP) continue;
        const size_t most = ph.p_filesz < bytes - 1 ? ph.p_filesz : bytes - 1;
        const Elf_Data *text = most ? elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, most, ELF_T_BYTE) : NULL;
        if (!text) return -EBADMSG;
        memcpy(out, text->d_buf, most);
        out[most] = 0;
    }
    return 0;
}

int kp_elfhead_read(int fd, struct kp_elfhead *out)
{
    GElf_Ehdr head;
    Elf *elf = elf_open(fd);
    int rc = -EINVAL;
    *out = (struct kp_elfhead){0};
    if (elf && gelf_getehdr(elf, &head)) {
        out->machine = head.e_machine;
        out->is_64 = gelf_getclass(elf) == ELFCLASS64;
        rc = interp_read(elf, out->interp, sizeof out->interp);
    }
    elf_end(elf);
    return rc;
}

/* ---- the build id ---- */

static bool id_find(Elf *elf, uint64_t at, uint64_t bytes, uint64_t align, char *out)
{
    const size_t most = bytes < NOTES_MOST ? bytes : NOTES_MOST;
    Elf_Data *notes = elf_getdata_rawchunk(elf, (int64_t)at, most, align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    GElf_Nhdr note;
    size_t name, text;
    for (size_t here = 0, next; notes && (next = gelf_getnote(notes, here, &note, &name, &text)) > 0; here = next) {
        const uint8_t *id = (const uint8_t *)notes->d_buf + text;
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || !note.n_descsz ||
            note.n_descsz > (KP_BUILD_ID_TEXT - 1) / 2 || memcmp((const char *)notes->d_buf + name, "GNU", 4) != 0)
            continue;
        for (size_t i = 0; i < note.n_descsz; i++) snprintf(out + 2 * i, 3, "%02x", id[i]);
        return true;
    }
    return false;
}

static bool id_of_sections(Elf *elf, char *out)
{
    GElf_Shdr s;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;)
        if (gelf_getshdr(section, &s) && s.sh_type == SHT_NOTE &&
            id_find(elf, s.sh_offset, s.sh_size, s.sh_addralign, out))
            return true;
    return false;
}

/* Finds the build id of a file without section headers. */
static bool id_of_segments(Elf *elf, char *out)
{
    GElf_Phdr ph;
    size_t n;
    if (elf_getphdrnum(elf, &n) != 0) return false;
    for (size_t i = 0; i < n && gelf_getphdr(elf, (int)i, &ph); i++)
        if (ph.p_type == PT_NOTE && id_find(elf, ph.p_offset, ph.p_filesz, ph.p_align, out)) return true;
    return false;
}

int kp_elfhead_build_id(int fd, char out[KP_BUILD_ID_TEXT])
{
    Elf *elf = elf_open(fd);
    if (!elf) return -EINVAL;
    if (!id_of_sections(elf, out) && !id_of_segments(elf, out)) strcpy(out, "-");
    elf_end(elf);
    return 0;
}

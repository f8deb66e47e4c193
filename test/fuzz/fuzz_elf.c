// SPDX-License-Identifier: Apache-2.0
/* fuzz_elf.c - any bytes are an ELF file or none: build ids, tables of symbols and, by libdw, names and source lines of
 * some addresses */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/elf/kp_elffile.h"
#include "export/read/symbols/debugfile.h"
#include "export/read/symbols/elfhead.h"

enum { SYMBOLS_MOST = 4096, ADDRESSES = 64, PLACES = 64 };

struct seen {
    const struct kp_elf *elf;
    const struct kp_elf_table *table;
    uint64_t at[ADDRESSES];
    unsigned n, all;
};

static int symbol_take(void *context, const struct kp_elf_symbol *symbol)
{
    struct seen *s = context;
    char name[300];
    kp_elf_name(s->elf, s->table, symbol->name, name, sizeof name);
    if (strlen(name) >= sizeof name) abort();
    s->at[s->n++ % ADDRESSES] = symbol->at;
    return ++s->all == SYMBOLS_MOST;
}

/* Both ways to read a name give the same. */
static void names_compare(const struct kp_elf *elf, const struct kp_elf_table *table)
{
    static struct kp_elf_names names;
    char name[sizeof names.name];
    kp_elf_names_begin(&names, elf, table);
    for (uint32_t at = 0; at < 64; at++) {
        kp_elf_name(elf, table, at * 7, name, sizeof name);
        if (strcmp(kp_elf_names_get(&names, at * 7), name) != 0 && table->names_at + table->names_bytes < INT64_MAX)
            abort();
    }
}

static void places_find(const char *path, const struct seen *s)
{
    struct kp_debugplace out[PLACES];
    struct kp_debugfile *d = kp_debugfile_open(path, NULL);
    for (unsigned i = 0; d && i < ADDRESSES; i++) {
        const int n = kp_debugfile_find(d, s->at[i], true, out, PLACES);
        if (n < 0 || n > PLACES) abort();
        for (int k = 0; k < n; k++)
            if ((out[k].function && strlen(out[k].function) > 1 << 20) ||
                (out[k].file && strlen(out[k].file) > 1 << 20))
                abort();
    }
    kp_debugfile_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kp_elf elf;
    struct seen seen = {.elf = &elf, .at = {0x1000, 0x1010, 0x1020}};
    char path[64];
    const int fd = memfd_create("elf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct kp_elfhead head;
    char id[KP_BUILD_ID_TEXT] = "";
    if (kp_elfhead_read(fd, &head) == 0 && strnlen(head.interp, sizeof head.interp) == sizeof head.interp) abort();
    if (kp_elfhead_build_id(fd, id) == 0 && (!id[0] || strnlen(id, sizeof id) == sizeof id)) abort();
    if (!kp_elf_open(&elf, path)) {
        const struct kp_elf_table *const tables[] = {&elf.full, &elf.dynamic};
        for (size_t i = 0; i < 2; i++) {
            seen.table = tables[i];
            (void)kp_elf_functions(&elf, tables[i], symbol_take, &seen);
            names_compare(&elf, tables[i]);
        }
        kp_elf_close(&elf);
        if (size > 64) places_find(path, &seen);
    }
    close(fd);
    return 0;
}

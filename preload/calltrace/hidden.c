// SPDX-License-Identifier: Apache-2.0
/*
 * hidden.c - counts wanted functions that no other module can see (static, hidden), from the modules' files
 *
 * Called by: calltrace_source.c, once, on the thread that exports
 * Locks:     the loader's list lock, while dl_iterate_phdr calls back
 * Memory:    mapped while it counts: 0.7 MB, and a set of the names that a module exports (nameset.c). Files are read
 *            in blocks and not mapped (elffile.c).
 * On fail:   a file that cannot be read counts as a stripped one
 * Safe in:   signal handlers no; after fork no
 *
 * Such a function is in .symtab and not in .dynsym. The .symtab of a stripped file is in its debug file in
 * /usr/lib/debug/.build-id. A file is read only if it has the build id that is in memory. Reading ends after MOST_NS,
 * and the report tells how many files were not read.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/elf/kp_elffile.h"
#include "collector/base/kp_log.h"
#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

enum { MODULES_MOST = 1024, PATH_MOST = 512, LOOK_EVERY = 1024, NOTES_MOST = 4096 };
#define MOST_NS UINT64_C(2000000000)

struct hidden_module {
    char path[PATH_MOST];
    char build_id[KP_BUILD_ID_TEXT]; /* "": none in memory */
};
struct hidden_count {
    bool (*wants)(const char *name);
    struct kp_calltrace_hidden *out;
    struct kp_elf_names names;
    struct kp_calltrace_names seen; /* names that the current module exports */
    uint64_t until_ns;
    uint32_t looked, n;
    bool is_dynamic; /* it goes through .dynsym */
    struct hidden_module of[MODULES_MOST];
};

/* ---- modules ---- */

/* Inside dl_iterate_phdr. Skips the vdso and this library. */
static int module_note(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct hidden_count *c = arg;
    const char *path = info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
    const uintptr_t ours = (uintptr_t)&kp_calltrace_stubs - info->dlpi_addr;
    (void)size;
    if (path[0] != '/' || strlen(path) >= PATH_MOST || c->n == MODULES_MOST) {
        c->out->bare += path[0] == '/';
        return 0;
    }
    struct hidden_module *m = &c->of[c->n];
    m->build_id[0] = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && ours - p->p_vaddr < p->p_memsz) return 0;
        if (p->p_type != PT_NOTE || m->build_id[0] || p->p_filesz > NOTES_MOST) continue;
        kp_elf_build_id(info->dlpi_addr + p->p_vaddr, p->p_filesz, m->build_id, sizeof m->build_id);
    }
    memcpy(m->path, path, strlen(path) + 1);
    c->n++;
    return 0;
}

/* ---- one file ---- */

/* A name like f.cold is a part of a function, and not counted. A clone (f.isra.0) counts. */
static bool is_part(const char *name)
{
    const char *cold = strstr(name, ".cold");
    return cold && (!cold[5] || cold[5] == '.');
}

static int symbol_look(void *context, const struct kp_elf_symbol *symbol)
{
    struct hidden_count *c = context;
    if (++c->looked % LOOK_EVERY == 0 && kp_clock_ns(CLOCK_MONOTONIC) > c->until_ns) return 1;
    char *name = kp_elf_names_get(&c->names, symbol->name);
    name[strcspn(name, "@")] = 0; /* NAME@@VERSION is NAME */
    if (!name[0] || !c->wants(name) || is_part(name)) return 0;
    if (!c->is_dynamic) c->out->functions += !symbol->is_global || !kp_calltrace_names_have(&c->seen, name);
    else if (symbol->is_global) (void)kp_calltrace_names_add(&c->seen, name);
    return c->seen.is_full;
}

static int table_look(struct hidden_count *c, const struct kp_elf *elf, const struct kp_elf_table *table,
                      bool is_dynamic)
{
    c->is_dynamic = is_dynamic;
    kp_elf_names_begin(&c->names, elf, table);
    return kp_elf_functions(elf, table, symbol_look, c);
}

/* Opens the file that has .symtab: the module's own, or its debug file. */
static bool full_open(struct kp_elf *debug, const struct kp_elf *own)
{
    char path[128];
    if (strlen(own->build_id) <= 2) return false;
    kp_fmt(path, sizeof path, "/usr/lib/debug/.build-id/%c%c/%s.debug", own->build_id[0], own->build_id[1],
           own->build_id + 2);
    if (kp_elf_open(debug, path)) return false;
    if (debug->full.bytes && strcmp(debug->build_id, own->build_id) == 0) return true;
    kp_elf_close(debug);
    return false;
}

static void module_look(struct hidden_count *c, const struct hidden_module *m)
{
    struct kp_elf own, debug = {.fd = -1};
    int rc = 0;
    if (kp_elf_open(&own, m->path)) {
        c->out->bare++;
        return;
    }
    const bool is_it = !m->build_id[0] || strcmp(own.build_id, m->build_id) == 0;
    const struct kp_elf *full = is_it && own.full.bytes ? &own : is_it && full_open(&debug, &own) ? &debug : NULL;
    const uint32_t before = c->out->functions;
    c->out->bare += !full;
    if (full) rc = table_look(c, &own, &own.dynamic, true);
    if (full && !rc) rc = table_look(c, full, &full->full, false);
    if (rc) { /* drops the count of a file that was read in part */
        c->out->functions = before;
        c->out->late++;
    }
    kp_calltrace_names_clear(&c->seen);
    kp_elf_close(&debug);
    kp_elf_close(&own);
}

void kp_calltrace_hidden_count(bool (*wants)(const char *name), struct kp_calltrace_hidden *out)
{
    struct hidden_count *c = kp_map_alloc(sizeof *c);
    *out = (struct kp_calltrace_hidden){0};
    if (!c) return;
    c->out = out;
    c->wants = wants;
    c->until_ns = kp_clock_ns(CLOCK_MONOTONIC) + MOST_NS;
    dl_iterate_phdr(module_note, c);
    for (uint32_t i = 0; i < c->n; i++)
        if (kp_clock_ns(CLOCK_MONOTONIC) > c->until_ns) out->late++;
        else module_look(c, &c->of[i]);
    kp_map_free(c, sizeof *c);
}

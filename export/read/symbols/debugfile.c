// SPDX-License-Identifier: Apache-2.0
/*
 * debugfile.c - functions, inlined functions and source lines of one file, read by libdw
 *
 * libdwfl finds the debug file and its tables. It would search all symbols for each address, and a whole unit for each
 * line. So symbols, units and a unit's functions become sorted lists on first use. The file may be damaged: a walk only
 * moves forward in the file, so it ends.
 */
#include "export/read/symbols/debugfile.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_filecheck.h"
#include "export/read/symbols/addr_ranges.h"
#include "export/read/store/stringtable.h"

enum { DEPTH_MOST = 64, RANGES_MOST = 1 << 20, INLINED_MOST = 64 };

struct unit {
    Dwarf_Die die, whole; /* whole: has the functions, maybe in a .dwo file */
    bool is_read;
    struct kp_addr_ranges functions;
    Dwarf_Die *of;
    size_t n, capacity;
};
struct kp_debugfile {
    char *debug_path;
    Dwfl_Callbacks callbacks;
    Dwfl *dwfl;
    Dwfl_Module *module;
    GElf_Addr bias, debug_bias; /* what libdwfl adds to the file's addresses, and to its debug information's */
    struct kp_addr_ranges symbols, units;
    const char **names; /* of symbols */
    char **cut;         /* names that are copies without a version */
    size_t cut_n, cut_capacity;
    struct unit *unit;
    size_t units_n, units_capacity;
    bool has_units;  /* units were read */
    bool is_trusted; /* the file is the caller's or root's */
};

bool kp_debugfile_can(void) { return true; }

/* ---- symbols ---- */

static bool is_function(const GElf_Sym *symbol)
{
    const int type = GELF_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF && symbol->st_value;
}

/* Cuts NAME@@VERSION to NAME. */
static const char *name_cut(struct kp_debugfile *d, const char *name)
{
    const size_t bytes = strcspn(name, "@");
    if (!bytes || !name[bytes]) return name;
    d->cut = kp_kineto_grow(d->cut, &d->cut_capacity, d->cut_n + 1, sizeof *d->cut);
    return d->cut[d->cut_n++] = kp_kineto_print("%.*s", (int)bytes, name);
}

/* A global symbol comes before a local one, as in framenames.c; then the first in the table. */
static void symbols_read(struct kp_debugfile *d)
{
    const int n = dwfl_module_getsymtab(d->module);
    if (n > 0) d->names = kp_kineto_zeros((size_t)n, sizeof *d->names);
    for (int i = 0; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr at;
        const char *name = dwfl_module_getsym_info(d->module, i, &symbol, &at, NULL, NULL, NULL);
        if (!name || !*name || !is_function(&symbol)) continue;
        const uint64_t local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
        d->names[i] = name_cut(d, name);
        kp_addr_ranges_add(&d->symbols, at - d->bias, at - d->bias + symbol.st_size, local << 32 | (uint32_t)i,
                           (uint32_t)i);
    }
    kp_addr_ranges_sort(&d->symbols);
}

/* ---- units ---- */

static struct unit *unit_add(struct kp_debugfile *d)
{
    d->unit = kp_kineto_grow(d->unit, &d->units_capacity, d->units_n + 1, sizeof *d->unit);
    d->unit[d->units_n] = (struct unit){0};
    return &d->unit[d->units_n++];
}

static void ranges_take(struct kp_addr_ranges *to, Dwarf_Die *die, uint32_t what, bool by_size)
{
    Dwarf_Addr base, lo, hi;
    ptrdiff_t next = 0;
    for (int i = 0; i < RANGES_MOST && (next = dwarf_ranges(die, next, &base, &lo, &hi)) > 0; i++)
        if (lo) kp_addr_ranges_add(to, lo, hi, by_size ? hi - lo : what, what);
}

/* Whether strings lie in another file (dwz). libdw would open whatever path the link names. */
static bool has_alternate(Dwarf *dwarf)
{
    const char *name;
    const void *build_id;
    return dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id) > 0;
}

static void units_read(struct kp_debugfile *d)
{
    d->has_units = true;
    Dwarf *dwarf = dwfl_module_getdwarf(d->module, &d->debug_bias);
    Dwarf_CU *cu = NULL;
    Dwarf_Die die, split = {0};
    uint8_t type;
    if (dwarf && !d->is_trusted && has_alternate(dwarf)) return;
    while (dwarf && dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, d->is_trusted ? &split : NULL) == 0) {
        if (type != DW_UT_compile && (type != DW_UT_skeleton || !d->is_trusted)) continue;
        struct unit *u = unit_add(d);
        u->die = die;
        u->whole = type == DW_UT_skeleton && split.addr ? split : die;
        ranges_take(&d->units, &u->die, (uint32_t)(d->units_n - 1), false);
    }
    kp_addr_ranges_sort(&d->units);
}

/* ---- functions of a unit ---- */

static void function_add(struct unit *u, Dwarf_Die *die)
{
    u->of = kp_kineto_grow(u->of, &u->capacity, u->n + 1, sizeof *u->of);
    u->of[u->n] = *die;
    ranges_take(&u->functions, die, (uint32_t)u->n++, true);
}

/* Finds the next entry on the level of `at`, or its first child. False: none, or one that is not further on. */
static bool step(Dwarf_Die *at, bool down, Dwarf_Die *out)
{
    Dwarf_Die next;
    const int rc = down ? dwarf_child(at, &next) : dwarf_siblingof(at, &next);
    if (rc != 0 || dwarf_dieoffset(&next) <= dwarf_dieoffset(at)) return false;
    *out = next;
    return true;
}

static void functions_read(struct unit *u)
{
    Dwarf_Die path[DEPTH_MOST];
    int depth = 0;
    Dwarf_Off last = 0;
    u->is_read = true;
    if (!step(&u->whole, true, &path[0])) return;
    while (depth >= 0) {
        Dwarf_Die *die = &path[depth];
        const Dwarf_Off at = dwarf_dieoffset(die);
        if (at <= last) break;
        last = at;
        if (dwarf_tag(die) == DW_TAG_subprogram) function_add(u, die);
        if (depth + 1 < DEPTH_MOST && step(die, true, &path[depth + 1])) {
            depth++;
            continue;
        }
        while (depth >= 0 && !step(&path[depth], false, &path[depth])) depth--;
    }
    kp_addr_ranges_sort(&u->functions);
}

/* ---- one address ---- */

struct chain {
    Dwarf_Die of[INLINED_MOST]; /* the outermost first */
    int n;
};

/* Adds inlined functions around the address to `chain`. Returns whether an entry below `around` holds it. */
static bool inlined_find(Dwarf_Die *around, Dwarf_Addr at, struct chain *chain, int depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MOST || chain->n == INLINED_MOST) return false;
    for (bool more = step(around, true, &die); more; more = step(&die, false, &die)) {
        const int tag = dwarf_tag(&die);
        const bool is_inlined = tag == DW_TAG_inlined_subroutine;
        if (!is_inlined && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
            continue;
        const bool has_addresses = dwarf_hasattr(&die, DW_AT_low_pc) || dwarf_hasattr(&die, DW_AT_ranges);
        if (has_addresses && dwarf_haspc(&die, at) != 1) continue;
        if (is_inlined && has_addresses) chain->of[chain->n++] = die;
        if (inlined_find(&die, at, chain, depth + 1) || has_addresses) return true;
    }
    return false;
}

static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    if (!name) name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
    return name ? name : dwarf_diename(die);
}

static uint32_t number_of(Dwarf_Die *die, unsigned key)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(die, key, &attribute), &value) == 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

/* Takes the line that called an inlined function, which is the place in the function around it. */
static void call_take(struct unit *u, Dwarf_Die *inlined, struct kp_debugplace *to)
{
    Dwarf_Files *files;
    size_t n;
    const uint32_t file = number_of(inlined, DW_AT_call_file);
    to->line = number_of(inlined, DW_AT_call_line);
    to->file =
        dwarf_getsrcfiles(&u->whole, &files, &n) == 0 && file < n ? dwarf_filesrc(files, file, NULL, NULL) : NULL;
}

static void line_take(struct unit *u, Dwarf_Addr at, struct kp_debugplace *to)
{
    Dwarf_Line *line = dwarf_getsrc_die(&u->die, at);
    int number = 0;
    if (!line || dwarf_lineno(line, &number) != 0 || number <= 0) return;
    to->line = (uint32_t)number;
    to->file = dwarf_linesrc(line, NULL, NULL);
}

static int places_take(struct unit *u, Dwarf_Addr at, struct kp_debugplace *out, int most)
{
    struct chain chain = {.n = 0};
    struct kp_debugplace where = {0};
    int n = 0;
    if (!u->is_read) functions_read(u);
    const struct kp_addr_range *function = kp_addr_ranges_find(&u->functions, at);
    if (function) (void)inlined_find(&u->of[function->what], at, &chain, 0);
    line_take(u, at, &where);
    for (int i = chain.n - 1; i >= 0 && n + 1 < most; i--) {
        out[n] = where;
        out[n++].function = name_of(&chain.of[i]);
        call_take(u, &chain.of[i], &where);
    }
    out[n] = where;
    out[n++].function = function ? name_of(&u->of[function->what]) : NULL;
    return n;
}

int kp_debugfile_find(struct kp_debugfile *d, uint64_t at, bool lines, struct kp_debugplace *out, int most)
{
    if (lines && !d->has_units) units_read(d);
    const struct kp_addr_range *symbol = kp_addr_ranges_find(&d->symbols, at);
    const Dwarf_Addr debug_at = at + d->bias - d->debug_bias;
    const struct kp_addr_range *unit = kp_addr_ranges_find(&d->units, debug_at);
    int n = 0;
    if (unit) n = places_take(&d->unit[unit->what], debug_at, out, most);
    if (symbol && !n) out[n++] = (struct kp_debugplace){0};
    if (symbol) out[n - 1].function = d->names[symbol->what];
    return n;
}

/* ---- open, close ---- */

/* libdwfl owns the descriptor once it has a module. */
static Dwfl_Module *module_report(Dwfl *dwfl, const char *path, int fd)
{
    Dwfl_Module *module = dwfl ? dwfl_report_offline(dwfl, path, path, fd) : NULL;
    if (!module) close(fd);
    return module;
}

/*
 * The path may come from another user's spool. A plain file is opened, once. Its links may name any other file on this
 * machine, even a device. So links are followed only from files that belong to root or the caller. A debug file with
 * the right build id is found for all.
 */
struct kp_debugfile *kp_debugfile_open(const char *path, const char *debug_path)
{
    struct stat st;
    const int fd = kp_filecheck_open_plain(path);
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0) close(fd);
        return NULL;
    }
    struct kp_debugfile *const d = kp_kineto_zeros(1, sizeof *d);
    d->is_trusted = st.st_uid == 0 || st.st_uid == geteuid();
    d->debug_path = (char *)debug_path;
    d->callbacks =
        (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
                         .find_debuginfo = d->is_trusted ? dwfl_standard_find_debuginfo : dwfl_build_id_find_debuginfo,
                         .section_address = dwfl_offline_section_address,
                         .debuginfo_path = debug_path ? &d->debug_path : NULL};
    (void)unsetenv("DEBUGINFOD_URLS"); /* libdwfl would ask these servers, which may take minutes */
    d->dwfl = dwfl_begin(&d->callbacks);
    d->module = module_report(d->dwfl, path, fd);
    if (!d->module || dwfl_report_end(d->dwfl, NULL, NULL) != 0 || !dwfl_module_getelf(d->module, &d->bias)) {
        kp_debugfile_close(d);
        return NULL;
    }
    symbols_read(d);
    return d;
}

void kp_debugfile_close(struct kp_debugfile *d)
{
    if (!d) return;
    if (d->dwfl) dwfl_end(d->dwfl);
    for (size_t i = 0; i < d->units_n; i++) {
        kp_addr_ranges_fini(&d->unit[i].functions);
        free(d->unit[i].of);
    }
    kp_addr_ranges_fini(&d->symbols);
    kp_addr_ranges_fini(&d->units);
    for (size_t i = 0; i < d->cut_n; i++) free(d->cut[i]);
    free(d->cut);
    free(d->names);
    free(d->unit);
    free(d);
}

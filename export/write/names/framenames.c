// SPDX-License-Identifier: Apache-2.0
/*
 * framenames.c - finds names for the frames of machine code stacks in the modules' files
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    40 bytes for each address, at most 48 for each frame that is asked for; texts in a scratch file
 * On fail:   a frame without a name is "module+0xoffset"
 *
 * All addresses are sorted by module first. Then each module's symbol tables are read once, and each symbol is matched
 * with the addresses in it. A file counts only with the recorded build id. The full table may lie in
 * /usr/lib/debug/.build-id instead. A global symbol wins over others for an address. In the CLI, libdw finds names that
 * these tables lack, and source lines (kp_export.h: struct kp_places).
 */
#include "export/write/names/framenames.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/elf/kp_elffile.h"
#include "collector/base/kp_idtable.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/kp_sort.h"
#include "export/write/names/demangle.h"
#include "export/write/names/shorten.h"
#include "export/write/out/scratch.h"
#include "collector/base/kp_poison.h"

enum { NAME_BYTES = 4096, TEXT_BLOCK = 65536, PLACES_MOST = 64, LATELY = 65536 };
enum { RANK_NONE, RANK_LOCAL, RANK_GLOBAL };

struct address {
    uint64_t offset; /* of the call: the return address - 1 */
    const char *text;
    uint32_t module, name; /* name: offset in its file's string table, during the search */
    uint32_t id;           /* one of its frames */
    uint8_t rank;
    bool is_python, is_recording;
};
struct frame {
    uint64_t id;
    uint32_t around, address;
};
struct kp_symbols {
    const struct kp_reader *reader;
    const struct kp_places *places; /* NULL: none */
    struct kp_scratch scratch;
    struct kp_demangle names;
    struct address *addresses;
    uint32_t n, cap;
    struct kp_idtable frames; /* struct frame */
    char *text_at, *text_end;
    char mangled[NAME_BYTES], plain[8 * NAME_BYTES];
};

/* ---- frames and their addresses ---- */

/* Many frames have one address, so what came lately is not taken again. The sort removes what is left of those. */
struct taking {
    struct kp_symbols *s;
    struct {
        uint64_t offset;
        uint32_t module;
    } lately[LATELY];
};

static int address_take(void *context, uint32_t id, const struct kp_frame_at *f)
{
    struct taking *taking = context;
    struct kp_symbols *s = taking->s;
    const uint32_t at =
        (uint32_t)((f->offset ^ (uint64_t)f->module << 32) * UINT64_C(0x9e3779b97f4a7c15) >> 40) % LATELY;
    if (taking->lately[at].offset == f->offset && taking->lately[at].module == f->module && f->offset) return 0;
    taking->lately[at].offset = f->offset;
    taking->lately[at].module = f->module;
    if (!kp_map_room(&s->addresses, s->n, &s->cap, sizeof *s->addresses, 4096)) return -ENOMEM;
    s->addresses[s->n++] = (struct address){.offset = f->offset - 1, .module = f->module, .id = id};
    return 0;
}

static bool is_before(const void *a, const void *b, const void *unused)
{
    const struct address *x = a, *y = b;
    (void)unused;
    return x->module != y->module ? x->module < y->module : x->offset < y->offset;
}

/* Sorts the addresses in place, and removes duplicates. */
static void addresses_sort(struct kp_symbols *s)
{
    uint32_t kept = 0;
    kp_sort(s->addresses, sizeof *s->addresses, s->n, is_before, NULL);
    for (uint32_t i = 0; i < s->n; i++)
        if (!kept || is_before(&s->addresses[kept - 1], &s->addresses[i], NULL)) s->addresses[kept++] = s->addresses[i];
    s->n = kept;
}

/* The index of the first address not below (module, offset). By hand: kp_search took 3 % more of a table of symbols. */
static uint32_t address_find(const struct kp_symbols *s, uint32_t module, uint64_t offset)
{
    uint32_t lo = 0, hi = s->n;
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        const struct address *a = &s->addresses[middle];
        if (a->module != module ? a->module < module : a->offset < offset) lo = middle + 1;
        else hi = middle;
    }
    return lo;
}

/* ---- names ---- */

static const char *text_keep(struct kp_symbols *s, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    if ((size_t)(s->text_end - s->text_at) < bytes) {
        const size_t room = bytes > TEXT_BLOCK ? bytes : TEXT_BLOCK;
        s->text_at = kp_scratch_alloc(&s->scratch, room);
        s->text_end = s->text_at ? s->text_at + room : NULL;
        if (!s->text_at) return NULL;
    }
    char *to = memcpy(s->text_at, text, bytes);
    s->text_at += bytes;
    return to;
}

struct match {
    struct kp_symbols *s;
    uint32_t module;
};

static int symbol_take(void *context, const struct kp_elf_symbol *symbol)
{
    const struct match *m = context;
    const uint8_t rank = symbol->is_global ? RANK_GLOBAL : RANK_LOCAL;
    for (uint32_t i = address_find(m->s, m->module, symbol->at); i < m->s->n; i++) {
        struct address *a = &m->s->addresses[i];
        if (a->module != m->module || a->offset - symbol->at >= symbol->bytes) break;
        if (a->text || a->rank >= rank) continue;
        a->rank = rank;
        a->name = symbol->name;
    }
    return 0;
}

static bool is_recording(const char *mangled)
{
    static const char *const of[] = {"_ZN2at14RecordFunction", "_ZN2at18RecordFunctionGuard",
                                     "_ZN3c1010Dispatcher17runRecordFunction"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strncmp(mangled, of[i], strlen(of[i])) == 0) return true;
    return false;
}

/*
 * Demangles a name. A name longer than the room stays as it is. So does a C function named f, since the C++ library
 * takes it for the type float.
 */
static const char *plain_of(struct kp_symbols *s, const char *mangled)
{
    const char *plain = mangled;
    if (s->places && s->places->plain) plain = s->places->plain(s->places->context, mangled);
    else if (strncmp(mangled, "_Z", 2) == 0) plain = kp_demangle_name(&s->names, mangled);
    return strlen(plain) < sizeof s->plain - NAME_BYTES ? plain : mangled;
}

static void name_set(struct kp_symbols *s, struct address *a, const char *module, const char *mangled)
{
    const size_t used = kp_fmt(s->plain, sizeof s->plain, "%s: ", kp_path_base(module));
    const char *kept = text_keep(s, mangled); /* the demangler's key is an address that stays */
    if (!kept || used + NAME_BYTES > sizeof s->plain) return;
    kp_symbol_short(plain_of(s, kept), s->plain + used, sizeof s->plain - used);
    a->is_python = strncmp(mangled, "_PyEval_EvalFrameDefault", 24) == 0 || strcmp(mangled, "PyEval_EvalFrameEx") == 0;
    a->is_recording = is_recording(mangled);
    a->text = text_keep(s, s->plain);
}

static void table_read(struct kp_symbols *s, const struct kp_elf *elf, const struct kp_elf_table *table, uint32_t from,
                       const char *path)
{
    struct match m = {s, s->addresses[from].module};
    if (!table->bytes) return;
    (void)kp_elf_functions(elf, table, symbol_take, &m);
    for (uint32_t i = from; i < s->n && s->addresses[i].module == m.module; i++) {
        struct address *a = &s->addresses[i];
        if (a->text || a->rank == RANK_NONE) continue;
        kp_elf_name(elf, table, a->name, s->mangled, sizeof s->mangled);
        s->mangled[strcspn(s->mangled, "@")] = 0; /* NAME@@VERSION is NAME */
        if (s->mangled[0]) name_set(s, a, path, s->mangled);
        a->rank = RANK_NONE;
    }
}

static void file_read(struct kp_symbols *s, const char *file, const struct kp_frame *f, uint32_t from)
{
    struct kp_elf elf;
    if (kp_elf_open(&elf, file)) return;
    if (strcmp(elf.build_id, f->build_id) == 0) {
        table_read(s, &elf, &elf.full, from, f->path);
        table_read(s, &elf, &elf.dynamic, from, f->path);
    }
    kp_elf_close(&elf);
}

/* ---- places: inlined functions, source lines, names that only debug files tell ---- */

static size_t place_put(struct kp_symbols *s, size_t used, const char *module, const struct kp_place *place)
{
    const size_t left = sizeof s->plain - used;
    size_t n = kp_fmt(s->plain + used, left, "%s: ", kp_path_base(module));
    n += kp_symbol_short(place->function ? plain_of(s, place->function) : "?", s->plain + used + n, left - n);
    return used + n;
}

static size_t line_put(struct kp_symbols *s, size_t used, const struct kp_place *place)
{
    char *const at = s->plain + used;
    if (!place->file || !place->line) return used;
    const size_t n = kp_fmt(at, sizeof s->plain - used, " %s:%u", kp_path_base(place->file), place->line);
    for (char *c = at; *c; c++)
        if (*c == ';') *c = ',';
    return used + n;
}

/* Puts the functions inlined at an address before its own text, each with ';' behind. */
static void places_set(struct kp_symbols *s, const struct kp_frame *f, struct address *a, const struct kp_place *of,
                       int n)
{
    size_t used = 0;
    for (int i = 0; i + 1 < n && used + 2 * NAME_BYTES < sizeof s->plain; i++) {
        if (!of[i].function) continue;
        used = line_put(s, place_put(s, used, f->path, &of[i]), &of[i]);
        used += kp_fmt(s->plain + used, sizeof s->plain - used, " (inlined);");
    }
    if (a->text) used += kp_fmt(s->plain + used, sizeof s->plain - used, "%s", a->text);
    else used = place_put(s, used, f->path, &of[n - 1]);
    line_put(s, used, &of[n - 1]);
    a->text = text_keep(s, s->plain);
}

static void places_ask(struct kp_symbols *s, const struct kp_frame *f, uint32_t from)
{
    struct kp_place of[PLACES_MOST];
    for (uint32_t i = from; i < s->n && s->addresses[i].module == f->module; i++) {
        struct address *a = &s->addresses[i];
        if (a->text && !s->places->lines) continue;
        const int n = s->places->find(s->places->context, f, a->offset, of, PLACES_MOST);
        if (!n || (!a->text && !of[n - 1].function)) continue;
        if (!a->text) name_set(s, a, f->path, of[n - 1].function);
        if (s->places->lines) places_set(s, f, a, of, n);
    }
}

/* By the reader that also runs inside the host: a full table by build id, then those of the module's own file. */
static void tables_read(struct kp_symbols *s, const struct kp_frame *f, uint32_t from)
{
    char debug[128];
    if (strlen(f->build_id) > 2) {
        kp_fmt(debug, sizeof debug, "/usr/lib/debug/.build-id/%c%c/%s.debug", f->build_id[0], f->build_id[1],
               f->build_id + 2);
        file_read(s, debug, f, from);
    }
    file_read(s, f->path, f, from);
}

static void module_read(struct kp_symbols *s, const struct kp_frame *f, uint32_t from)
{
    if (!s->places || !s->places->tables) tables_read(s, f, from);
    if (s->places) places_ask(s, f, from);
    for (uint32_t i = from; i < s->n && s->addresses[i].module == f->module; i++) {
        struct address *a = &s->addresses[i];
        if (a->text) continue;
        kp_fmt(s->mangled, sizeof s->mangled, "%s%s0x%lx", kp_path_base(f->path), f->module ? "+" : "",
               (unsigned long)a->offset);
        a->text = text_keep(s, s->mangled);
    }
}

/* ---- all of it ---- */

/* Every frame's address, each once, in order. */
static int addresses_read(struct kp_symbols *s)
{
    struct taking *taking = kp_map_alloc(sizeof *taking);
    if (!taking) return -ENOMEM;
    taking->s = s;
    const int rc = kp_reader_natives(s->reader, address_take, taking);
    kp_map_free(taking, sizeof *taking);
    if (!rc) addresses_sort(s);
    return rc;
}

static void modules_read(struct kp_symbols *s)
{
    struct kp_frame f;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t id = s->addresses[i].id;
        if (s->addresses[i].text || (i && s->addresses[i - 1].module == s->addresses[i].module)) continue;
        if (kp_reader_native(s->reader, &id, &f)) module_read(s, &f, i);
    }
}

struct kp_symbols *kp_symbols_open(const struct kp_reader *reader, const struct kp_export_options *options)
{
    struct kp_symbols *s = kp_map_alloc(sizeof *s);
    if (!s) return NULL;
    s->reader = reader;
    s->places = options->places;
    s->frames.item_bytes = sizeof(struct frame);
    kp_scratch_init(&s->scratch, options->scratch_dir, options->scratch_most);
    kp_demangle_init(&s->names, &s->scratch, options->loads_cpp, options->cpp);
    const int rc = addresses_read(s);
    if (!rc) modules_read(s);
    if (!rc) return s;
    kp_symbols_close(s);
    return NULL;
}

void kp_symbols_close(struct kp_symbols *s)
{
    if (!s) return;
    kp_demangle_fini(&s->names);
    if (s->addresses) kp_map_free(s->addresses, s->cap * sizeof *s->addresses);
    kp_idtable_fini(&s->frames);
    kp_scratch_fini(&s->scratch);
    kp_map_free(s, sizeof *s);
}

/* A frame is looked up when it is first asked for. NULL: there is none, or no memory. */
static const struct frame *frame_get(struct kp_symbols *s, uint32_t id)
{
    struct frame *f = kp_idtable_find(&s->frames, id);
    struct kp_frame_at of;
    uint32_t around = id;
    if (f) return f;
    if (!kp_reader_native_at(s->reader, &around, &of)) return NULL;
    const uint32_t at = address_find(s, of.module, of.offset - 1);
    if (at == s->n || s->addresses[at].module != of.module || s->addresses[at].offset != of.offset - 1)
        return NULL; /* written since */
    f = kp_idtable_add(&s->frames, id);
    if (f) f->around = around, f->address = at;
    return f;
}

bool kp_symbols_next(struct kp_symbols *s, uint32_t *stack, struct kp_symbol *out)
{
    const struct frame *f = *stack ? frame_get(s, *stack) : NULL;
    if (!f) return false;
    const struct address *a = &s->addresses[f->address];
    *out = (struct kp_symbol){a->text ? a->text : "?", a->is_python, a->is_recording};
    *stack = f->around;
    return true;
}

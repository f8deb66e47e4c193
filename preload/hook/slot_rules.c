// SPDX-License-Identifier: Apache-2.0
/*
 * slot_rules.c - shows the taker each slot through which a module calls a wanted function, and redirects it
 *
 * Called by: tap_modules.c (take), dlfollow.c (set), one thread at a time; sources (each_function)
 * Owns:      the taker, never removed; names of the objects met
 * Locks:     the loader's list lock, while dl_iterate_phdr calls back
 * Memory:    arena, some words an object
 * On fail:   the slot is unchanged
 * Safe in:   signal handlers no; after fork no
 *
 * A JUMP_SLOT serves calls alone. A GLOB_DAT slot may also be read for the function's address, which must be the same
 * everywhere. So it is shown only if the module's code uses it by `call *slot(%rip)` and `jmp *slot(%rip)` alone. The
 * search tries every four bytes of the code as a distance to such a slot, wherever instructions begin. It may see a use
 * where there is none, and the slot is left alone, but it never misses a use.
 */
#include "preload/hook/slot_rules.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/elf/kp_otherlibc.h"
#include "collector/base/sys/kp_path.h"
#include "preload/hook/got.h"
#include "preload/hook/taps.h"
#include "collector/base/kp_poison.h"

#if defined(__x86_64__)
enum { RELOC_JUMP_SLOT = R_X86_64_JUMP_SLOT, RELOC_GLOB_DAT = R_X86_64_GLOB_DAT };
#else
enum { RELOC_JUMP_SLOT = R_AARCH64_JUMP_SLOT, RELOC_GLOB_DAT = R_AARCH64_GLOB_DAT };
#endif
enum { OBJECTS_MAX = 4096 };

static const struct kp_word_taker *_Atomic taker;

int kp_words_set_taker(const struct kp_word_taker *one)
{
    if (kp_load_relaxed(&taker)) return -EEXIST;
    kp_store_release(&taker, one); /* pairs with: kp_words_real */
    return 0;
}

bool kp_words_have_taker(void) { return kp_load_relaxed(&taker) != NULL; }

uintptr_t kp_words_real(uintptr_t holds)
{
    const struct kp_word_taker *t = kp_load_acquire(&taker); /* pairs with: kp_words_set_taker */
    const uintptr_t real = t ? t->real(holds) : 0;
    return real ? real : holds;
}

bool kp_words_are_marked(const struct kp_words_mark *mark) { return !mark->at || kp_got_read(mark->at) == mark->holds; }

/* ---- objects ---- */

struct object {
    uintptr_t lo, hi;
    const char *name;
};
static struct object *objects; /* valid for one module's slots only: later another object may lie at the same address */
static uint32_t objects_n;
struct object_name {
    struct object_name *next;
    char text[];
};
static struct object_name *names; /* each name once, so that loading a library again allocates nothing */

static const char *name_keep(const char *path)
{
    const char *const base = kp_path_base(path);
    for (const struct object_name *n = names; n; n = n->next)
        if (strcmp(n->text, base) == 0) return n->text;
    const size_t bytes = strlen(base) + 1;
    struct object_name *n = kp_arena_alloc(sizeof *n + bytes);
    if (!n) return "";
    memcpy(n->text, base, bytes);
    n->next = names;
    names = n;
    return n->text;
}

struct find {
    uintptr_t address;
    struct object *out;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct find *f = arg;
    bool is_inside = false;
    (void)size;
    f->out->lo = UINTPTR_MAX;
    f->out->hi = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD) continue;
        if (at < f->out->lo) f->out->lo = at;
        if (at + p->p_memsz > f->out->hi) f->out->hi = at + p->p_memsz;
        if (f->address >= at && f->address < at + p->p_memsz) is_inside = true;
    }
    if (!is_inside) return 0;
    f->out->name = info->dlpi_name && info->dlpi_name[0] ? name_keep(info->dlpi_name) : "main program";
    return 1;
}

static const char *object_of(uintptr_t address)
{
    struct object found;
    for (uint32_t i = 0; i < objects_n; i++)
        if (address >= objects[i].lo && address < objects[i].hi) return objects[i].name;
    if (!objects) objects = kp_map_alloc(OBJECTS_MAX * sizeof *objects);
    if (!objects || objects_n == OBJECTS_MAX) return "";
    if (!dl_iterate_phdr(find_object, &(struct find){address, &found})) return "";
    objects[objects_n++] = found;
    return found.name;
}

/* The object that an unbound slot will lead to: the first that defines the function. Used for display only. */
static const char *object_of_name(const char *symbol)
{
    uintptr_t module = 0;
    kp_hook_first(symbol, &module);
    return module ? object_of(module) : "";
}

/* ---- GOT slots that serve calls only ---- */

struct use {
    uintptr_t at;
    bool is_call, is_other;
};
enum { USES_MAX = 8192 };
struct uses {
    struct use of[USES_MAX]; /* by address */
    uint32_t n;
};

static struct use *use_find(struct uses *uses, uintptr_t at)
{
    uint32_t lo = 0, hi = uses->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (uses->of[mid].at < at) lo = mid + 1;
        else hi = mid;
    }
    return lo < uses->n && uses->of[lo].at == at ? &uses->of[lo] : NULL;
}

static void use_add(struct uses *uses, uintptr_t at)
{
    if (uses->n == USES_MAX) return;
    uint32_t i = uses->n++;
    for (; i && uses->of[i - 1].at > at; i--) uses->of[i] = uses->of[i - 1];
    uses->of[i] = (struct use){.at = at};
}

#if defined(__x86_64__)

/* `place`: four bytes of code, taken as a distance. It counts from behind an immediate of 0, 1, 2 or 4 bytes. */
static inline void code_look(struct uses *uses, const uint8_t *place, uintptr_t first, uintptr_t last)
{
    int32_t distance;
    memcpy(&distance, place, sizeof distance);
    const uintptr_t next = (uintptr_t)place + 4, to = next + (uintptr_t)(intptr_t)distance;
    if (__builtin_expect(to + 4 < first || to > last, 1)) return;
    static const uint8_t behind[] = {0, 1, 2, 4};
    for (size_t i = 0; i < sizeof behind; i++) {
        struct use *use = use_find(uses, to + behind[i]);
        if (!use) continue;
        const bool is_call = !behind[i] && place[-2] == 0xff && (place[-1] == 0x15 || place[-1] == 0x25);
        if (is_call) use->is_call = true;
        else use->is_other = true;
    }
}

static void code_read(struct uses *uses, const uint8_t *lo, const uint8_t *hi)
{
    if (!uses->n || hi - lo < 6) return;
    const uintptr_t first = uses->of[0].at, last = uses->of[uses->n - 1].at;
    for (const uint8_t *at = lo + 2; at + 4 <= hi; at++) code_look(uses, at, first, last);
}

struct code {
    struct uses *uses;
    uintptr_t base;
    const uint8_t *ret; /* a return instruction in the module */
};

static int read_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct code *c = arg;
    (void)size;
    if (info->dlpi_addr != c->base) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || !(p->p_flags & PF_R)) continue;
        const uint8_t *at = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);
        if (c->uses) code_read(c->uses, at, at + p->p_filesz);
        else if (!c->ret) c->ret = memchr(at, 0xc3, p->p_filesz);
    }
    return 1;
}

static void uses_find(struct uses *uses, const struct kp_image *image)
{
    dl_iterate_phdr(read_module, &(struct code){.uses = uses, .base = image->base});
}

struct lent {
    const char *symbol;
    uintptr_t address, base;
};

/* A non-relocatable program that takes a function's address exports its own PLT entry: an undefined symbol with a
 * value. */
static int find_lent(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct lent *l = arg;
    struct kp_image image;
    (void)size;
    if (!kp_image_read(&image, info) || l->address < image.lo || l->address >= image.hi) return 0;
    const uint32_t index = kp_image_hashed(&image, l->symbol);
    if (!index || image.symbols[index].st_shndx != SHN_UNDEF) return 0;
    l->base = image.base;
    return 1;
}

static uintptr_t ask_loader(uintptr_t base, void *where, const char *symbol, const char *version)
{
    struct code c = {.base = base};
    dl_iterate_phdr(read_module, &c);
    if (!c.ret || (version && !dlvsym)) return 0;
    if (version) return (uintptr_t)kp_hook_call_from(c.ret, (void *)(uintptr_t)dlvsym, where, symbol, version);
    return (uintptr_t)kp_hook_call_from(c.ret, (void *)(uintptr_t)dlsym, where, symbol, NULL);
}

/*
 * Finds the function that the loader would bind the slot to at its first call. dlsym searches the scope of the module
 * that calls it, so it is called with a return address in that module. If the slot stayed unbound, the loader would
 * overwrite our value at the first call. 0: not found.
 */
static uintptr_t bind_early(const struct kp_image *image, const char *symbol, const char *version)
{
    struct lent l = {.symbol = symbol, .address = ask_loader(image->base, RTLD_DEFAULT, symbol, version)};
    if (!l.address || !dl_iterate_phdr(find_lent, &l)) return l.address;
    l.address = ask_loader(l.base, RTLD_NEXT, symbol, version); /* the function behind that PLT entry */
    return l.address && !dl_iterate_phdr(find_lent, &l) ? l.address : 0;
}

#else /* no search for this processor: every GLOB_DAT slot is left alone */
static void uses_find(struct uses *uses, const struct kp_image *image)
{
    (void)uses;
    (void)image;
}

static uintptr_t bind_early(const struct kp_image *image, const char *symbol, const char *version)
{
    (void)image;
    (void)symbol;
    (void)version;
    return 0;
}
#endif

/* ---- a module ---- */

struct visit {
    const struct kp_image *image;
    const struct kp_word_taker *taker;
    struct kp_words_mark *mark;
    struct uses *uses;
    bool is_open; /* RELRO pages were made writable */
};

/* The pages stay writable until the module is done, so it costs two system calls a module, not two a slot. */
static bool relro_lift(struct visit *v)
{
    const struct kp_image *m = v->image;
    if (!v->is_open)
        v->is_open = kp_io_mprotect((void *)m->relro_lo, m->relro_hi - m->relro_lo, PROT_READ | PROT_WRITE) == 0;
    return v->is_open;
}

static void word_take(struct visit *v, uintptr_t at, const char *symbol, const ElfW(Sym) * s)
{
    const struct kp_image *m = v->image;
    struct kp_word word = {.at = at, .holds = kp_got_read(at), .symbol = symbol};
    if (!word.holds || v->taker->real(word.holds)) return;
    const bool is_inside = word.holds >= m->lo && word.holds < m->hi;
    uintptr_t expected = word.holds;
    word.is_lazy = is_inside && (s->st_shndx == SHN_UNDEF || m->base + s->st_value != word.holds);
    const uintptr_t bound = word.is_lazy ? bind_early(m, symbol, kp_image_version(m, (uint32_t)(s - m->symbols))) : 0;
    if (bound) {
        word.is_lazy = false;
        word.holds = bound;
    }
    word.object = word.is_lazy && s->st_shndx == SHN_UNDEF ? object_of_name(symbol) : object_of(word.holds);
    const uintptr_t value = v->taker->take(&word);
    if (!value) return;
    if ((kp_image_in_relro(m, at) && !relro_lift(v)) || !kp_cas_acq_rel((_Atomic uintptr_t *)at, &expected, value))
        v->taker->left(symbol);
    else *v->mark = (struct kp_words_mark){at, value};
}

static bool is_in_module(const struct kp_image *m, uintptr_t at)
{
    return at >= m->lo && at + sizeof(void *) <= m->hi && at % sizeof(void *) == 0;
}

typedef void (*word_fn)(struct visit *v, uintptr_t at, const char *symbol, const ElfW(Sym) * s);

static void each_word(struct visit *v, const ElfW(Rela) * table, size_t count, uint32_t type, word_fn fn)
{
    const struct kp_image *m = v->image;
    for (size_t i = 0; i < count; i++) {
        const uint32_t symbol = (uint32_t)ELF64_R_SYM(table[i].r_info);
        const uintptr_t at = m->base + table[i].r_offset;
        if (!symbol || (uint32_t)ELF64_R_TYPE(table[i].r_info) != type || !is_in_module(m, at)) continue;
        const ElfW(Sym) *s = &m->symbols[symbol];
        const char *name = kp_image_name(m, symbol);
        const uint32_t is = ELF64_ST_TYPE(s->st_info);
        if (is != STT_FUNC && is != STT_NOTYPE && is != STT_GNU_IFUNC) continue;
        if (v->taker->wants(name)) fn(v, at, name, s);
    }
}

static void got_note(struct visit *v, uintptr_t at, const char *symbol, const ElfW(Sym) * s)
{
    (void)s;
    if (v->uses->n < USES_MAX) use_add(v->uses, at);
    else v->taker->left(symbol);
}

static void got_take(struct visit *v, uintptr_t at, const char *symbol, const ElfW(Sym) * s)
{
    const struct use *use = use_find(v->uses, at);
    if (use && use->is_call && !use->is_other) word_take(v, at, symbol, s);
    else if (use) v->taker->left(symbol);
}

static struct uses *uses_room; /* used by one thread at a time */

void kp_words_take(const struct kp_image *image, struct kp_words_mark *mark)
{
    struct visit v = {.image = image, .taker = kp_load_relaxed(&taker), .mark = mark};
    if (!v.taker) return;
    each_word(&v, image->plt, image->plt_count, RELOC_JUMP_SLOT, word_take);
    each_word(&v, image->rela, image->rela_count, RELOC_JUMP_SLOT, word_take);
    if (!uses_room) uses_room = kp_map_alloc(sizeof *uses_room);
    v.uses = uses_room;
    if (v.uses) {
        v.uses->n = 0;
        each_word(&v, image->rela, image->rela_count, RELOC_GLOB_DAT, got_note);
        if (v.uses->n) uses_find(v.uses, image);
        if (v.uses->n) each_word(&v, image->rela, image->rela_count, RELOC_GLOB_DAT, got_take);
    }
    if (v.is_open) (void)kp_io_mprotect((void *)image->relro_lo, image->relro_hi - image->relro_lo, PROT_READ);
    objects_n = 0;
}

/* ---- exported functions ---- */

struct functions {
    void (*each)(void *arg, const char *symbol, uintptr_t address);
    void *arg;
    const struct kp_word_taker *taker;
};

static int look_at_functions(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct functions *f = arg;
    struct kp_image image;
    (void)size;
    if (!kp_image_read(&image, info) || ((uintptr_t)&kp_words_take >= image.lo && (uintptr_t)&kp_words_take < image.hi))
        return 0;
    const uint32_t end = kp_image_symbols_end(&image);
    for (uint32_t i = 1; i < end; i++) {
        const ElfW(Sym) *s = &image.symbols[i];
        const uint32_t type = ELF64_ST_TYPE(s->st_info);
        if (s->st_shndx == SHN_UNDEF || !s->st_value || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
        if (f->taker->wants(kp_image_name(&image, i)))
            f->each(f->arg, kp_image_name(&image, i), image.base + s->st_value);
    }
    return 0;
}

void kp_hook_each_function(void (*each)(void *arg, const char *symbol, uintptr_t address), void *arg)
{
    struct functions f = {each, arg, kp_load_relaxed(&taker)};
    if (f.taker) dl_iterate_phdr(look_at_functions, &f);
}

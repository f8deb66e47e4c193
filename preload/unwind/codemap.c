// SPDX-License-Identifier: Apache-2.0
/*
 * codemap.c - finds the module of a code address, without a lock
 *
 * Called by: walk.c and stack_ids.c, inside hooks (a new return address, a new frame: cold); sources, when modules
 *            changed
 * Owns:      the generation of modules; names of modules met so far; on an old C library a list of modules
 * Locks:     none in a hook. kp_unwind_modules_changed: the loader's list lock, for moments.
 * Memory:    arena, on an old C library: a text for each module that was ever loaded
 * On fail:   no module; callers keep the plain address
 * Safe in:   signal handlers yes, but kp_unwind_modules_changed; after fork yes
 *
 * From glibc 2.35 on _dl_find_object finds the module without a lock. Before, a list of modules is used. A module in it
 * may have been unloaded since, so its memory is read by process_vm_readv.
 */
#include "preload/unwind/codemap.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/elf/kp_elffile.h"
#include "collector/base/kp_hash.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/elf/kp_modulepath.h"
#include "collector/record/kp_record.h"
#include "preload/unwind/kp_unwind.h"
#include "collector/base/kp_poison.h"

enum { LISTED_MAX = 2048, NAMED = 256, PATH = 1024, NOTES = 1024, SEGMENTS = 64, BUILD_ID_MAX = 32 };

/* glibc's struct dl_find_object, so that this builds where there is none. */
struct found_object {
    unsigned long long flags;
    void *lo, *hi;
    struct link_map *map;
    void *unwind;
    unsigned long long reserved[8];
};
static int (*find_object)(void *pc, struct found_object *out);

struct code_module {
    uintptr_t lo, hi, base;
    const uint8_t *header;
    const char *path;
    uint64_t key; /* of path and place */
    _Atomic uint32_t is_there;
};
static struct code_module *listed; /* an old C library */
static _Atomic uint32_t listed_n;
static _Atomic uint32_t generation, file;
static atomic_flag is_busy = ATOMIC_FLAG_INIT; /* a thread looks at the modules */
static _Atomic uint64_t named[NAMED];          /* half a hash of the module, its name's id */
static char program[PATH];
static uintptr_t ours_lo, ours_hi;

extern const uint8_t __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

uint32_t kp_unwind_generation(void) { return kp_load_acquire(&generation); /* pairs with: kp_unwind_modules_changed */ }

void kp_unwind_forget(void)
{
    atomic_flag_clear_explicit(&is_busy, memory_order_relaxed); /* the parent's thread that held it is gone */
    kp_add_acq_rel(&generation, 1);                             /* pairs with: kp_unwind_generation */
    kp_add_relaxed(&file, 1);
}

uint32_t kp_unwind_file(void) { return kp_load_relaxed(&file); }

bool kp_unwind_is_ours(uintptr_t pc) { return pc >= ours_lo && pc < ours_hi; }

/* ---- an old C library: a list ---- */

static void segments_read(const struct dl_phdr_info *info, struct code_module *m)
{
    m->lo = UINTPTR_MAX;
    m->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && at < m->lo) m->lo = at;
        if (p->p_type == PT_LOAD && at + p->p_memsz > m->hi) m->hi = at + p->p_memsz;
        if (p->p_type == PT_GNU_EH_FRAME) m->header = (const uint8_t *)at;
    }
}

static const char *text_keep(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *to = kp_arena_alloc(bytes);
    return to ? memcpy(to, text, bytes) : "";
}

/* Inside dl_iterate_phdr: the loader's list is locked. */
static int module_note(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    struct code_module m = {.path = info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name : program};
    const uint32_t n = kp_load_relaxed(&listed_n);
    (void)bytes;
    (void)unused;
    segments_read(info, &m);
    m.key = kp_hash64(m.path, strlen(m.path)) ^ m.lo * 3 ^ m.hi;
    for (uint32_t i = 0; i < n; i++)
        if (listed[i].key == m.key) {
            kp_store_relaxed(&listed[i].is_there, 2);
            return 0;
        }
    if (n == LISTED_MAX || m.lo >= m.hi) return 0;
    m.path = text_keep(m.path);
    listed[n] = m;
    kp_store_relaxed(&listed[n].is_there, 2);
    kp_store_release(&listed_n, n + 1); /* pairs with: listed_find */
    return 0;
}

static void list_make(void)
{
    if (!listed && !(listed = kp_map_alloc(LISTED_MAX * sizeof *listed))) return;
    dl_iterate_phdr(module_note, NULL);
    for (uint32_t i = 0; i < kp_load_relaxed(&listed_n); i++)
        kp_store_relaxed(&listed[i].is_there, kp_load_relaxed(&listed[i].is_there) / 2); /* 2: seen just now */
}

static const struct code_module *listed_find(uintptr_t pc)
{
    for (uint32_t i = kp_load_acquire(&listed_n); i-- > 0;) /* pairs with: module_note */
        if (pc >= listed[i].lo && pc < listed[i].hi && kp_load_relaxed(&listed[i].is_there)) return &listed[i];
    return NULL;
}

/* ---- modules come and go ---- */

static int counters_read(struct dl_phdr_info *info, size_t bytes, void *context)
{
    uint64_t *seen = context;
    if (bytes < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) return 1;
    seen[0] = info->dlpi_adds;
    seen[1] = info->dlpi_subs;
    return 1;
}

void kp_unwind_modules_changed(void)
{
    static _Atomic uint64_t adds, subs;
    uint64_t now[2] = {0, 0};
    if (!program[0] || atomic_flag_test_and_set_explicit(&is_busy, memory_order_acquire)) return;
    dl_iterate_phdr(counters_read, now);
    const bool are_gone = kp_exchange_acq_rel(&subs, now[1]) != now[1];
    if (kp_exchange_acq_rel(&adds, now[0]) != now[0] || are_gone)
        if (!find_object) list_make();
    if (are_gone) kp_add_acq_rel(&generation, 1); /* pairs with: kp_unwind_generation */
    atomic_flag_clear_explicit(&is_busy, memory_order_release);
}

void kp_unwind_modules_use_list(void)
{
    find_object = NULL;
    list_make();
}

void kp_unwind_modules_setup(void)
{
    const int saved = errno;
    const ssize_t n = kp_io_readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    if (n <= 0) kp_fmt(program, sizeof program, "program");
    const uintptr_t headers = getauxval(AT_PHDR);
    ours_lo = (uintptr_t)__ehdr_start, ours_hi = (uintptr_t)_end;
    if (headers >= ours_lo && headers < ours_hi) ours_lo = ours_hi = 0;
    *(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
    errno = saved;
    kp_unwind_modules_changed();
}

/* ---- modules with holes ---- */

/*
 * glibc tells of a module without holes between its segments where all of it lies. For another it says where the
 * segment of the address lies, and .eh_frame is in the next one. Then the module's program headers tell the rest.
 */
struct headers {
    ElfW(Phdr) of[SEGMENTS];
    int n;
};

static bool headers_read(const struct link_map *map, struct headers *out)
{
    ElfW(Ehdr) head;
    uintptr_t at = getauxval(AT_PHDR);
    uint64_t n = getauxval(AT_PHNUM);
    if (map->l_name && map->l_name[0]) { /* not the program */
        if (kp_io_peek((const void *)map->l_addr, &head, sizeof head) != 0 ||
            memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
            return false;
        at = map->l_addr + head.e_phoff;
        n = head.e_phnum;
    }
    if (!at || n > SEGMENTS) return false;
    out->n = (int)n;
    return kp_io_peek((const void *)at, out->of, n * sizeof *out->of) == 0;
}

static bool has_holes(const struct found_object *o) { return o->unwind && (o->unwind < o->lo || o->unwind >= o->hi); }

/* The segment that `at` lies in; with at = 0 all of the module. If there are no headers lo and hi stay. */
static bool extent_find(const struct found_object *o, uintptr_t at, uintptr_t *lo, uintptr_t *hi)
{
    struct headers headers;
    uintptr_t least = UINTPTR_MAX, most = 0;
    const int saved = errno;
    const bool is_read = headers_read(o->map, &headers);
    errno = saved;
    for (int i = 0; is_read && i < headers.n; i++) {
        const uintptr_t from = o->map->l_addr + headers.of[i].p_vaddr, to = from + headers.of[i].p_memsz;
        if (headers.of[i].p_type != PT_LOAD || (at && (at < from || at >= to))) continue;
        if (from < least) least = from;
        if (to > most) most = to;
    }
    if (least >= most || (!at && ((uintptr_t)o->lo < least || (uintptr_t)o->lo >= most))) return false;
    *lo = least, *hi = most;
    return true;
}

/* ---- which ---- */

bool kp_unwind_table_find(uintptr_t pc, struct kp_unwind_table *out)
{
    struct found_object o;
    if (!find_object) {
        const struct code_module *m = listed_find(pc);
        if (!m || !m->header) return false;
        *out = (struct kp_unwind_table){m->lo, m->hi, m->header, false};
        return true;
    }
    if (find_object((void *)pc, &o) != 0 || !o.unwind) return false;
    *out = (struct kp_unwind_table){(uintptr_t)o.lo, (uintptr_t)o.hi, o.unwind, true};
    return !has_holes(&o) || extent_find(&o, (uintptr_t)o.unwind, &out->lo, &out->hi);
}

/* ---- names ---- */

/* Everything is read with care, once a module. */
static void build_id_read(uintptr_t lo, uintptr_t hi, uintptr_t base, char *hex, size_t bytes)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) p;
    if (hi - lo < sizeof head || kp_io_peek((const void *)lo, &head, sizeof head) != 0 ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    for (uint32_t i = 0; i < head.e_phnum && i < SEGMENTS && !hex[0]; i++) {
        const uintptr_t at = lo + head.e_phoff + i * sizeof p;
        if (at + sizeof p > hi || kp_io_peek((const void *)at, &p, sizeof p) != 0) return;
        if (p.p_type == PT_NOTE && p.p_filesz < NOTES) kp_elf_build_id(base + p.p_vaddr, p.p_filesz, hex, bytes);
    }
}

static uint32_t module_name(struct kp_thread *t, const char *path, uintptr_t lo, uintptr_t hi, uintptr_t base)
{
    char text[PATH + 2 * BUILD_ID_MAX + 64], hex[2 * BUILD_ID_MAX + 1] = {0};
    const int saved = errno;
    build_id_read(lo, hi, base, hex, sizeof hex);
    size_t n = path[0] != '/' && kp_modulepath_find(lo, text, PATH) ? strlen(text) : kp_fmt(text, PATH, "%s", path);
    if (n >= PATH) n = PATH - 1;
    n++; /* the NUL parts the path from the rest */
    n += kp_fmt(text + n, sizeof text - n, "%s %lx %lx %lx", hex[0] ? hex : "-", (unsigned long)base, (unsigned long)lo,
                (unsigned long)hi);
    errno = saved;
    return kp_name_intern(t, text, (uint32_t)n);
}

static uint32_t module_id(struct kp_thread *t, const char *path, uintptr_t lo, uintptr_t hi, uintptr_t base,
                          const struct found_object *o)
{
    const uint64_t words[4] = {lo, hi, (uintptr_t)path, kp_unwind_generation()};
    const uint64_t hash = kp_hash64(words, sizeof words);
    _Atomic uint64_t *slot = &named[hash % NAMED];
    const uint64_t seen = kp_load_acquire(slot); /* pairs with: below */
    if (seen && seen >> 32 == hash >> 32) return (uint32_t)seen;
    if (o && has_holes(o)) (void)extent_find(o, 0, &lo, &hi);
    const uint32_t id = module_name(t, path, lo, hi, base);
    if (id) kp_store_release(slot, (hash >> 32) << 32 | id); /* pairs with: above */
    return id;
}

uint32_t kp_unwind_module_find(struct kp_thread *t, uintptr_t pc, uint64_t *offset)
{
    struct found_object o;
    uint32_t id = 0;
    *offset = pc;
    if (find_object && find_object((void *)pc, &o) == 0) {
        const char *path = o.map->l_name && o.map->l_name[0] ? o.map->l_name : program;
        id = module_id(t, path, (uintptr_t)o.lo, (uintptr_t)o.hi, o.map->l_addr, &o);
        if (id) *offset = pc - o.map->l_addr;
    } else if (!find_object) {
        const struct code_module *m = listed_find(pc);
        id = m ? module_id(t, m->path, m->lo, m->hi, m->base, NULL) : 0;
        if (id) *offset = pc - m->base;
    }
    return id;
}

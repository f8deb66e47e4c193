// SPDX-License-Identifier: Apache-2.0
/*
 * tap_modules.c - notices new modules and taps the wanted names in them
 *
 * Called by: dlfollow.c, one thread at a time (its flag); the constructor
 * Owns:      the list of modules, keyed by load address, dynamic section and name
 * Locks:     the loader's list lock while dl_iterate_phdr calls us back, its load lock in dlopen
 * Memory:    entries and blocks of slots in the arena, used again for later modules: a dlopen/dlclose loop does not
 *            grow them
 * On fail:   a module that cannot be tapped is left as it is; the next scan finds the modules that it loads
 * Safe in:   signal handlers no; after fork no (the child never comes here: its gate is shut)
 *
 * A scan has two halves, because a module in the loader's list may be half loaded or about to be unloaded:
 *
 *   1. inside dl_iterate_phdr (no module can be unmapped): mark known modules as still mapped, find the slots of new
 *      ones. No slot is written: another thread's dlopen may not have relocated the module yet, and the loader would
 *      fault if we made its RELRO pages read-only.
 *   2. outside: for each new module with slots of interest take a reference by dlopen(RTLD_NOLOAD). That waits for the
 *      loader's load lock, so relocation is over when it returns. The module stays mapped until our dlclose.
 *      In a process with a single thread neither can happen, and no reference is taken.
 *
 * A module that was unloaded and loaded at the same address between two scans looks like the old one. But its slots no
 * longer hold our taps. So after any unload the slots of known modules are checked.
 *
 * A look before constructors (early.c) finds the load lock held by its own thread, and needs no reference. The thread
 * that scans may be waiting for that lock, in hold_open. It lends the list of modules meanwhile, and then starts over.
 *
 * Names are numbered in the order in which they were first wanted (wanted.h). So a number tells which names a known
 * module has still to be searched for: those that were added since.
 */
#include "preload/hook/tap_modules.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_hash.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/elf/kp_otherlibc.h"
#include "preload/hook/slot_rules.h"
#include "collector/base/kp_poison.h"

enum { BLOCK_ENTRIES = 64, BLOCK_WORDS = 64, WORDS = 15, NAME_MAX_BYTES = 4096, RETURN_NAP_NS = 50000 };

enum state { STATE_DONE, STATE_NEW, STATE_EARLY }; /* EARLY: all is done but the taps that a look leaves out */

struct slot_words {
    struct slot_words *next;
    uint32_t count;
    struct kp_slot slots[WORDS];
};

struct module {
    struct module *next;
    struct kp_image image; /* pointers into the module, followed only while it is held mapped */
    uint64_t name_hash;
    enum state state;
    bool is_left_alone;
    uint32_t names_done; /* the module was searched for wanted names below this number */
    struct slot_words *words;
    struct kp_words_mark mark; /* the taker's */
};

static struct module *modules, *free_entries; /* modules: in the loader's order */
static struct slot_words *free_words;
static _Atomic unsigned long long last_adds, last_subs; /* the loader's counters at the last scan */
static unsigned long long early_adds, early_subs;       /* and at the last look before constructors */
static bool is_lock_held;                               /* this look's thread holds the load lock */
static const struct kp_tap *left_out, *left_out_end;    /* taps that it leaves to the next scan */
enum { LIST_IN_USE, LIST_LENT, LIST_BORROWED };
static _Atomic uint32_t list_state;
static uint32_t lent_count; /* how often the list was borrowed */

struct scan_pass {
    bool with_self, lacks_memory;
    bool is_aside;          /* not a scan: last_adds and last_subs stay, so that the next scan sees the changes */
    struct module *finding; /* the module that is being searched for slots */
    struct module *old;     /* modules of the last scan not yet seen in this one */
    struct module **tail;   /* end of the new list */
    unsigned long long adds, subs;
};

static uint64_t name_hash(const char *name) { return name ? kp_hash64(name, strlen(name)) : 0; }

/* Takes an entry, whose first word is its next, from a list that grows by `count` of them. NULL: no memory. */
static void *list_take(void *list, size_t bytes, size_t count)
{
    void **const first = list;
    char *const block = *first ? NULL : kp_arena_alloc(count * bytes);
    for (size_t i = 0; block && i < count; i++) {
        void **const entry = (void **)(void *)(block + i * bytes);
        *entry = *first;
        *first = entry;
    }
    void **const taken = *first;
    if (taken) *first = *taken;
    return taken;
}

static struct slot_words *words_take(void)
{
    struct slot_words *w = list_take(&free_words, sizeof *w, BLOCK_WORDS);
    if (w) *w = (struct slot_words){.count = 0};
    return w;
}

/* ld.so, the vdso and this library are not tapped. */
static bool is_left_alone(const struct kp_image *image, const struct scan_pass *pass)
{
    uintptr_t self = (uintptr_t)&kp_modules_apply, vdso = getauxval(AT_SYSINFO_EHDR), loader = getauxval(AT_BASE);
    if (vdso >= image->lo && vdso < image->hi) return true;
    if (loader && loader >= image->lo && loader < image->hi) return true;
    return !pass->with_self && self >= image->lo && self < image->hi;
}

/* Takes the module out of the last scan's list. The order hardly changes, so it is nearly always the first entry. */
static struct module *take_known(struct scan_pass *pass, const struct kp_image *image, uint64_t hash)
{
    for (struct module **at = &pass->old; *at; at = &(*at)->next) {
        struct module *m = *at;
        if (m->image.base != image->base || m->image.dynamic != image->dynamic || m->name_hash != hash) continue;
        *at = m->next;
        return m;
    }
    return NULL;
}

/* If slots of a known module lost their taps, a new module was loaded at its address. */
static void recheck(struct module *m)
{
    for (const struct slot_words *w = m->words; w; w = w->next)
        for (uint32_t i = 0; i < w->count; i++)
            if (m->state == STATE_DONE && !kp_wanted_held(w->slots[i].name, kp_got_read(w->slots[i].at)))
                m->state = STATE_NEW;
    if (!kp_words_are_marked(&m->mark)) m->state = STATE_NEW;
}

static void keep_word(void *arg, const struct kp_slot *slot)
{
    struct scan_pass *pass = arg;
    struct module *m = pass->finding;
    if (!m->words || m->words->count == WORDS) {
        struct slot_words *w = words_take();
        if (!w) {
            pass->lacks_memory = true;
            return;
        }
        w->next = m->words;
        m->words = w;
    }
    m->words->slots[m->words->count++] = *slot;
    m->state = STATE_NEW;
}

static void search_module(struct scan_pass *pass, struct module *m)
{
    if (!m->is_left_alone && m->names_done < kp_wanted_count()) {
        pass->finding = m;
        kp_got_find(&m->image, m->names_done, keep_word, pass);
    }
    m->names_done = kp_wanted_count();
}

static struct module *make_module(struct scan_pass *pass, const struct kp_image *image, uint64_t hash)
{
    struct module *m = list_take(&free_entries, sizeof *m, BLOCK_ENTRIES);
    if (!m) return NULL;
    *m = (struct module){.image = *image, .name_hash = hash, .is_left_alone = is_left_alone(image, pass)};
    if (kp_words_have_taker() && !m->is_left_alone) m->state = STATE_NEW;
    return m;
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct scan_pass *pass = arg;
    struct kp_image image;
    (void)size;
    pass->adds = info->dlpi_adds;
    pass->subs = info->dlpi_subs;
    if (!kp_image_read(&image, info)) return 0;
    uint64_t hash = name_hash(info->dlpi_name);
    struct module *m = take_known(pass, &image, hash);
    if (m && info->dlpi_subs != kp_load_relaxed(&last_subs)) recheck(m);
    if (!m) m = make_module(pass, &image, hash);
    if (!m) {
        pass->lacks_memory = true;
        return 0;
    }
    search_module(pass, m);
    *pass->tail = m;
    pass->tail = &m->next;
    return 0;
}

static void free_entry(struct module *m)
{
    while (m->words) {
        struct slot_words *w = m->words;
        m->words = w->next;
        w->next = free_words;
        free_words = w;
    }
    m->next = free_entries;
    free_entries = m;
}

/* Walks the loader's list once; then `modules` has the modules that are mapped now. Writes to none of them. */
static void list_modules(struct scan_pass *pass)
{
    struct module *now = NULL;
    pass->old = modules;
    pass->tail = &now;
    dl_iterate_phdr(look_at_module, pass);
    *pass->tail = NULL;
    modules = now;
    while (pass->old) {
        struct module *gone = pass->old;
        pass->old = gone->next;
        free_entry(gone);
    }
    if (pass->is_aside) return;
    /* pairs with: kp_modules_changed */
    kp_store_release(&last_adds, pass->adds);
    kp_store_release(&last_subs, pass->subs);
}

static void tap_word(const struct module *m, const struct kp_slot *slot)
{
    uintptr_t holds = kp_got_read(slot->at);
    if (kp_wanted_held(slot->name, holds)) return;
    const struct kp_tap *tap = kp_wanted_choose(&m->image, slot->name, kp_words_real(holds), !slot->is_pointer);
    if (tap >= left_out && tap < left_out_end) return;
    const int err = tap ? kp_got_write(slot, holds, (uintptr_t)tap->tap) : 0;
    if (err && err != -EAGAIN)
        KP_LOG_ONCE(0,
                    "a page of a module could not be made writable (%s): its calls of %s, and maybe others, are "
                    "not recorded",
                    kp_log_error_text(err), kp_wanted_name(slot->name));
}

static void tap_module(const struct module *m)
{
    for (const struct slot_words *w = m->words; w; w = w->next)
        for (uint32_t i = 0; i < w->count; i++) tap_word(m, &w->slots[i]);
}

struct name_search {
    const struct module *module;
    char name[NAME_MAX_BYTES];
    bool is_found;
};

static int copy_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct name_search *s = arg;
    (void)size;
    if (info->dlpi_addr != s->module->image.base || name_hash(info->dlpi_name) != s->module->name_hash) return 0;
    size_t len = strlen(info->dlpi_name);
    if (len >= sizeof s->name) return 1;
    memcpy(s->name, info->dlpi_name, len + 1);
    s->is_found = true;
    return 1;
}

/* Waits for the load lock. Its holder may borrow the list meanwhile; it is back before this returns. */
static void *hold_open(const char *name)
{
    uint32_t lent = LIST_LENT;
    kp_store_release(&list_state, LIST_LENT); /* pairs with: kp_modules_borrow */
    void *handle = dlopen(name[0] ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    while (!kp_cas_acq_rel(&list_state, &lent, LIST_IN_USE)) { /* pairs with: kp_modules_return */
        lent = LIST_LENT;
        kp_io_nap(RETURN_NAP_NS);
    }
    return handle;
}

bool kp_modules_borrow(void)
{
    uint32_t lent = LIST_LENT;
    if (!kp_cas_acq_rel(&list_state, &lent, LIST_BORROWED)) return false; /* pairs with: hold_open */
    lent_count++;
    return true;
}

void kp_modules_return(void) { kp_store_release(&list_state, LIST_LENT); /* pairs with: hold_open */ }

void kp_modules_forget(void)
{
    is_lock_held = false;
    left_out = left_out_end = NULL;
    kp_store_relaxed(&list_state, LIST_IN_USE);
}

/* Returns a reference that keeps the module mapped and proves it is relocated. NULL: it is gone or was replaced, or the
 * list was lent. */
static void *hold_module(const struct module *m)
{
    static struct name_search s; /* 4 KB are too much for a small stack; one thread at a time uses it */
    struct link_map *map = NULL;
    const uint32_t lent_before = lent_count;
    s.module = m;
    s.is_found = false;
    dl_iterate_phdr(copy_name, &s);
    if (!s.is_found) return NULL;
    void *handle = hold_open(s.name);
    if (!handle) return NULL;
    if (lent_count == lent_before && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map &&
        map->l_addr == m->image.base && map->l_ld == m->image.dynamic)
        return handle;
    dlclose(handle);
    return NULL;
}

static void tap_one(struct module *m, bool alone)
{
    void *handle = alone ? NULL : hold_module(m);
    if (alone || handle) {
        tap_module(m);
        if (m->state == STATE_NEW && !m->is_left_alone) kp_words_take(&m->image, &m->mark);
        m->state = is_lock_held && m->words ? STATE_EARLY : STATE_DONE;
    }
    if (handle) dlclose(handle);
}

static void tap_new(void)
{
    const bool alone = is_lock_held || kp_libc_is_alone();
    for (struct module *m = modules; m;) {
        const uint32_t lent_before = lent_count;
        if (m->state == STATE_NEW || (m->state == STATE_EARLY && !is_lock_held)) tap_one(m, alone);
        m = lent_count == lent_before ? m->next : modules; /* a list that was lent is another list */
    }
}

/* A name that an earlier set has, too, has its slots listed already: they need only be looked at again. */
static int want(const struct kp_tap *taps, uint32_t tap_count)
{
    const int err = kp_wanted_add(taps, tap_count);
    for (struct module *m = err ? NULL : modules; m; m = m->next)
        if (m->words) m->state = STATE_NEW;
    return err;
}

int kp_modules_apply(const struct kp_tap *taps, uint32_t tap_count, bool with_self)
{
    struct scan_pass pass = {.with_self = with_self};
    int err = kp_wanted_has(taps) ? 0 : want(taps, tap_count);
    if (err) return err;
    list_modules(&pass);
    tap_new();
    return pass.lacks_memory ? -ENOMEM : 0;
}

int kp_modules_add(const struct kp_tap *taps, uint32_t tap_count, bool with_self)
{
    struct scan_pass pass = {.with_self = with_self, .is_aside = true};
    int err = want(taps, tap_count);
    if (err) return err;
    list_modules(&pass);
    tap_new();
    return pass.lacks_memory ? -ENOMEM : 0;
}

void kp_modules_early(const struct kp_tap *taps, uint32_t tap_count, bool is_begin)
{
    struct scan_pass pass = {.is_aside = true};
    is_lock_held = is_begin;
    left_out = is_begin ? taps : NULL;
    left_out_end = is_begin ? taps + tap_count : NULL;
    if (!is_begin || (!kp_wanted_has(taps) && want(taps, tap_count) != 0)) return;
    list_modules(&pass);
    early_adds = pass.adds;
    early_subs = pass.subs;
    tap_new();
}

int kp_modules_take(bool with_self)
{
    struct scan_pass pass = {.with_self = with_self, .is_aside = true};
    for (struct module *m = modules; m; m = m->next)
        if (!m->is_left_alone) m->state = STATE_NEW;
    list_modules(&pass);
    tap_new();
    return pass.lacks_memory ? -ENOMEM : 0;
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct scan_pass *pass = arg;
    (void)size;
    pass->adds = info->dlpi_adds;
    pass->subs = info->dlpi_subs;
    return 1;
}

bool kp_modules_changed(void)
{
    struct scan_pass pass = {0};
    dl_iterate_phdr(read_counters, &pass);
    /* If the counters are unchanged, is_telling (dlfollow.c) is already visible; pairs with: list_modules */
    return pass.adds != kp_load_acquire(&last_adds) || pass.subs != kp_load_acquire(&last_subs);
}

/* The caller holds the load lock, so no other thread is in a look before constructors. A scan may have listed the new
 * modules already and wait for that lock, so its counters say nothing. */
bool kp_modules_arrived(void)
{
    struct scan_pass pass = {0};
    dl_iterate_phdr(read_counters, &pass);
    return pass.adds != early_adds || pass.subs != early_subs;
}

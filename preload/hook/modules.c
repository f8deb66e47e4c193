// SPDX-License-Identifier: Apache-2.0
/*
 * modules.c - notices new modules and taps those, once each
 *
 * Called by: dlfollow.c, one thread at a time (its flag); the constructor
 * Owns:      the list of modules, keyed by load address, dynamic section and name
 * Locks:     none of ours. The loader's list lock while dl_iterate_phdr calls us back, its load lock in dlopen.
 * Memory:    entries of the arena, used again for later modules: a dlopen/dlclose loop does not grow the list
 * On fail:   a module that cannot be tapped is left as it is; its dlopen calls are then found by the next scan
 * Safe in:   signal handlers no; after fork no (the child never comes here: its gate is shut)
 *
 * A scan has two halves, because a module in the loader's list may be half born or about to die:
 *
 *   1. inside dl_iterate_phdr (nothing can be unmapped): mark known modules as still there, note the words of new
 *      ones. Nothing is written: another thread's dlopen may not have relocated the module yet, and its loader would
 *      fault if we made its RELRO pages read-only under it.
 *   2. outside: for each new module with words of interest take a reference by dlopen(RTLD_NOLOAD). That waits for the
 *      loader's load lock, so relocation is over when it returns, and the module cannot go away until our dlclose.
 *      With a single thread in the process neither can happen, and the reference is spared.
 *
 * A module that was closed and opened again at the same address between two scans looks like the old one. Its words
 * do not: they no longer hold our taps. So after any unload the words of known modules are looked at again.
 */
#include "preload/hook/modules.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/single_threaded.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_poison.h"

enum { BLOCK_ENTRIES = 64, NAME_MAX_BYTES = 4096 };

enum state { STATE_DONE, STATE_NEW };

struct module {
    struct module *next;
    struct kp_image image; /* pointers into the module: only followed while it is known to be mapped */
    uint64_t name_hash;
    enum state state;
    uint32_t slot_count;
    struct kp_slot slots[KP_GOT_SLOTS_MAX];
};

static struct module *modules, *free_entries; /* modules: in the loader's order */
static _Atomic unsigned long long last_adds, last_subs; /* read by any thread as a hint */
static struct kp_modules_stats stats;

struct pass {
    const struct kp_tap *taps;
    uint32_t tap_count;
    bool with_self, lacks_memory;
    struct module *old;   /* those of the last scan not yet met in this one */
    struct module **tail; /* where the next one met goes */
    unsigned long long adds, subs;
};

static uint64_t name_hash(const char *name)
{
    uint64_t h = 1469598103934665603u;
    for (; name && *name; name++) h = (h ^ (uint8_t)*name) * 1099511628211u;
    return h;
}

static struct module *entry_take(void)
{
    if (!free_entries) {
        struct module *block = kp_arena_alloc(BLOCK_ENTRIES * sizeof *block);
        if (!block) return NULL;
        for (int i = 0; i < BLOCK_ENTRIES; i++) {
            block[i].next = free_entries;
            free_entries = &block[i];
        }
        stats.free_entries += BLOCK_ENTRIES;
    }
    struct module *m = free_entries;
    free_entries = m->next;
    stats.free_entries--;
    return m;
}

/* The loader itself, the vdso, libc (it calls its own dlopen directly) and we are not tapped. */
static bool is_left_alone(const struct kp_image *image, const struct pass *pass)
{
    uintptr_t self = (uintptr_t)&kp_modules_apply, vdso = getauxval(AT_SYSINFO_EHDR), loader = getauxval(AT_BASE);
    if (vdso >= image->lo && vdso < image->hi) return true;
    if (loader && loader >= image->lo && loader < image->hi) return true;
    if (!pass->with_self && self >= image->lo && self < image->hi) return true;
    for (uint32_t t = 0; t < pass->tap_count; t++)
        if ((uintptr_t)pass->taps[t].real >= image->lo && (uintptr_t)pass->taps[t].real < image->hi) return true;
    return false;
}

/* Takes the module out of the last scan's list. The order hardly changes, so it is nearly always the first. */
static struct module *take_known(struct pass *pass, const struct kp_image *image, uint64_t hash)
{
    for (struct module **at = &pass->old; *at; at = &(*at)->next) {
        struct module *m = *at;
        if (m->image.base != image->base || m->image.dynamic != image->dynamic || m->name_hash != hash) continue;
        *at = m->next;
        return m;
    }
    return NULL;
}

/* A known module whose words lost their taps is a new one in the old one's place. */
static void recheck(struct module *m, const struct pass *pass)
{
    for (uint32_t i = 0; i < m->slot_count; i++)
        if (kp_got_read(m->slots[i].at) != (uintptr_t)pass->taps[m->slots[i].tap].tap) m->state = STATE_NEW;
}

static struct module *make_module(struct pass *pass, const struct kp_image *image, uint64_t hash)
{
    struct module *m = entry_take();
    if (!m) return NULL;
    *m = (struct module){.image = *image, .name_hash = hash};
    stats.modules++;
    if (is_left_alone(image, pass)) return m;
    uint32_t found = kp_got_find(image, pass->taps, pass->tap_count, m->slots);
    m->slot_count = found < KP_GOT_SLOTS_MAX ? found : KP_GOT_SLOTS_MAX;
    stats.refused += found - m->slot_count;
    if (m->slot_count) m->state = STATE_NEW;
    return m;
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct pass *pass = arg;
    struct kp_image image;
    (void)size;
    pass->adds = info->dlpi_adds;
    pass->subs = info->dlpi_subs;
    if (!kp_image_read(&image, info)) return 0;
    uint64_t hash = name_hash(info->dlpi_name);
    struct module *m = take_known(pass, &image, hash);
    if (m && info->dlpi_subs != kp_load_relaxed(&last_subs)) recheck(m, pass);
    if (!m) m = make_module(pass, &image, hash);
    if (!m) {
        pass->lacks_memory = true;
        return 0;
    }
    *pass->tail = m;
    pass->tail = &m->next;
    return 0;
}

static void free_entry(struct module *m)
{
    m->next = free_entries;
    free_entries = m;
    stats.modules--;
    stats.free_entries++;
}

/* One walk over the loader's list: afterwards `modules` is what is mapped now. Nothing was written to any of them. */
static void list_modules(struct pass *pass)
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
    kp_store_relaxed(&last_adds, pass->adds);
    kp_store_relaxed(&last_subs, pass->subs);
}

static void tap_module(struct module *m, const struct kp_tap *taps)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < m->slot_count; i++) {
        const struct kp_slot *slot = &m->slots[i];
        const struct kp_tap *tap = &taps[slot->tap];
        uintptr_t holds = kp_got_read(slot->at);
        if (holds == (uintptr_t)tap->tap) continue;
        if (kp_got_is_takable(&m->image, slot, tap) && kp_got_write(slot, holds, (uintptr_t)tap->tap) == 0)
            words++;
        else
            stats.refused++;
    }
    stats.tapped_words += words;
    stats.tapped_modules += words > 0;
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

/* A reference that keeps the module mapped and proves that it is relocated; NULL: it is gone, or another by now. */
static void *hold_module(const struct module *m)
{
    static struct name_search s; /* 4 KB are too much for a small thread's stack; one thread at a time comes here */
    struct link_map *map = NULL;
    s.module = m;
    s.is_found = false;
    dl_iterate_phdr(copy_name, &s);
    if (!s.is_found) return NULL;
    void *handle = dlopen(s.name[0] ? s.name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_addr == m->image.base &&
        map->l_ld == m->image.dynamic)
        return handle;
    dlclose(handle);
    return NULL;
}

static void tap_new(const struct kp_tap *taps)
{
    bool alone = __libc_single_threaded;
    for (struct module *m = modules; m; m = m->next) {
        if (m->state != STATE_NEW) continue;
        void *handle = alone ? NULL : hold_module(m);
        if (alone || handle) {
            tap_module(m, taps);
            m->state = STATE_DONE;
        }
        if (handle) dlclose(handle);
    }
}

int kp_modules_apply(const struct kp_tap *taps, uint32_t tap_count, bool with_self)
{
    struct pass pass = {.taps = taps, .tap_count = tap_count, .with_self = with_self};
    list_modules(&pass);
    tap_new(taps);
    stats.scans++;
    return pass.lacks_memory ? -ENOMEM : 0;
}

void kp_modules_undo(const struct kp_tap *taps, uint32_t tap_count)
{
    struct pass pass = {.taps = taps, .tap_count = tap_count};
    bool alone = __libc_single_threaded;
    list_modules(&pass);
    for (struct module *m = modules; m; m = m->next) {
        void *handle = alone || !m->slot_count ? NULL : hold_module(m);
        for (uint32_t i = 0; i < m->slot_count && (handle || alone); i++) {
            const struct kp_tap *tap = &taps[m->slots[i].tap];
            if (kp_got_write(&m->slots[i], (uintptr_t)tap->tap, (uintptr_t)tap->real) == 0) stats.tapped_words--;
        }
        if (handle) dlclose(handle);
    }
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct pass *pass = arg;
    (void)size;
    pass->adds = info->dlpi_adds;
    pass->subs = info->dlpi_subs;
    return 1;
}

bool kp_modules_changed(void)
{
    struct pass pass = {0};
    dl_iterate_phdr(read_counters, &pass);
    return pass.adds != kp_load_relaxed(&last_adds) || pass.subs != kp_load_relaxed(&last_subs);
}

void kp_modules_stats_get(struct kp_modules_stats *out)
{
    *out = stats;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * callsite.c - the line of the program that a thread is called from, as a small number, without a window or the GIL
 *
 * Called by: torch/memory.c through python_bridge.h, after each allocation of torch (hot)
 * Owns:      the call sites, and by the hash of a stack which one it has. They stay until the process ends.
 * Locks:     one flag, taken where a stack is new; a thread that finds it taken goes on without a site
 * Memory:    1.7 MB mapped once; the kernel gives a page when a site in it is used
 * On fail:   0: a block without a site. When all sites are used, new ones have none.
 * Safe in:   after fork yes; where another thread held the flag no new site is learnt in the child
 *
 * The line is that of the innermost frame of no package and not of Python's library; without one the innermost. Stacks
 * are read as caller_stack.c reads them. A stack and its site are one word, so any thread may overwrite it.
 */
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "preload/python/pycalls.h"
#include "preload/python_bridge.h"
#include "collector/base/kp_poison.h"

enum { SEEN = 16384, SITE_BITS = 16 };

/* The frames that an allocation asks for. Written before key, which is NULL until then. */
KP_HOT_DATA static struct callsite_asks {
    _Atomic(kp_pystack_key_fn) key;
    void *(*thread_state)(void);
    int (*is_finalizing)(void);
} asks;
KP_HOT_DATA static struct callsites {
    _Atomic uint64_t seen[SEEN];             /* 48 bits of a stack's hash, and its site */
    _Atomic uint16_t gradient[KP_CALLSITES]; /* the site of the same line for gradients; 0: not made yet */
    struct kp_callsite of[KP_CALLSITES];
} * sites;
static _Atomic uint32_t sites_n, is_learning;

bool kp_callsites_setup(void)
{
    if (!sites) sites = kp_map_alloc(sizeof *sites);
    return sites != NULL;
}

void kp_callsites_enable(void)
{
    const struct kp_python *const python = kp_python_get();
    if (!sites) return;
    asks.thread_state = python->thread_state;
    asks.is_finalizing = kp_python_api.is_finalizing;
    kp_store_release(&asks.key, kp_pystack_key_of(python->layout.version)); /* pairs with: callsite.c:kp_callsite */
}

static const char gradients[] = "gradients", activations[] = "activations";

static bool has_part(const char *file, const char *function, const char *folder, const char *name)
{
    return strstr(file, folder) && (!name || strcmp(function, name) == 0);
}

static const char *category_of(const char *file, const char *function)
{
    if (has_part(file, function, "/torch/nn/modules/module.py", "_call_impl")) return activations;
    if (has_part(file, function, "/torch/optim/", NULL)) return "optimizer state";
    if (has_part(file, function, "/torch/_tensor.py", "backward")) return gradients;
    return has_part(file, function, "/torch/autograd/", NULL) ? gradients : "";
}

struct learning {
    struct kp_callsite site;
    char forward[96]; /* of the outermost forward() within the nn.Module's call that comes next */
};

/* "Net" of "main.<locals>.Net.forward"; one without a class has none. */
static void forward_look(struct learning *l, const char *qualified)
{
    static const char inner[] = "<locals>.";
    const char *name = qualified;
    for (const char *at; (at = strstr(name, inner));) name = at + sizeof inner - 1;
    const size_t bytes = strlen(name), end = sizeof ".forward" - 1;
    if (bytes > end && strcmp(name + bytes - end, ".forward") == 0)
        kp_fmt(l->forward, sizeof l->forward, "%.*s", (int)(bytes - end), name);
}

/* Puts the class of a module's call before those of the calls within. The outer ones of a long path are left out. */
static void module_add(struct learning *l)
{
    char *const path = l->site.module;
    const size_t had = strlen(path), bytes = strlen(l->forward);
    if (!bytes || had + bytes + 2 > sizeof l->site.module) return;
    memmove(path + bytes + (had > 0), path, had + 1);
    memcpy(path, l->forward, bytes);
    if (had) path[bytes] = '.';
    *l->forward = '\0';
}

static bool frame_look(void *context, const char *file, int line, const char *function, const char *qualified)
{
    struct learning *const l = context;
    struct kp_callsite *const s = &l->site;
    const bool is_own = kp_pyfile_is_own(file), is_first = !s->line;
    const char *const category = category_of(file, function);
    if (!*s->category) s->category = category;
    if (category == activations) module_add(l);
    else forward_look(l, qualified);
    if (is_first || (is_own && !kp_pyfile_is_own(s->file))) {
        const size_t bytes = strlen(file); /* of a long one the end */
        s->line = line;
        kp_fmt(s->file, sizeof s->file, "%s", bytes < sizeof s->file ? file : file + bytes - sizeof s->file + 1);
        kp_fmt(s->function, sizeof s->function, "%s", function);
    }
    return true;
}

/* The number of the site, of a new one if there is none like it. */
static uint32_t site_find(const struct kp_callsite *s)
{
    const uint32_t n = kp_load_relaxed(&sites_n);
    for (uint32_t i = 1; i <= n; i++) {
        const struct kp_callsite *const o = &sites->of[i];
        if (o->line == s->line && o->category == s->category && strcmp(o->file, s->file) == 0 &&
            strcmp(o->function, s->function) == 0 && strcmp(o->module, s->module) == 0)
            return i;
    }
    if (n + 1 >= KP_CALLSITES) return 0;
    sites->of[n + 1] = *s;
    kp_store_release(&sites_n, n + 1); /* pairs with: callsite.c:kp_callsite_get */
    return n + 1;
}

static __attribute__((noinline)) uint32_t stack_learn(const void *thread, uint64_t key)
{
    struct learning l = {.site = {.category = ""}};
    if (kp_exchange_acq_rel(&is_learning, 1)) return 0;
    kp_pystack_each(&kp_python_get()->layout, thread, frame_look, &l);
    const uint32_t site = l.site.line ? site_find(&l.site) : 0;
    kp_store_relaxed(&sites->seen[key % SEEN], (key & ~((UINT64_C(1) << SITE_BITS) - 1)) | site);
    (void)kp_exchange_acq_rel(&is_learning, 0);
    return site;
}

uint32_t kp_callsite(void)
{
    const kp_pystack_key_fn ask = kp_load_acquire(&asks.key); /* pairs with: callsite.c:kp_callsites_enable */
    if (!ask || (asks.is_finalizing && asks.is_finalizing())) return 0;
    const void *const thread = asks.thread_state();
    const uint64_t key = thread ? ask(thread) : 0;
    if (!key) return 0;
    const uint64_t word = kp_load_relaxed(&sites->seen[key % SEEN]);
    if (__builtin_expect((word ^ key) >> SITE_BITS == 0, 1)) return (uint32_t)word & ((1u << SITE_BITS) - 1);
    return stack_learn(thread, key);
}

uint32_t kp_callsite_gradient(uint32_t site)
{
    const struct kp_callsite *const of = kp_callsite_get(site);
    uint32_t number = of ? kp_load_relaxed(&sites->gradient[site]) : 0;
    if (!of || number || kp_exchange_acq_rel(&is_learning, 1)) return number;
    struct kp_callsite s = *of;
    s.category = gradients;
    number = site_find(&s);
    kp_store_relaxed(&sites->gradient[site], (uint16_t)number);
    (void)kp_exchange_acq_rel(&is_learning, 0);
    return number;
}

const struct kp_callsite *kp_callsite_get(uint32_t number)
{
    return number && number <= kp_load_acquire(&sites_n) ? &sites->of[number] : NULL; /* pairs with: site_find */
}

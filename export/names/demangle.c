// SPDX-License-Identifier: Apache-2.0
/*
 * demangle.c - names of device code as C++ writes them
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    a place a kernel name, its text in the scratch. The C++ library's function takes its room by the host's
 *            malloc: one block of it, kept from name to name and from trace to trace (docs/decisions/018).
 *
 * Kineto asks __cxa_demangle of the C++ library in the process, which gives up on some long names; so the same function
 * has to be asked to get the same names. It is found at run time: this library needs libc only. Without one, names stay
 * mangled, and `kprof export` of the spool shows them as C++ later.
 */
#include "export/names/demangle.h"

#include <dlfcn.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_poison.h"

#define TEXT_BLOCK 65536u
#define MANGLED_MAX \
    1024u /* the function's own limit: longer ones it gives up on. Up to here 400 KB of stack are enough for it */

static char *buffer; /* the C++ library's, from malloc */
static size_t buffer_bytes;
static _Atomic uint32_t is_used; /* one export at a time has it */

void kp_demangle_init(struct kp_demangle *d, struct kp_scratch *scratch, bool may_load,
                      const char *(*cpp)(const char *mangled))
{
    *d = (struct kp_demangle){.scratch = scratch, .may_load = may_load, .cpp = cpp};
}

void kp_demangle_fini(struct kp_demangle *d)
{
    if (d->of) kp_map_free(d->of, d->cap * sizeof *d->of);
    d->of = NULL;
}

static void function_find(struct kp_demangle *d)
{
    void *library = dlopen("libstdc++.so.6", d->may_load ? RTLD_LAZY : RTLD_LAZY | RTLD_NOLOAD);
    d->is_known = true;
    if (library)
        *(void **)&d->function =
            dlsym(library, "__cxa_demangle"); /* it stays open: never are we the ones who unload it */
}

static const char *text_keep(struct kp_demangle *d, const char *text)
{
    size_t bytes = strlen(text) + 1, room = bytes > TEXT_BLOCK ? bytes : TEXT_BLOCK;
    if ((size_t)(d->end - d->at) < bytes) {
        d->at = kp_scratch_alloc(d->scratch, room);
        d->end = d->at ? d->at + room : NULL;
        if (!d->at) return NULL;
    }
    char *to = d->at;
    memcpy(to, text, bytes);
    d->at += bytes;
    return to;
}

static const char *ask(struct kp_demangle *d, const char *mangled)
{
    uint32_t unused = 0;
    int status = -1;
    const char *kept = NULL;
    if (d->cpp && strnlen(mangled, MANGLED_MAX + 1) <= MANGLED_MAX) {
        const char *name = d->cpp(mangled);
        kept = name ? text_keep(d, name) : NULL;
        return kept ? kept : mangled;
    }
    if (d->cpp) return mangled;
    if (!d->is_known) function_find(d);
    if (!d->function || strnlen(mangled, MANGLED_MAX + 1) > MANGLED_MAX || !kp_cas_acq_rel(&is_used, &unused, 1))
        return mangled;
    char *plain = d->function(mangled, buffer, &buffer_bytes, &status);
    if (plain && !status) {
        buffer = plain; /* perhaps moved */
        kept = text_keep(d, plain);
    }
    kp_store_release(&is_used, 0); /* pairs with: the compare-and-swap above */
    return kept ? kept : mangled;
}

static struct kp_demangled *place_find(struct kp_demangled *of, uint32_t cap, const char *mangled)
{
    for (uint32_t at = (uint32_t)((uintptr_t)mangled * 0x9e3779b97f4a7c15u >> 40);; at++)
        if (!of[at & (cap - 1)].mangled || of[at & (cap - 1)].mangled == mangled) return &of[at & (cap - 1)];
}

static bool grow(struct kp_demangle *d)
{
    uint32_t cap = d->cap ? d->cap * 2 : 512;
    struct kp_demangled *of = kp_map_alloc(cap * sizeof *of);
    if (!of) return false;
    for (uint32_t i = 0; i < d->cap; i++)
        if (d->of[i].mangled) *place_find(of, cap, d->of[i].mangled) = d->of[i];
    if (d->of) kp_map_free(d->of, d->cap * sizeof *of);
    d->of = of, d->cap = cap;
    return true;
}

const char *kp_demangle_name(struct kp_demangle *d, const char *mangled)
{
    if (d->n * 2 >= d->cap && !grow(d)) return mangled;
    struct kp_demangled *place = place_find(d->of, d->cap, mangled);
    if (!place->mangled) {
        d->n++;
        *place = (struct kp_demangled){mangled, ask(d, mangled)};
    }
    return place->plain;
}

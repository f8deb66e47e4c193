// SPDX-License-Identifier: Apache-2.0
/*
 * demangle.c - names of kernels and functions as C++ writes them
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    a place for each kernel name, and its text in the scratch. The C++ library's function allocates by the
 *            host's malloc. Its block is kept for all names and traces (docs/decisions/018).
 *
 * Kineto calls __cxa_demangle of the C++ library in the process, which gives up on some long names. So this file calls
 * the same function, to get the same names. It is found at run time, since libkprof.so needs libc only. If there is no
 * C++ library names stay mangled, and `kprof export` demangles them later.
 */
#include "export/write/names/demangle.h"

#include <dlfcn.h>
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_poison.h"

#define TEXT_BLOCK 65536u
#define MANGLED_MAX 1024u /* the function gives up on longer names. Up to here it needs at most 400 KB of stack */

static char *buffer; /* the C++ library's, from malloc */
static size_t buffer_bytes;
static _Atomic uint32_t is_used; /* an export has the buffer */

void kp_demangle_init(struct kp_demangle *d, struct kp_scratch *scratch, bool may_load,
                      const char *(*cpp)(const char *mangled))
{
    *d = (struct kp_demangle){
        .names = {.item_bytes = sizeof(struct kp_demangled)}, .scratch = scratch, .may_load = may_load, .cpp = cpp};
}

void kp_demangle_fini(struct kp_demangle *d) { kp_idtable_fini(&d->names); }

static void function_find(struct kp_demangle *d)
{
    void *library = dlopen("libstdc++.so.6", d->may_load ? RTLD_LAZY : RTLD_LAZY | RTLD_NOLOAD);
    d->is_known = true;
    if (library)
        *(void **)&d->function = dlsym(library, "__cxa_demangle"); /* it stays open: the library must never unload it */
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
        buffer = plain; /* it may have moved */
        kept = text_keep(d, plain);
    }
    kp_store_release(&is_used, 0); /* pairs with: the compare-and-swap above */
    return kept ? kept : mangled;
}

const char *kp_demangle_name(struct kp_demangle *d, const char *mangled)
{
    struct kp_demangled *name = kp_idtable_add(&d->names, (uintptr_t)mangled);
    if (!name) return mangled;
    if (!name->plain) name->plain = ask(d, mangled);
    return name->plain;
}

// SPDX-License-Identifier: Apache-2.0
/* demangle.h - names of kernels and functions as C++ writes them */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_idtable.h"
#include "export/write/out/scratch.h"

struct kp_demangled {
    uint64_t mangled; /* the address of a name that stays */
    const char *plain;
};
struct kp_demangle {
    struct kp_idtable names; /* struct kp_demangled */
    char *at, *end;          /* room for texts */
    struct kp_scratch *scratch;
    bool may_load;                           /* false: only a C++ library that is loaded already is used */
    bool is_known;                           /* the function was looked for */
    const char *(*cpp)(const char *mangled); /* used instead of the C++ library, or NULL */
    char *(*function)(const char *, char *, size_t *, int *); /* NULL: not found */
};
/*
 * cpp replaces the C++ library's function, or is NULL. A reader of spools of any origin needs it, since that function
 * may never return for a hostile name (export/show/plainname.c).
 */
void kp_demangle_init(struct kp_demangle *d, struct kp_scratch *scratch, bool may_load,
                      const char *(*cpp)(const char *mangled));
void kp_demangle_fini(struct kp_demangle *d);
/* The name as Kineto shows it, or `mangled` itself if it cannot be demangled. Valid until _fini. */
const char *kp_demangle_name(struct kp_demangle *d, const char *mangled);

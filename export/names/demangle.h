// SPDX-License-Identifier: Apache-2.0
/* demangle.h - names of device code as C++ writes them */
#ifndef KP_DEMANGLE_H
#define KP_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_idtable.h"
#include "export/out/scratch.h"

struct kp_demangled {
    uint64_t mangled; /* the address of a name that stays */
    const char *plain;
};
struct kp_demangle {
    struct kp_idtable names; /* struct kp_demangled */
    char *at, *end;          /* room for texts */
    struct kp_scratch *scratch;
    bool may_load;                           /* else only a C++ library that is there already is asked */
    bool is_known;                           /* the function was looked for */
    const char *(*cpp)(const char *mangled); /* asked instead; NULL: nobody */
    char *(*function)(const char *, char *, size_t *, int *); /* NULL: there is none */
};
/* cpp: of who reads names by anybody, in which the C++ library's function has no end (export/cli/plainname.c). NULL:
 * that one is asked */
void kp_demangle_init(struct kp_demangle *d, struct kp_scratch *scratch, bool may_load,
                      const char *(*cpp)(const char *mangled));
void kp_demangle_fini(struct kp_demangle *d);
/* The name as Kineto shows it; `mangled` itself when it is no C++ name or nobody can tell. Valid until _fini. */
const char *kp_demangle_name(struct kp_demangle *d, const char *mangled);

#endif

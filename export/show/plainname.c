// SPDX-License-Identifier: Apache-2.0
/*
 * plainname.c - demangles names of C++ and Rust functions by libiberty
 *
 * libiberty has the code of the C++ library's __cxa_demangle. So names equal those of a trace made inside the program.
 *
 * A name may refer to its own parts. 300 letters, with each part twice the part before, expand to 30 GB. So libiberty
 * gives the name piece by piece, and a longjmp leaves it when the name is too long. It holds no heap memory then.
 */
#include "export/show/plainname.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

enum { PLAIN_MOST = 65536 };

static struct {
    char text[PLAIN_MOST];
    size_t used;
    jmp_buf too_long;
} plain;

bool kp_plainname_can(void) { return true; }

static void take(const char *piece, size_t bytes, void *unused)
{
    (void)unused;
    if (bytes >= PLAIN_MOST - plain.used) longjmp(plain.too_long, 1);
    memcpy(plain.text + plain.used, piece, bytes);
    plain.used += bytes;
    plain.text[plain.used] = 0;
}

static const char *ask(int (*language)(const char *, int, demangle_callbackref, void *), const char *mangled,
                       int options)
{
    plain.used = 0;
    if (setjmp(plain.too_long) != 0) return NULL;
    return language(mangled, options, take, NULL) && plain.used ? plain.text : NULL;
}

const char *kp_plainname_cpp(const char *mangled)
{
    return strncmp(mangled, "_Z", 2) == 0 ? ask(cplus_demangle_v3_callback, mangled, DMGL_PARAMS | DMGL_TYPES) : NULL;
}

const char *kp_plainname(const char *mangled)
{
    const char *name = NULL;
    if (strncmp(mangled, "_R", 2) == 0 || strncmp(mangled, "_ZN", 3) == 0)
        name = ask(rust_demangle_callback, mangled, 0);
    return name ? name : kp_plainname_cpp(mangled);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * plainname.c - names of functions as their language writes them, by libiberty
 *
 * It reads C++ by the same code as the C++ library's __cxa_demangle, so names are those of a trace made inside the program.
 */
#include "export/cli/plainname.h"

#include <libiberty/demangle.h>
#include <string.h>

bool kp_plainname_can(void)
{
    return true;
}

char *kp_plainname(const char *mangled)
{
    char *plain = NULL;
    if (strncmp(mangled, "_R", 2) == 0 || strncmp(mangled, "_ZN", 3) == 0)
        plain = rust_demangle(mangled, 0);
    if (!plain && strncmp(mangled, "_Z", 2) == 0)
        plain = cplus_demangle_v3(mangled, DMGL_PARAMS | DMGL_TYPES);
    return plain;
}

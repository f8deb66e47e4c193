// SPDX-License-Identifier: Apache-2.0
/* plainname_none.c - stands in for plainname.c in a build without libiberty */
#include "export/show/plainname.h"

#include <stddef.h>

bool kp_plainname_can(void) { return false; }

const char *kp_plainname(const char *mangled)
{
    (void)mangled;
    return NULL;
}

const char *kp_plainname_cpp(const char *mangled)
{
    (void)mangled;
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* support.c - small helpers shared by the unit tests */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *kp_test_tmpdir(void)
{
    static char dir[256];
    const char *base = getenv("TMPDIR");
    if (dir[0]) return dir;
    snprintf(dir, sizeof dir, "%s/kprof-unit-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(dir);
}

// SPDX-License-Identifier: Apache-2.0
/* lib_builds.c - its constructor takes 100,000 blocks; half way it opens a library whose constructor takes some, too */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 100000 };

static void *volatile kept;

static void take(int blocks)
{
    for (int i = 0; i < blocks; i++) {
        kept = malloc(10);
        free(kept);
    }
}

__attribute__((constructor)) static void begin(void)
{
    char path[4096];
    Dl_info self;
    if (!dladdr((const void *)&kept, &self)) abort();
    snprintf(path, sizeof path, "%.*slibkpbuilt.so", (int)(strrchr(self.dli_fname, '/') + 1 - self.dli_fname),
             self.dli_fname);
    take(BLOCKS / 2);
    if (!dlopen(path, RTLD_NOW)) abort();
    take(BLOCKS / 2);
}

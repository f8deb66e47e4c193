// SPDX-License-Identifier: Apache-2.0
/* lib_begins_deep.c - its constructor holds the loader's lock for a while, so that our scan waits for it; then it
 * opens libkpbegins.so */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int self;

__attribute__((constructor)) static void begin(void)
{
    char path[4096];
    Dl_info info;
    if (!dladdr((const void *)&self, &info)) abort();
    snprintf(path, sizeof path, "%.*slibkpbegins.so", (int)(strrchr(info.dli_fname, '/') + 1 - info.dli_fname),
             info.dli_fname);
    usleep(200000);
    if (!dlopen(path, RTLD_NOW)) abort();
}

// SPDX-License-Identifier: Apache-2.0
/* torch_late.h - the double of torch, opened by a host as a Python import is: the loader does not see it at start-up */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/doubles/libtorch_double.h"

static void (*begin)(struct mini_range *, const char *, int);
static void (*end)(struct mini_range *);
static void (*run_out)(void);

static void *load(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libtorch_cpu.so", dir);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) puts(dlerror()), exit(99);
    begin = (void (*)(struct mini_range *, const char *, int))dlsym(handle, "mini_begin");
    end = (void (*)(struct mini_range *))dlsym(handle, "mini_end");
    run_out = (void (*)(void))dlsym(handle, "mini_run_out");
    return handle;
}

// SPDX-License-Identifier: Apache-2.0
/* lib_begun.c - defines what the constructors of libkpbegins.so call; its own constructor looks a name up half way */
#include <dlfcn.h>
#include <stdio.h>

static int calls, is_ready;

__attribute__((visibility("default"), noinline)) int begun_call(int n)
{
    if (!is_ready) printf("called before the constructor was through\n");
    calls += n;
    return calls;
}

__attribute__((constructor)) static void begin(void)
{
    if (dlsym(RTLD_DEFAULT, "no_function_of_this_name")) printf("found\n");
    is_ready = 1;
}

__attribute__((destructor)) static void end(void) { printf("%d calls\n", calls); }

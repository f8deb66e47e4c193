// SPDX-License-Identifier: Apache-2.0
/* ranged.c - two blocks in a range, three behind it, one in another */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

static void *volatile block;

static void take(int blocks)
{
    while (blocks-- > 0) block = malloc(100);
}

int main(void)
{
    int (*push)(const char *), (*pop)(void);
    *(void **)&push = dlsym(RTLD_DEFAULT, "kprof_range_push");
    *(void **)&pop = dlsym(RTLD_DEFAULT, "kprof_range_pop");
    if (!push || !pop) return 1;
    push("two");
    take(2);
    pop();
    take(3);
    push("one");
    take(1);
    pop();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* lib_mid.c - opens a library by its bare name, which only its own RUNPATH can find */
#include <dlfcn.h>
#include <stdio.h>

void mid_open(void);
void mid_open(void)
{
    for (int i = 0; i < 3; i++) {
        void *h = dlopen("libkpdeep.so", RTLD_NOW);
        int (*deep)(void) = h ? (int (*)(void))dlsym(h, "deep_answer") : NULL;
        printf("by RUNPATH: %s %d\n", h ? "found" : "NOT FOUND", deep ? deep() : -1);
        if (h) dlclose(h);
    }
}

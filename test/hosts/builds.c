// SPDX-License-Identifier: Apache-2.0
/* builds.c - opens a library whose constructor takes blocks and opens another such library: 200,002 blocks in all */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static char line[256];
    char path[4096];
    setvbuf(stdout, line, _IOFBF, sizeof line);
    if (argc < 2) return 2;
    snprintf(path, sizeof path, "%s/libkpbuilds.so", argv[1]);
    void *handle = dlopen(path, RTLD_NOW);
    printf("%s\n", handle ? "opened" : dlerror());
    return 0;
}

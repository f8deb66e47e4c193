// SPDX-License-Identifier: Apache-2.0
/* late.c - a C program that loads libtorch long after its start, hidden from the global symbols, as a plugin host
 * does */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    usleep(200 * 1000);
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    int (*run_ops)(int);
    *(void **)&run_ops = dlsym(plugin, "run_ops");
    int code = run_ops ? run_ops(atoi(argv[2])) : 4;
    puts("done");
    return code;
}

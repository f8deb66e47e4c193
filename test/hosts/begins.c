// SPDX-License-Identifier: Apache-2.0
/* begins.c - opens libraries in whose constructors another one's function is called: 4,000 times in all */
#include <dlfcn.h>
#include <stdio.h>

static void open_one(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *handle = dlopen(path, RTLD_NOW);
    printf("%s %s\n", name, handle ? "opened" : dlerror());
    if (handle) dlclose(handle);
}

int main(int argc, char **argv)
{
    static char line[4096];
    setvbuf(stdout, line, _IOFBF, sizeof line);
    if (argc < 2) return 2;
    open_one(argv[1], "libkpbegins.so");
    open_one(argv[1], "libkpbegins_lazy.so");
    open_one(argv[1], "libkpbegins.so");
    open_one(argv[1], "libkpbegins_deep.so");
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* lib_plug.c - a library that others open; it imports the loader's functions itself */
#include <dlfcn.h>
#include <stdlib.h>

static int began;
__attribute__((constructor)) static void begin(void) { began = dlsym(RTLD_DEFAULT, "getpid") != NULL; }

int plug_answer(void)
{
    void *(*look)(void *, const char *) = dlsym; /* an address taken, not only a call */
    void *h = dlopen("libresolv.so.2", RTLD_LAZY);
    int ok = began && h && look(h, "getpid");
    if (h) dlclose(h);
    return ok ? 42 : -1;
}

// SPDX-License-Identifier: Apache-2.0
/* loading.c - opens and closes libraries in all the ways the loader knows */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

void mid_open(void);

static long resident_pages(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2) return -1;
    fclose(f);
    return resident;
}

static int answer(void *handle)
{
    int (*f)(void) = handle ? (int (*)(void))dlsym(handle, "plug_answer") : NULL;
    return f ? f() : -9;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : ".";
    char plug[4096];
    snprintf(plug, sizeof plug, "%s/libkpplug.so", dir);
    const char *first = dlerror();
    printf("no error at first: %d\n", first == NULL);
    mid_open();
    printf("next behind a wrapper: %d\n", (int)getppid());
    static const int modes[] = {RTLD_NOW, RTLD_LAZY, RTLD_NOW | RTLD_GLOBAL, RTLD_LAZY | RTLD_DEEPBIND};
    for (int m = 0; m < 4; m++) {
        void *h = dlopen(plug, modes[m]);
        printf("mode %d: %d\n", m, answer(h));
        if (h) dlclose(h);
    }
    void *other = dlmopen(LM_ID_NEWLM, plug, RTLD_NOW);
    printf("own namespace: %d\n", answer(other));
    long early = 0;
    int sum = 0;
    for (int i = 0; i < 1000; i++) {
        void *h = dlopen(plug, RTLD_NOW);
        sum += answer(h);
        if (h) dlclose(h);
        if (i == 100) early = resident_pages();
    }
    printf("1000 times: %d, memory flat %d\n", sum, resident_pages() - early < 64);
    errno = EXDEV;
    void *none = dlopen("libno-such-thing.so", RTLD_NOW);
    printf("%d %s\n", none == NULL, dlerror());
    printf("%d %s\n", dlsym(RTLD_DEFAULT, "no_such_symbol") == NULL, dlerror() ? "told" : "silent");
    printf("%d\n", dlsym(RTLD_DEFAULT, "getpid") == (void *)getpid && dlerror() == NULL);
    printf("versioned %d\n", dlvsym(RTLD_DEFAULT, "getpid", "GLIBC_2.2.5") != NULL ||
                                 dlvsym(RTLD_DEFAULT, "getpid", "GLIBC_2.17") != NULL);
    printf("address of dlsym agrees %d\n", dlsym(RTLD_DEFAULT, "dlsym") != NULL);
    return 0;
}

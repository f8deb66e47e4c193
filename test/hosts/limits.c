// SPDX-License-Identifier: Apache-2.0
/* limits.c - lowers the limit its argument names, then does ordinary things */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void *body(void *arg) { return arg; }

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int what;
        rlim_t value;
    } limits[] = {
        {"nofile", RLIMIT_NOFILE, 4},   {"as", RLIMIT_AS, 64 << 20},     {"fsize", RLIMIT_FSIZE, 0},
        {"stack", RLIMIT_STACK, 65536}, {"data", RLIMIT_DATA, 16 << 20}, {"nproc", RLIMIT_NPROC, 1},
    };
    pthread_t t;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (argc > 1 && !strcmp(argv[1], limits[i].name)) {
            struct rlimit l = {limits[i].value, limits[i].value};
            printf("%s %d\n", argv[1], setrlimit(limits[i].what, &l));
        }
    void *h = dlopen("libresolv.so.2", RTLD_NOW);
    printf("symbol %d\n", h && dlsym(h, "getpid") != NULL);
    int made = pthread_create(&t, NULL, body, NULL);
    if (made == 0) pthread_join(t, NULL);
    int a = open("/dev/null", O_RDONLY), b = open("/dev/null", O_RDONLY);
    printf("descriptors %d %d\n", a, b);
    char *p = malloc(100000);
    printf("memory %d\n", p != NULL);
    return 0;
}

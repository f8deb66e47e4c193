// SPDX-License-Identifier: Apache-2.0
/* small.c - a heap with threads, libraries, signals and children in a few milliseconds, for tests that run it a
 * thousand times */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_key_t key;
static _Atomic int handled; /* by three threads at once */

static void handler(int n)
{
    (void)n;
    free(malloc(33));
    handled++;
}

static void *works(void *arg)
{
    pthread_setspecific(key, malloc(50));
    for (size_t i = 0; i < 50; i++) free(realloc(malloc(i + 1), 200));
    raise(SIGUSR1);
    return arg;
}

static void answers(int is_modest)
{
    volatile size_t huge = (size_t)-1 / 2;
    errno = EXDEV;
    char *p = calloc(10, 10);
    printf("%d %s\n", p[5], errno == EXDEV ? "errno kept" : "errno changed");
    p = realloc(p, 100000);
    if (!is_modest)
        printf("%d\n",
               malloc(huge) == NULL && errno == ENOMEM); /* a sanitizer tells of it, with its process's number */
    free(p);
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p = mremap(p, 8192, 65536, MREMAP_MAYMOVE);
    printf("%d\n", munmap(p, 65536));
}

int main(int argc, char **argv)
{
    char path[4096];
    pthread_t t[3];
    if (argc < 2) return 2;
    signal(SIGUSR1, handler);
    pthread_key_create(&key, free);
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, works, NULL);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    answers(argc > 2);
    snprintf(path, sizeof path, "%s/libkpplug.so", argv[1]);
    for (int i = 0; i < 5; i++) {
        void *h = dlopen(path, RTLD_NOW);
        printf("%d", h && dlsym(h, "plug_answer"));
        if (h) dlclose(h);
    }
    for (int i = 0; i < 3; i++) {
        fflush(stdout); /* a sanitizer writes out in its _exit what another does not */
        pid_t pid = fork();
        if (pid == 0) {
            for (int k = 0; k < 100; k++) free(malloc(100));
            if (i == 1) exit(3);
            _exit(3);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        printf(" %x", status);
    }
    printf("\nhandled %d\n", (int)handled);
    return 4;
}

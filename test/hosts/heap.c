// SPDX-License-Identifier: Apache-2.0
/* heap.c - a program whose whole life is the heap: before main, in handlers, in dying threads, across forks, at exit */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Wuse-after-free" /* a block is still there when realloc fails */
#endif

static char *from_constructor;
static pthread_key_t key;
static volatile sig_atomic_t handled;
static volatile int stop;

__attribute__((constructor)) static void early(void)
{
    from_constructor = malloc(100);
    strcpy(from_constructor, "early");
}

__attribute__((destructor)) static void late(void)
{
    char *more = realloc(from_constructor, 10000);
    free(more);
}

/* --- what each function answers, errno included --- */

static void say(const char *what, void *p)
{
    printf("%s %s errno %d\n", what, p ? "block" : "NULL", errno);
    errno = 77;
    free(p);
    if (errno != 77) printf("%s: free changed errno to %d\n", what, errno);
    errno = 0;
}

static void answers(void)
{
    volatile size_t huge = SIZE_MAX / 2, one = 1;
    void *p = NULL;
    errno = 0;
    say("malloc", malloc(one));
    say("malloc 0", malloc(0 * one));
    say("malloc too much", malloc(huge));
    say("calloc", calloc(10, one));
    say("calloc overflow", calloc(huge, 4));
    say("realloc NULL", realloc(NULL, 10 * one));
    p = malloc(10 * one);
    void *volatile more = realloc(p, huge);
    printf("realloc too much %d\n", more == NULL);
    say("realloc kept", p);
    say("reallocarray", reallocarray(NULL, 3, 4 * one));
    printf("posix_memalign bad %d\n", posix_memalign(&p, 3, 10));
    printf("posix_memalign %d\n", posix_memalign(&p, 256, 10));
    printf("aligned %d\n", (uintptr_t)p % 256 == 0);
    say("posix_memalign", p);
    say("aligned_alloc", aligned_alloc(64, 128 * one));
    say("memalign", memalign(64, 100 * one));
    say("valloc", valloc(one));
    say("strdup", strdup("text"));
    p = malloc(100 * one);
    printf("usable %d\n", malloc_usable_size(p) >= 100);
    say("usable", p);
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p = mremap(p, 8192, 65536, MREMAP_MAYMOVE);
    printf("mremap %d munmap %d\n", p != MAP_FAILED, munmap(p, 65536));
}

/* --- threads that die with blocks in their keys, on small stacks --- */

static void dying(void *block)
{
    free(block);
    char *again = strdup("again");
    free(again);
}

static void *small_thread(void *arg)
{
    char *p = malloc(50);
    pthread_setspecific(key, p);
    for (int i = 0; i < 20; i++) free(realloc(malloc((size_t)i + 1), 200));
    return arg;
}

/* A program that has no room for a thread would hang below for its signals: it says so and ends. */
static void begin(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    if (pthread_create(t, attr, run, arg) == 0) return;
    printf("no thread\n");
    exit(9);
}

static void threads(void)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384);
    pthread_key_create(&key, dying);
    for (int i = 0; i < 50; i++) {
        pthread_t t[8];
        for (int k = 0; k < 8; k++) begin(&t[k], &attr, small_thread, NULL);
        for (int k = 0; k < 8; k++) pthread_join(t[k], NULL);
    }
    printf("400 threads\n");
}

/* --- signals: the handler allocates. With a lock-free allocator it may strike anywhere. --- */

static void handler(int n)
{
    (void)n;
    free(malloc(33));
    handled++;
}

static long most =
    LONG_MAX; /* blocks of a loop whose length is a matter of time: an allocator that gives none again has not more */

static void *spins(void *arg)
{
    for (long left = most; !stop;)
        if (arg && left-- > 0) free(malloc(77));
    return NULL;
}

static void signals(int in_allocator)
{
    sigset_t alarm_set;
    struct itimerval timer = {{0, 500}, {0, 500}}, none = {{0, 0}, {0, 0}};
    pthread_t t;
    signal(SIGALRM, handler);
    begin(&t, NULL, spins, in_allocator ? (void *)1 : NULL);
    sigemptyset(&alarm_set);
    sigaddset(&alarm_set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_set, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (long left = most; handled < 300;)
        if (left-- > 0) free(malloc(44));
    setitimer(ITIMER_REAL, &none, NULL);
    stop = 1;
    pthread_join(t, NULL);
    printf("300 signals\n");
}

/* --- children, while another thread allocates --- */

static void forks(void)
{
    pthread_t t;
    int sum = 0;
    stop = 0;
    begin(&t, NULL, spins, (void *)1);
    for (int i = 0; i < 20; i++) {
        char *before = strdup("before");
        pid_t pid = fork();
        if (pid == 0) {
            free(before);
            for (int k = 0; k < 100; k++) free(malloc(1000));
            if (i % 2) exit(3);
            _exit(3);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        sum += WIFEXITED(status) ? WEXITSTATUS(status) : -1000;
        free(before);
    }
    stop = 1;
    pthread_join(t, NULL);
    printf("20 children, sum %d\n", sum);
}

/* --- libraries come and go --- */

static void loads(const char *folder)
{
    char path[4096];
    int sum = 0;
    snprintf(path, sizeof path, "%s/libkpplug.so", folder);
    for (int i = 0; i < 200; i++) {
        void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        sum += h != NULL;
        if (h) dlsym(h, "nothing_of_that_name");
        if (h) dlerror();
        if (h) dlclose(h);
    }
    printf("%d loads\n", sum);
}

/* --- more threads than processors, each as fast as it can --- */

static void *hurries(void *arg)
{
    for (int i = 0; i < 50000; i++) free(malloc(32));
    return arg;
}

static int rush(void)
{
    pthread_t t[16];
    for (int i = 0; i < 16; i++) begin(&t[i], NULL, hurries, NULL);
    for (int i = 0; i < 16; i++) pthread_join(t[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    static char line[65536];
    setvbuf(stdout, line, _IOFBF, sizeof line);
    if (argc < 3) return 2;
    if (!strcmp(argv[2], "rush")) return rush();
    if (fork() == 0) _exit(0);
    wait(NULL);
    answers();
    threads();
    if (!strcmp(argv[2], "lock_free")) most = 2000000;
    if (most < LONG_MAX) signals(1);
    else signals(0);
    forks();
    loads(argv[1]);
    printf("%s\n", from_constructor);
    return 0;
}

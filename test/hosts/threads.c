// SPDX-License-Identifier: Apache-2.0
/* threads.c - 10,000 threads, 250 at a time, and 200 with the smallest stack that use the loader */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static long sum;
static void *count(void *arg)
{
    __atomic_fetch_add(&sum, (long)arg, __ATOMIC_RELAXED);
    return NULL;
}
static void *load(void *arg)
{
    void *h = dlopen("libresolv.so.2", RTLD_LAZY);
    (void)arg;
    if (h && dlsym(h, "getpid")) __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
    if (h) dlclose(h);
    return NULL;
}

static void run(void *(*body)(void *), long threads, long together, size_t stack)
{
    pthread_t t[250];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, stack)) puts("no such stack");
    for (long done = 0; done < threads; done += together) {
        long made = 0;
        for (; made < together; made++)
            if (pthread_create(&t[made], &attr, body, (void *)(done + made))) puts("no thread");
        for (long i = 0; i < made; i++) pthread_join(t[i], NULL);
    }
}

int main(void)
{
    run(count, 10000, 250, 65536);
    printf("sum %ld\n", sum);
    sum = 0;
    run(load, 200, 2, 16384);
    printf("loads %ld\n", sum);
    return 0;
}

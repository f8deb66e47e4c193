// SPDX-License-Identifier: Apache-2.0
/*
 * holds.c - a thread that holds the loader's lock takes blocks, and others run ops: who looks for new libraries waits
 * for that lock, and neither may wait for it
 *
 * usage: holds FOLDER BLOCKS MILLISECONDS OPS
 * The constructor of libkpholds.so takes the blocks and stays for so long; two threads run OPS ops each meanwhile, at
 * most 500,000 a second.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "test/doubles/libtorch_double.h"

enum { OPS_AT_ONCE = 500, AT_ONCE_NS = 1000000, THREADS = 2 };

static void (*begin)(struct mini_range *, const char *, int);
static void (*end)(struct mini_range *);
static long ops;

static void *load(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) exit(99);
    return handle;
}

static void *runs_ops(void *unused)
{
    const struct timespec rest = {.tv_nsec = AT_ONCE_NS}; /* from now on: a late thread does not hurry after it */
    struct mini_range r;
    for (long i = 0; i < ops; i++) {
        begin(&r, "aten::add", 0);
        end(&r);
        if (i % OPS_AT_ONCE == 0) nanosleep(&rest, NULL);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc < 5) return 2;
    void *torch = load(argv[1], "libtorch_cpu.so");
    begin = (void (*)(struct mini_range *, const char *, int))dlsym(torch, "mini_begin");
    end = (void (*)(struct mini_range *))dlsym(torch, "mini_end");
    setenv("HOLDS_BLOCKS", argv[2], 1);
    setenv("HOLDS_MS", argv[3], 1);
    ops = atol(argv[4]);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, runs_ops, NULL);
    load(argv[1], "libkpholds.so");
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    puts("bye");
    return 0;
}

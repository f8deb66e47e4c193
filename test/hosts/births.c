// SPDX-License-Identifier: Apache-2.0
/* births.c - threads whose signal handler leaves their first torch op by siglongjmp; afterwards each runs 10 ops
 * aten::after
 *
 * usage: births FOLDER_OF_LIBTORCH THREADS
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void (*op)(const char *);
static _Thread_local sigjmp_buf back;
static _Thread_local volatile sig_atomic_t may_jump;
static atomic_bool is_up, is_over;

static void leave(int signal)
{
    (void)signal;
    if (!may_jump) return;
    may_jump = 0;
    siglongjmp(back, 1);
}

/* The op's thread-local storage is allocated by its first call. A jump out of malloc would leave a lock of the arena,
 * without us, too; what lies in the thread's cache needs none. */
static void cache_fill(void)
{
    for (size_t bytes = 8; bytes <= 512; bytes += 16) {
        void *volatile block = malloc(bytes);
        free(block);
    }
}

static void *run(void *unused)
{
    (void)unused;
    cache_fill();
    if (!sigsetjmp(back, 1)) {
        may_jump = 1;
        is_up = true;
        op("aten::before");
        op("aten::before");
    }
    may_jump = 0;
    for (int i = 0; i < 10; i++) op("aten::after");
    is_over = true;
    while (is_over) sched_yield(); /* the signal may be on its way */
    return NULL;
}

int main(int argc, char **argv)
{
    char path[4096];
    const struct sigaction action = {.sa_handler = leave};
    if (argc < 3) return 99;
    snprintf(path, sizeof path, "%s/libtorch_cpu.so", argv[1]);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) return 98;
    op = (void (*)(const char *))dlsym(handle, "mini_op");
    op("aten::first");
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < atoi(argv[2]); i++) {
        pthread_t t;
        is_up = is_over = false;
        if (pthread_create(&t, NULL, run, NULL) != 0) return 97;
        for (long spins = 0; !is_up; spins++)
            if (spins > 100000) sched_yield(); /* one processor for both */
        for (volatile int wait = 0; wait < i * 37 % 6000; wait++) {}
        pthread_kill(t, SIGUSR1);
        while (!is_over) sched_yield();
        is_over = false;
        pthread_join(t, NULL);
    }
    puts("done");
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* jumps.c - threads whose signal handler leaves by siglongjmp, wherever it strikes: in a torch op, in malloc (which has
 * no lock here), in a profiler
 *
 * usage: jumps FOLDER_OF_LIBTORCH own|altstack [JUMPS [ROUNDS]]    Afterwards each thread runs 1000 ops aten::after and
 * takes 1000 blocks. How much a machine does between two signals depends on its load: a thread works UNSTRUCK turns at
 * most, and waits for the next then, so that what it records stays within what a profiler has room for. siglongjmp lets
 * the next signal in before it has left the signal's stack: only NESTED may be on their way, or that stack is full.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { THREADS = 2, AFTER = 1000, SIGNAL_STACK = 65536, UNSTRUCK = 4, NESTED = 4 };

static void (*op)(const char *);
static bool on_own_stack;
static long jumps_wanted = 1000;
static _Thread_local sigjmp_buf back;
static atomic_long jumps[THREADS];
static atomic_bool is_ready[THREADS], is_over[THREADS];
static atomic_int sent[THREADS]; /* since the thread was last off that stack */
static _Thread_local int self = -1;

static void leave(int signal)
{
    (void)signal;
    if (self >= 0 && is_ready[self]) siglongjmp(back, 1);
    if (self >= 0) sent[self] = 0;
}

static __attribute__((noinline)) void use(volatile char *block)
{
    if (block) block[0] = 1;
}

static __attribute__((noinline)) int work(long depth)
{
    volatile char room[200];
    room[depth] = 1;
    if (depth) return work(depth - 1) + room[depth];
    for (int i = 0; i < 50; i++) {
        void *block = malloc(40);
        use(block);
        op("aten::before");
        free(block);
    }
    return 1;
}

static void *run(void *arg)
{
    static char stacks[THREADS][SIGNAL_STACK];
    self = (int)(long)arg;
    const stack_t other = {.ss_sp = stacks[self], .ss_size = SIGNAL_STACK};
    if (!on_own_stack) sigaltstack(&other, NULL);
    work(3);
    if (sigsetjmp(back, 1)) {
        jumps[self]++;
        sent[self] = 0;
    }
    is_ready[self] = true;
    sent[self] = 0; /* those that came before this thread knew itself */
    for (int turns = 0; jumps[self] < jumps_wanted; turns++) {
        if (turns < UNSTRUCK) work(jumps[self] % 7);
        else usleep(1000);
    }
    is_ready[self] = false;
    for (int i = 0; i < AFTER; i++) {
        void *block = malloc(24);
        use(block);
        op("aten::after");
        free(block);
    }
    is_over[self] = true;
    for (int i = 0; i < 4000 && is_over[self]; i++) usleep(1000); /* signals may be on their way */
    return NULL;
}

static void round_of_threads(void)
{
    pthread_t t[THREADS];
    unsigned naps = 0;
    for (long i = 0; i < THREADS; i++) {
        jumps[i] = is_over[i] = is_ready[i] = sent[i] = 0;
        pthread_create(&t[i], NULL, run, (void *)i);
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (int i = 0; i < THREADS; i++) {
            if (is_over[i]) continue;
            if (sent[i]++ < NESTED) pthread_kill(t[i], SIGUSR1);
            goes_on = true;
        }
        usleep(naps++ % 40);
    }
    for (int i = 0; i < THREADS; i++) {
        is_over[i] = false;
        pthread_join(t[i], NULL);
    }
}

/* A dlopen on a busy machine may go on before the profiler has attached: its run is told by its settings. */
static void await_watcher(int (*is_watched)(void))
{
    for (int ms = 0; getenv("KPROF_MALLOC") && !is_watched() && ms < 60000; ms++) usleep(1000);
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc < 3) return 99;
    snprintf(path, sizeof path, "%s/libtorch_cpu.so", argv[1]);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) return 98;
    op = (void (*)(const char *))dlsym(handle, "mini_op");
    await_watcher((int (*)(void))dlsym(handle, "mini_is_watched"));
    on_own_stack = !strcmp(argv[2], "own");
    if (argc > 3) jumps_wanted = atol(argv[3]);
    struct sigaction a = {.sa_handler = leave, .sa_flags = on_own_stack ? 0 : SA_ONSTACK};
    sigaction(SIGUSR1, &a, NULL);
    for (long rounds = argc > 4 ? atol(argv[4]) : 1; rounds > 0; rounds--) round_of_threads();
    puts("done");
    return 0;
}

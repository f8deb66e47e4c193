// SPDX-License-Identifier: Apache-2.0
/* ending.c - ends in the way its argument says */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void first(void) { puts("registered first"); }
static void second(void) { puts("registered second"); }
static void quick(void) { write(1, "quick\n", 6); }
__attribute__((destructor)) static void last(void) { puts("destructor"); }
static void *leaves(void *arg) { exit((int)(long)arg); }
static void *stays(void *arg)
{
    sleep(1);
    puts("the last thread");
    return arg;
}
static void *cancelled(void *arg)
{
    for (;;) pause();
    return arg;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    pthread_t t;
    atexit(first);
    atexit(second);
    at_quick_exit(quick);
    puts("begins");
    fflush(stdout);
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "_exit")) _exit(4);
    if (!strcmp(how, "quick_exit")) quick_exit(5);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "segv")) raise(SIGSEGV);
    if (!strcmp(how, "fault")) *(volatile int *)8 = 1;
    if (!strcmp(how, "term")) kill(getpid(), SIGTERM);
    if (!strcmp(how, "waited")) {
        sigset_t term;
        int number;
        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        sigprocmask(SIG_BLOCK, &term, NULL);
        kill(getpid(), SIGTERM);
        sigwait(&term, &number);
        printf("waited for %d\n", number);
    }
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "pipe")) raise(SIGPIPE);
    if (!strcmp(how, "thread")) pthread_create(&t, NULL, leaves, (void *)6), pause();
    if (!strcmp(how, "main_leaves")) pthread_create(&t, NULL, stays, NULL), pthread_exit(NULL);
    if (!strcmp(how, "cancel")) {
        void *result;
        pthread_create(&t, NULL, cancelled, NULL);
        pthread_cancel(t);
        pthread_join(t, &result);
        printf("cancelled %d\n", result == PTHREAD_CANCELED);
    }
    return 2;
}

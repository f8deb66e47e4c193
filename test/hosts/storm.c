// SPDX-License-Identifier: Apache-2.0
/* storm.c - a signal every 100 us, its handler touches errno, while libraries come and go */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile sig_atomic_t hits;
static void on_signal(int s)
{
    (void)s;
    errno = EXDEV;
    hits++;
}

int main(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 100}, {0, 100}};
    int ok = 0;
    sigaction(SIGALRM, &a, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 3000; i++) {
        void *h = dlopen("libresolv.so.2", RTLD_NOW);
        ok += h && dlsym(h, "getpid");
        dlclose(h);
    }
    every = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    printf("loads %d, signals came %d\n", ok, hits > 0);
    return 0;
}

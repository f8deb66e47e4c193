// SPDX-License-Identifier: Apache-2.0
/* cleaks.c - a library whose functions leave a block: on the caller's thread, on a thread of its own, in a handler */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static void *volatile kept[3];

void leak_here(long bytes) { kept[0] = malloc((size_t)bytes); }

static void *leak_there(void *bytes)
{
    kept[1] = malloc((size_t)bytes);
    return NULL;
}

void leak_on_thread(long bytes)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, leak_there, (void *)bytes) == 0) pthread_join(thread, NULL);
}

static void on_signal(int number)
{
    (void)number;
    kept[2] = malloc(345678);
}

void leak_in_handler(void)
{
    signal(SIGUSR2, on_signal);
    raise(SIGUSR2);
}

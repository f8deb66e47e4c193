// SPDX-License-Identifier: Apache-2.0
/* cancels.c - cancels threads that look up symbols while others load libraries */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *looks(void *arg)
{
    for (;;) {
        dlsym(RTLD_DEFAULT, "getpid");
        pthread_testcancel();
    }
    return arg;
}
static void *loads(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) dlclose(dlopen("libresolv.so.2", RTLD_NOW));
    return NULL;
}

int main(void)
{
    int stop = 0, cancelled = 0;
    pthread_t loader, t;
    pthread_create(&loader, NULL, loads, &stop);
    for (int i = 0; i < 100; i++) {
        void *result = NULL;
        pthread_create(&t, NULL, looks, NULL);
        usleep(500);
        pthread_cancel(t);
        pthread_join(t, &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(loader, NULL);
    printf("cancelled %d\n", cancelled);
    return 0;
}

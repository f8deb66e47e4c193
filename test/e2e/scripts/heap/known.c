// SPDX-License-Identifier: Apache-2.0
/* known.c - allocations whose number, peak and leaks are known: 1 of stdio, 1000 that go at once, 10 that stay, a peak
 * of 1 MB */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *kept[10];

static __attribute__((noinline)) void churns(void)
{
    for (int i = 0; i < 1000; i++) {
        char *volatile p = malloc(100);
        free(p);
    }
}

static __attribute__((noinline)) void leaks(void)
{
    for (int i = 0; i < 10; i++) kept[i] = calloc(1, 1000);
    kept[9] = realloc(kept[9], 3000);
}

static __attribute__((noinline)) void peaks(void)
{
    char *big[4];
    for (int i = 0; i < 4; i++) memset(big[i] = malloc(1 << 18), 1, 1 << 18);
    for (int i = 0; i < 4; i++) free(big[i]);
}

int main(int argc, char **argv)
{
    churns();
    leaks();
    peaks();
    printf("%s\n", strdup("done") ? "done" : "none");
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "waits")) pause();
    return 0;
}

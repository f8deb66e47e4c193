// SPDX-License-Identifier: Apache-2.0
/* lib_holds.c - its constructor takes HOLDS_BLOCKS blocks and stays for HOLDS_MS: so long the loader's lock is held */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AT_ONCE = 1000 };

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static long passed_ms(const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000;
}

/* By strdup, as constructors take most of theirs by operator new: libc calls malloc, not this library. */
__attribute__((constructor)) static void begin(void)
{
    static char *kept[AT_ONCE];
    struct timespec since;
    const long blocks = number("HOLDS_BLOCKS"), ms = number("HOLDS_MS");
    clock_gettime(CLOCK_MONOTONIC, &since);
    while (passed_ms(&since) < ms / 4) usleep(1000); /* whoever looks for new libraries has met this one */
    for (long i = 0; i < blocks; i++) {
        free(kept[i % AT_ONCE]);
        kept[i % AT_ONCE] = strdup("a block of a constructor");
    }
    for (int i = 0; i < AT_ONCE; i++) free(kept[i]);
    while (passed_ms(&since) < ms) usleep(1000);
}

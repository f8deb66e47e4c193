// SPDX-License-Identifier: Apache-2.0
/* bench_heap.c - pairs of malloc and free as fast as they go: ns of processor time a pair, of the best of several
 * rounds
 *
 * usage: bench_heap PAIRS [DEPTH]    DEPTH: frames of C between main and malloc (default 1)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 7, KEPT = 64 };

static void *kept[KEPT];

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Some blocks live for a while, so that it is not one address that goes round. */
static __attribute__((noinline)) void pairs(long n)
{
    for (long i = 0; i < n; i++) {
        void **slot = &kept[i % KEPT];
        free(*slot);
        *slot = malloc(16 + (size_t)(i * 37 % 400));
    }
}

static __attribute__((noinline)) int deeper(long n, int depth)
{
    volatile int below = 0; /* a frame of its own */
    if (depth > 1) below = deeper(n, depth - 1);
    else pairs(n);
    return below + 1;
}

int main(int argc, char **argv)
{
    const long n = argc > 1 ? atol(argv[1]) : 1000000;
    const int depth = argc > 2 ? atoi(argv[2]) : 1;
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now_ns();
        deeper(n / ROUNDS, depth);
        const double took = now_ns() - begin;
        if (took < best) best = took;
    }
    printf("%.2f\n", best / ((double)n / ROUNDS));
    return 0;
}

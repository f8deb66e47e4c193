// SPDX-License-Identifier: Apache-2.0
/* bench_symbols.c - calls of a function through the PLT as fast as they go: ns of processor time a call, of the best of
 * several rounds
 *
 * usage: bench_symbols CALLS [many]        the function is zlibVersion: another library's, and nothing but a return
 *                                          many: six such functions, from 24 places in no order, as a processor has to
 *                                          guess in a program
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zlib.h>

enum { ROUNDS = 9, PLACES = 24 };

#define V (unsigned long)(size_t)zlibVersion()
#define F zlibCompileFlags()
#define T (unsigned long)(size_t)get_crc_table()
#define E (unsigned long)(size_t)zError(0)
#define C crc32(0, NULL, 0)
#define A adler32(0, NULL, 0)

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static unsigned long one(long n)
{
    unsigned long sum = 0;
    for (long i = 0; i < n; i++) sum += V;
    return sum;
}

static unsigned long many(long n)
{
    unsigned long sum = 0;
    for (long i = 0; i < n; i += PLACES)
        sum += V + C + T + T + A + E + F + V + E + C + A + F + T + C + V + V + F + A + E + T + C + A + F + E;
    return sum;
}

int main(int argc, char **argv)
{
    const long n = (argc > 1 ? atol(argv[1]) : 900000) / ROUNDS / PLACES * PLACES;
    double best = 1e18;
    unsigned long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now_ns();
        sum += argc > 2 ? many(n) : one(n);
        const double took = now_ns() - begin;
        if (took < best) best = took;
    }
    printf("%.2f\n", best / (double)n);
    return sum == 1;
}

// SPDX-License-Identifier: Apache-2.0
/* lib_calls.c - functions that calls.cc calls through words: every way of taking and giving values, of leaving, of
 * coming back */
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

struct small {
    long a;
    double b;
};
struct large {
    long a[9];
};

double calls_sum(int n, ...)
{
    va_list args;
    double sum = 0;
    va_start(args, n);
    for (int i = 0; i < n; i++) sum += i % 2 ? va_arg(args, int) : va_arg(args, double);
    va_end(args);
    return sum;
}

double calls_many(double a, double b, double c, double d, double e, double f, double g, double h, double on_stack,
                  long i, long j, long k, long l, long m, long n, long also_on_stack)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * on_stack +
           (double)(i + 2 * j + 3 * k + 4 * l + 5 * m + 6 * n + 7 * also_on_stack);
}

long double calls_long(long double a, int b) { return a * b + 0.25L; }
double complex calls_complex(double complex a) { return a * a; }
long double complex calls_long_complex(long double complex a) { return a * 2; }
__int128 calls_wide(__int128 a, int b) { return a * b; }
struct small calls_small(struct small s, long add) { return (struct small){s.a + add, s.b * 2}; }

struct large calls_large(struct large s, int by)
{
    for (int i = 0; i < 9; i++) s.a[i] = s.a[i] * by + i;
    return s;
}

#ifdef __x86_64__
__attribute__((target("avx"))) __m256d calls_avx(__m256d a, __m256d b) { return _mm256_add_pd(_mm256_mul_pd(a, b), a); }
__attribute__((target("avx512f"))) __m512d calls_avx512(__m512d a, __m512d b)
{
    return _mm512_add_pd(_mm512_mul_pd(a, b), a);
}
__asm__(".text\n.globl calls_keeps\n.type calls_keeps, @function\ncalls_keeps: leaq 1(%rdi), %rax\n ret\n.size "
        "calls_keeps, . - calls_keeps\n");
#endif

long calls_deep(long depth, long (*again)(long)) { return depth ? again(depth - 1) + 1 : 0; }
void calls_back(void (*fn)(void *), void *arg) { fn(arg); }
long calls_tail(long n, long (*next)(long)) { return next(n + 1); }
void calls_jump(jmp_buf where, int value) { longjmp(where, value); }
int calls_compare(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}
int calls_plain(int n) { return n + 1; }

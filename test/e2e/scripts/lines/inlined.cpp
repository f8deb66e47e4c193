// SPDX-License-Identifier: Apache-2.0
// inlined.cpp - leaks in functions, in functions inlined three deep, in a lambda, and in a library's function with no lines
#include "inlined.h"

static void *volatile kept;

static __attribute__((always_inline)) inline void inner(int n)
{
    shapes::Box<long> box(n);
    kept = box.of;
}

__attribute__((noinline)) void outer(int n)
{
    inner(n);
    if (n > 5)
        inner(n + 1);
    asm volatile("");
}

namespace {
struct Hidden {
    __attribute__((noinline)) void run(int n)
    {
        outer(n);
        asm volatile("");
    }
};
}

static __attribute__((noinline)) int deeper(int n)
{
    if (n == 0)
        kept = calloc(3, 7);
    else
        deeper(n - 1);
    asm volatile("");
    return n;
}

int main()
{
    Hidden hidden;
    hidden.run(10);
    auto lambda = [](int n) __attribute__((noinline)) {
        kept = malloc(n);
        asm volatile("");
    };
    lambda(77);
    return deeper(3) - 3;
}

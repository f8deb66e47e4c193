// SPDX-License-Identifier: Apache-2.0
/* own_malloc.c - has an allocator of its own and counts who calls it */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <pthread.h>
#include <dlfcn.h>

static _Alignas(16) char room[1 << 24];
static size_t used, calls, frees;

void *malloc(size_t n)
{
    size_t at = __atomic_fetch_add(&used, (n + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    if (at + n + 32 > sizeof room) return NULL;
    memcpy(room + at, &n, sizeof n);
    return room + at + 16;
}
void free(void *p)
{
    if (p) __atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED);
}
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n)
{
    size_t old = 0;
    void *q = malloc(n);
    if (p) memcpy(&old, (char *)p - 16, sizeof old);
    if (p && q) memcpy(q, p, old < n ? old : n);
    return q;
}

static void *body(void *arg) { return arg; }

int main(void)
{
    size_t before_main = calls;
    pthread_t t;
    pthread_create(&t, NULL, body, NULL);
    pthread_join(t, NULL);
    printf("calls before main %zu, then %zu, frees %zu\n", before_main, calls - before_main, frees);
    return 0;
}

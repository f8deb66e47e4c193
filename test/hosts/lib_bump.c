// SPDX-License-Identifier: Apache-2.0
/* lib_bump.c - an allocator without a lock: a thread's next block lies behind the last, nothing is used again */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { ROOM = 1 << 30 };
static char *_Atomic base;
static size_t used;

static char *room(void)
{
    char *none = NULL, *now = base;
    if (now) return now;
    now = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!__atomic_compare_exchange_n(&base, &none, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        munmap(now, ROOM);
        now = none;
    }
    return now;
}

void *aligned_alloc(size_t align, size_t n)
{
    if (align < 16) align = 16;
    const size_t whole = n + align + 16;
    if (n > ROOM) goto full;
    size_t at = __atomic_fetch_add(&used, (whole + 15) & ~(size_t)15, __ATOMIC_RELAXED);
    if (at + whole > ROOM) goto full;
    char *p = room() + at + 16;
    p += (align - (uintptr_t)p % align) % align;
    memcpy(p - 16, &n, sizeof n);
    return p;
full:
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t n) { return aligned_alloc(16, n); }
void *memalign(size_t align, size_t n) { return aligned_alloc(align, n); }
void *valloc(size_t n) { return aligned_alloc(4096, n); }
void free(void *p) { (void)p; }
size_t malloc_usable_size(void *p)
{
    size_t n = 0;
    if (p) memcpy(&n, (char *)p - 16, sizeof n);
    return n;
}
void *calloc(size_t n, size_t each)
{
    if (each && n > ROOM / each) {
        errno = ENOMEM;
        return NULL;
    }
    return malloc(n * each);
}
void *realloc(void *old, size_t n)
{
    void *p = malloc(n);
    size_t had = malloc_usable_size(old);
    if (p && old) memcpy(p, old, had < n ? had : n);
    return p;
}
int posix_memalign(void **out, size_t align, size_t n)
{
    if (align % sizeof(void *) || (align & (align - 1))) return EINVAL;
    *out = aligned_alloc(align, n);
    return *out ? 0 : ENOMEM;
}

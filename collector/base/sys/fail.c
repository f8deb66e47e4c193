// SPDX-License-Identifier: Apache-2.0
/*
 * fail.c - makes a chosen call fail, for tests, and counts the calls
 *
 * Called by: io_*.c, arena.c and callers of libc functions that may fail, before the call. Any thread, also hooks.
 * Owns:      the list of failures and the file of counts; both are empty outside tests
 * Locks:     none. A call costs a load if KPROF_TEST_FAIL is not set.
 * On fail:   a bad specification, or a file that cannot be mapped, makes no call fail
 * Safe in:   signal handlers yes; after fork yes (a child goes on counting)
 */
#include "collector/base/sys/kp_fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/kp_poison.h"

enum { FAILURES = 8, NAME = 24, POINTS = 64, TALLY_BYTES = 4096 };

/* Every call of the library that may fail, with its usual error. */
static const struct point {
    char name[NAME];
    int error;
} points[] = {
    {"open", EMFILE},      {"close", EIO},      {"read", EIO},        {"pread", EIO},          {"write", ENOSPC},
    {"fallocate", ENOSPC}, {"truncate", EIO},   {"fsync", EIO},       {"rename", EIO},         {"unlink", EACCES},
    {"mkdir", EACCES},     {"stat", EACCES},    {"access", EACCES},   {"list", EIO},           {"readlink", EACCES},
    {"getcwd", ENOENT},    {"uname", EPERM},    {"dup", EMFILE},      {"punch", EOPNOTSUPP},   {"terminal", ENOTTY},
    {"lock", ENOLCK},      {"give", EPERM},     {"seek", EINVAL},     {"mmap", ENOMEM},        {"munmap", ENOMEM},
    {"mremap", ENOMEM},    {"madvise", ENOMEM}, {"mprotect", ENOMEM}, {"populate", ENOMEM},    {"wipeonfork", EINVAL},
    {"peek", EPERM},       {"arena", ENOMEM},   {"heap", ENOMEM},     {"limit", EPERM},        {"mlock", ENOMEM},
    {"thread", EAGAIN},    {"atfork", ENOMEM},  {"key", EAGAIN},      {"atexit", ENOMEM},      {"wait", ENOSYS},
    {"wake", ENOSYS},      {"nap", EINTR},      {"barrier", EPERM},   {"kill", EPERM},         {"prctl", EPERM},
    {"nice", EACCES},      {"mask", EPERM},     {"altstack", EPERM},  {"socket", EMFILE},      {"bind", EACCES},
    {"accept", EMFILE},    {"poll", ENOMEM},    {"handler", EINVAL},  {"threadclock", EINVAL}, {"usage", EPERM},
    {"connect", EACCES},   {"pwrite", ENOSPC},  {"memfd", ENOSYS},    {"statfs", EACCES},      {"shm", ENOSPC},
    {"clone", EAGAIN},
};
enum { KNOWN = sizeof points / sizeof *points };

/* The file of counts. test/hosts/faults.py has the same layout. */
struct tally {
    _Atomic uint64_t total;
    _Atomic uint64_t failed; /* number of the last call that was made to fail, or 0 */
    _Atomic uint64_t which;  /* its row */
    uint64_t rows;
    struct {
        char name[NAME];
        _Atomic uint64_t calls;
    } of[POINTS];
};
_Static_assert((int)KNOWN <= (int)POINTS && sizeof(struct tally) <= (size_t)TALLY_BYTES, "the file of counts");

struct failure {
    char name[NAME];
    uint64_t from, to; /* numbers of the calls that fail */
    int error;         /* 0: the call's usual error */
    bool is_any;
    _Atomic uint64_t calls;
};
static struct failure failures[FAILURES];
static _Atomic unsigned failure_count;
static struct tally own_tally, *_Atomic tally = &own_tally;

static const char *number_parse(const char *p, uint64_t *out)
{
    if (*p < '0' || *p > '9') return NULL;
    *out = kp_digits_read(&p);
    return p;
}

static void tally_map(const char *path, size_t n)
{
    char name[1024];
    struct stat st;
    if (n >= sizeof name) return;
    memcpy(name, path, n);
    name[n] = '\0';
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *at = MAP_FAILED;
    if (syscall(SYS_fstat, fd, &st) == 0 && st.st_size >= TALLY_BYTES)
        at = mmap(NULL, TALLY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return;
    struct tally *t = at;
    for (size_t i = 0; i < KNOWN; i++) memcpy(t->of[i].name, points[i].name, NAME);
    t->rows = KNOWN;
    kp_store_release(&tally, t); /* pairs with: kp_fail_point */
}

/* Parses a "name:N[+][:errno]". Returns its end, or NULL when it is malformed. */
static const char *failure_parse(const char *p, struct failure *f)
{
    uint64_t error = 0;
    size_t n = strcspn(p, ":,");
    if (n == 0 || n >= sizeof f->name || p[n] != ':') return NULL;
    memcpy(f->name, p, n);
    f->name[n] = '\0';
    f->is_any = strcmp(f->name, "any") == 0;
    p = number_parse(p + n + 1, &f->from);
    if (p == NULL) return NULL;
    f->to = f->from;
    if (*p == '+') f->to = UINT64_MAX, p++;
    if (!f->is_any) error = ENOSPC;
    if (*p == ':') p = number_parse(p + 1, &error);
    f->error = (int)error;
    kp_store_relaxed(&f->calls, 0);
    return p;
}

void kp_fail_set(const char *spec)
{
    unsigned n = 0;
    kp_store_release(&failure_count, 0);
    kp_store_relaxed(&own_tally.total, 0);
    while (spec && *spec && n < FAILURES) {
        const char *end;
        if (strncmp(spec, "in:", 3) == 0) {
            end = spec + strcspn(spec, ",");
            tally_map(spec + 3, (size_t)(end - spec) - 3);
            memset(&failures[n], 0, sizeof failures[n]); /* makes no call fail */
            memcpy(failures[n].name, "in", 3);
        } else {
            end = failure_parse(spec, &failures[n]);
        }
        if (end == NULL || (*end && *end != ',')) break;
        n++;
        spec = *end ? end + 1 : end;
    }
    /* pairs with: fail.c:kp_fail_point */
    kp_store_release(&failure_count, n);
}

static int point_find(const char *name)
{
    for (int i = 0; i < (int)KNOWN; i++)
        if (strcmp(points[i].name, name) == 0) return i;
    return -1;
}

int kp_fail_point(const char *name)
{
    unsigned n = kp_load_acquire(&failure_count); /* pairs with: fail.c:kp_fail_set */
    if (__builtin_expect(n == 0, 1)) return 0;
    struct tally *t = kp_load_acquire(&tally); /* pairs with: fail.c:tally_map */
    const int row = point_find(name);          /* -1: no call, but a switch for a test (python_find.c) */
    const uint64_t all = row < 0 ? 0 : kp_add_relaxed(&t->total, 1) + 1;
    const uint64_t of_name = row < 0 ? 0 : kp_add_relaxed(&t->of[row].calls, 1) + 1;
    for (unsigned i = 0; i < n; i++) {
        struct failure *f = &failures[i];
        if (f->is_any ? row < 0 : strcmp(f->name, name) != 0) continue;
        const uint64_t own = kp_add_relaxed(&f->calls, 1) + 1;
        const uint64_t call = f->is_any ? all : of_name && t != &own_tally ? of_name : own;
        if (call < f->from || call > f->to) continue;
        kp_store_relaxed(&t->which, (uint64_t)(uint32_t)row);
        kp_store_relaxed(&t->failed, all ? all : call);
        return -(f->error || row < 0 ? f->error : points[row].error);
    }
    return 0;
}

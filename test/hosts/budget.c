// SPDX-License-Identifier: Apache-2.0
/*
 * budget.c - limits its own memory, then asks for the most of what it left itself
 *
 * usage: budget FOLDER WHAT [MB]
 * as: addresses, to so many MB; as_late: after it has worked for a while; locks: locks its memory, as an ordinary user,
 * with a limit of 8 MB; locks_now: what it has so far alone; locks_next: only what comes; locks_touched: each page when
 * it is touched
 */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/hosts/torch_late.h"

static void work(int n)
{
    struct mini_range r;
    for (int i = 0; i < n; i++) {
        if (begin) begin(&r, "aten::add", 0);
        free(malloc((size_t)(i % 1000) + 1));
        if (begin) end(&r);
        if (i % 1000 == 0) usleep(1000);
    }
}

static int can_map(size_t bytes, int is_kept)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED && !is_kept) munmap(p, bytes);
    return p != MAP_FAILED;
}

static void limit_addresses(size_t mb)
{
    struct rlimit limit = {mb << 20, mb << 20};
    printf("limited %d\n", setrlimit(RLIMIT_AS, &limit));
}

static long locked_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmLck:", 6) == 0) kb = atol(line + 6);
    if (f) fclose(f);
    return kb;
}

static void lock_memory(int flags)
{
    struct rlimit limit;
    if (geteuid() == 0 &&
        (setgroups(0, NULL) != 0 || setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
        exit(98);
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur > (rlim_t)8 << 20) limit.rlim_cur = (rlim_t)8 << 20;
    if (limit.rlim_cur == (rlim_t)8 << 20) setrlimit(RLIMIT_MEMLOCK, &limit);
    printf("locked %d\n", mlockall(flags));
    long kb = locked_kb();
    printf("so much: %s\n", kb < 0 ? "?" : kb == 0 ? "none" : kb < 5000 ? "its own" : "more");
    printf("1 MB %d\n", can_map(1 << 20, 0));
    printf("more than may be locked %d\n", can_map(limit.rlim_cur + 4096, 0));
    printf("half of it %d\n", can_map(limit.rlim_cur / 2, 1));
    free(malloc(100000));
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    const size_t mb = argc > 3 ? (size_t)atol(argv[3]) : 1000;
    if (strcmp(what, "as") == 0) limit_addresses(mb);
    if (strncmp(what, "as", 2) == 0) load(argv[1]); /* what it takes to load a library has no place in 8 MB */
    work(strcmp(what, "as_late") == 0 ? 100000 : 100);
    if (strcmp(what, "as_late") == 0) limit_addresses(mb);
    if (strcmp(what, "locks") == 0) lock_memory(MCL_CURRENT | MCL_FUTURE);
    if (strcmp(what, "locks_now") == 0) lock_memory(MCL_CURRENT);
    if (strcmp(what, "locks_next") == 0) lock_memory(MCL_FUTURE);
    if (strcmp(what, "locks_touched") == 0) lock_memory(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    work(5000);
    usleep(200000);
    work(5000);
    if (strncmp(what, "as", 2) == 0) printf("most of it %d\n", can_map(mb * 6 / 10 << 20, 1));
    work(100);
    puts("bye");
    return 5;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * steps.c - a training of many steps on the mini torch that measures itself: steps LIB_DIR SIDE [WORD=VALUE...]
 *
 * SIDE.said gets what it measured: the load of torch, the longest step, save and fork in us, and when main returned.
 * Its clock stands for a program's own: whatever waits inside a step is in the figure. Standard output and files are
 * the same in each run.
 *   steps=N ops=N      so many steps, each of so many ops
 *   pace=US            a step begins each US; 0: the next at once
 *   meet=N             before step N it makes SIDE.at and waits for SIDE.go: what another process does lies between
 *   rest=MS            then it does nothing for so long
 *   oom=N              in step N a device is out of memory
 *   fork=N child=WHAT  step N forks; the child runs 10 steps and ends by _exit, exit or raise
 *   save=N kb=N into=D each N steps D/checkpoint is written anew, synced and renamed
 *   tell=N             each N ops a line "OPS NANOSECONDS" goes to standard output
 * Once SIDE.thawed is there, each step has one op more, aten::after_thaw.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/hosts/torch_late.h"

static struct {
    long steps, ops, pace, meet, rest, oom, fork, save, kb, tell;
    const char *side, *child, *into;
} want = {.steps = 1000,
          .ops = 20,
          .pace = 1000,
          .meet = -1,
          .oom = -1,
          .fork = -1,
          .kb = 1024,
          .child = "_exit",
          .into = "."};
static struct {
    long began_us, load_us, step_us, step_at, save_us, fork_us, wait_us, saved, unsaved;
    int save_errno;
} seen;
static unsigned long made, thawed_ops;

static long now_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void longest(long *most, long since)
{
    const long took = now_us(CLOCK_MONOTONIC) - since;
    if (took > *most) *most = took;
}

static void side_name(char *path, size_t size, const char *end) { snprintf(path, size, "%s.%s", want.side, end); }

static int side_is_there(const char *end)
{
    char path[4096];
    side_name(path, sizeof path, end);
    return access(path, F_OK) == 0;
}

static void tell(void)
{
    char line[64];
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int n = snprintf(line, sizeof line, "%lu %ld\n", made, t.tv_sec * 1000000000 + t.tv_nsec);
    if (write(1, line, (size_t)n) != n) _exit(98);
}

static void op(const char *name)
{
    struct mini_range r;
    begin(&r, name, 0);
    end(&r);
    made++;
    if (want.tell && made % (unsigned long)want.tell == 0) tell();
}

static void train(long ops, int is_thawed)
{
    struct mini_range outer;
    begin(&outer, "Optimizer.step#SGD.step", 1);
    made++;
    for (long i = 0; i < ops; i++) op(i % 3 ? "aten::mul" : "aten::add");
    if (is_thawed) op("aten::after_thaw"), thawed_ops++;
    end(&outer);
}

/* The child's own status and how long its parent waited for it; the fork itself is a part of the step. */
static void with_child(void)
{
    long since = now_us(CLOCK_MONOTONIC);
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 10; i++) train(want.ops, 0);
        if (!strcmp(want.child, "exit")) exit(3);
        if (!strcmp(want.child, "raise")) raise(SIGTERM);
        _exit(3);
    }
    longest(&seen.fork_us, since);
    since = now_us(CLOCK_MONOTONIC);
    waitpid(child, &status, 0);
    longest(&seen.wait_us, since);
    printf("child %x\n", (unsigned)status);
}

/* A step's time on the clock, without what others do in a meeting and without the wait for a child. */
static void one_step(long i)
{
    const int is_thawed = side_is_there("thawed");
    const long since = now_us(CLOCK_MONOTONIC);
    train(want.ops, is_thawed);
    if (i == want.oom) run_out();
    const long before = seen.step_us;
    longest(&seen.step_us, since);
    if (seen.step_us > before) seen.step_at = i;
    if (i == want.fork) with_child();
}

static int write_all(int fd, const char *bytes, size_t size)
{
    for (ssize_t n; size; bytes += n, size -= (size_t)n)
        if ((n = write(fd, bytes, size)) <= 0) return -1;
    return 0;
}

static void save(void)
{
    static char block[1024];
    char path[4096], name[4096];
    const long since = now_us(CLOCK_MONOTONIC);
    snprintf(path, sizeof path, "%s/checkpoint.new", want.into);
    snprintf(name, sizeof name, "%s/checkpoint", want.into);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc = fd < 0 ? -1 : 0;
    memset(block, 'a' + (int)(seen.saved % 26), sizeof block);
    for (long kb = 0; rc == 0 && kb < want.kb; kb++) rc = write_all(fd, block, sizeof block);
    if (rc == 0) rc = fsync(fd);
    if (rc) seen.save_errno = errno;
    if (fd >= 0) close(fd);
    if (rc == 0) rc = rename(path, name);
    if (rc) seen.unsaved++;
    else seen.saved++;
    longest(&seen.save_us, since);
}

static void meet(void)
{
    char path[4096];
    side_name(path, sizeof path, "at");
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) close(fd);
    for (int tries = 0; tries < 60000 && !side_is_there("go"); tries++) usleep(1000);
    usleep((useconds_t)want.rest * 1000);
}

static void report(void)
{
    char path[4096];
    side_name(path, sizeof path, "said");
    FILE *const file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "began_us=%ld load_us=%ld step_us=%ld step_at=%ld save_us=%ld fork_us=%ld wait_us=%ld ",
            seen.began_us, seen.load_us, seen.step_us, seen.step_at, seen.save_us, seen.fork_us, seen.wait_us);
    fprintf(file, "made=%lu thawed=%lu errno=%d end_us=%ld\n", made, thawed_ops, seen.save_errno,
            now_us(CLOCK_REALTIME));
    fclose(file);
}

static long *number_of(const char *word)
{
    static const struct {
        const char *name;
        long *at;
    } all[] = {{"steps=", &want.steps}, {"ops=", &want.ops},  {"pace=", &want.pace}, {"meet=", &want.meet},
               {"rest=", &want.rest},   {"oom=", &want.oom},  {"fork=", &want.fork}, {"save=", &want.save},
               {"kb=", &want.kb},       {"tell=", &want.tell}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strncmp(word, all[i].name, strlen(all[i].name))) return all[i].at;
    return NULL;
}

static void wants(int argc, char **argv)
{
    want.side = argv[2];
    for (int i = 3; i < argc; i++) {
        long *const at = number_of(argv[i]);
        if (at) *at = atol(strchr(argv[i], '=') + 1);
        else if (!strncmp(argv[i], "child=", 6)) want.child = argv[i] + 6;
        else if (!strncmp(argv[i], "into=", 5)) want.into = argv[i] + 5;
        else fprintf(stderr, "steps: unknown word %s\n", argv[i]), exit(2);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    wants(argc, argv);
    seen.began_us = now_us(CLOCK_REALTIME);
    long next = now_us(CLOCK_MONOTONIC);
    load(argv[1]);
    longest(&seen.load_us, next);
    next = now_us(CLOCK_MONOTONIC);
    for (long i = 0; i < want.steps; i++) {
        if (i == want.meet) meet(), next = now_us(CLOCK_MONOTONIC);
        one_step(i);
        if (want.save && i && i % want.save == 0) save();
        next += want.pace;
        const long left = next - now_us(CLOCK_MONOTONIC);
        if (left > 0) usleep((useconds_t)left);
    }
    if (!want.tell) printf("ops %lu, saved %ld, not saved %ld\n", made - thawed_ops, seen.saved, seen.unsaved);
    fflush(stdout);
    report();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* trains.c - a small training on the mini torch, disturbed in the way its second argument says */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/kprof.h"
#include "test/hosts/torch_late.h"

static uint64_t (*made)(void);
static long ops_a_step = 100;

static void op(const char *name)
{
    struct mini_range r;
    begin(&r, name, 0);
    end(&r);
}

static void step(void)
{
    struct mini_range outer;
    begin(&outer, "Optimizer.step#SGD.step", 1);
    for (long i = 1; i < ops_a_step; i++) op(i % 3 ? "aten::mul" : "aten::add");
    end(&outer);
}

static void *steps_on_a_thread(void *arg)
{
    for (long i = 0; i < (long)arg; i++) step();
    return NULL;
}

static void steps_for(long ms)
{
    struct timespec now, first;
    clock_gettime(CLOCK_MONOTONIC, &first);
    do {
        step();
        usleep(1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 < ms);
}

/* Three seconds of steps, after which the ring of a second is kept. The program goes on until its trace is there. */
static void keeps_ring(void)
{
    op("the first");
    steps_for(3000);
    op("the middle");
    const int err = kprof_keep();
    for (int i = 0; i < 600 && !err && system("ls kprof/*.gz >/dev/null 2>&1"); i++) steps_for(100);
    steps_for(1500);
    op("the last");
    printf("kept %d\n", !err || err == -ENOSYS);
}

/* Three seconds of steps inside a range that stays open; then a range that ends, and SIGKILL. */
static void dies_in_ring(void)
{
    struct mini_range around, last;
    begin(&around, "the whole run", 0);
    op("the first");
    steps_for(3000);
    begin(&last, "the last", 0);
    end(&last);
    kill(getpid(), SIGKILL);
}

static void children(long n)
{
    for (int i = 0; i < n; i++) {
        pid_t p = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (p == 0) {
            if (i % 2 || !getenv("HOSTS_UNWIPED")) step(); /* who is not wiped would write into its parent's file */
            if (i % 4 == 1) exit(3);
            _exit(3);
        }
        step();
        int status = 0;
        waitpid(p, &status, 0);
        if (WEXITSTATUS(status) != 3) printf("a child ended with %x\n", (unsigned)status);
    }
}

/* What the spools of children take on the disk in KB; *count is how many there are. */
static long spools_kb(int *count)
{
    DIR *folder = opendir("kprof/children");
    long blocks = 0;
    *count = 0;
    if (!folder) return 0;
    for (struct dirent *e; (e = readdir(folder));) {
        const char *end = strrchr(e->d_name, '.');
        struct stat st;
        if (!end || strcmp(end, ".kprof") != 0 || fstatat(dirfd(folder), e->d_name, &st, 0) != 0) continue;
        blocks += st.st_blocks;
        ++*count;
    }
    closedir(folder);
    return blocks / 2;
}

/* Children that end by _exit one after another: their spools must not wait for this process's exit. */
static void short_lived(long n)
{
    int left = 1;
    step(); /* its children are workers from here on */
    for (long i = 0; i < n; i++) {
        const pid_t p = fork();
        if (p == 0) step(), _exit(3);
        step();
        waitpid(p, NULL, 0);
    }
    for (int tries = 0; tries < 15000 && left; tries++) {
        usleep(10000);
        spools_kb(&left);
    }
    printf("%d spools wait\n", left);
}

/* Children that all run at the same time. */
static void together(long n)
{
    int ready[2], over[2], count;
    char byte = 0;
    if (pipe(ready) || pipe(over)) exit(99);
    step();
    for (long i = 0; i < n; i++) {
        if (fork() != 0) continue;
        close(over[1]);
        step();
        if (write(ready[1], &byte, 1) == 1) (void)!read(over[0], &byte, 1);
        _exit(3);
    }
    for (long i = 0; i < n; i++) (void)!read(ready[0], &byte, 1);
    const long kb = spools_kb(&count);
    printf("at most 32 MB: %s\n", kb <= 32768 ? "yes" : "no");
    close(over[1]);
    while (wait(NULL) > 0) continue;
}

static void threads(void)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, steps_on_a_thread, (void *)20);
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
}

static void *steps_and_rests(void *arg)
{
    for (long i = 0; i < (long)arg; i++) step(), usleep(10000);
    puts("the last thread");
    return arg;
}

/* A pending cancellation strikes at the first function that may: it must not be one of the profiler's. */
static void *steps_while_cancelled(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    usleep(50000);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    for (int i = 0; i < 5; i++) step();
    puts("stepped");
    pthread_testcancel();
    puts("not reached");
    return arg;
}

static void leave(int signal)
{
    (void)signal;
    exit(7);
}

/* A handler that calls exit(), struck at any place of a step. */
static void exit_in_handler(long us)
{
    ops_a_step = 1;
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 20000 + us}, NULL);
    for (;;) step();
}

static void cancelled_step(void)
{
    pthread_t t;
    pthread_create(&t, NULL, steps_while_cancelled, NULL);
    pthread_cancel(t);
    pthread_join(t, NULL);
}

static long resident_kb(void)
{
    char line[256];
    long anonymous = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %ld", &anonymous) == 1) break;
    if (f) fclose(f);
    return anonymous;
}

/* 10^7 ops; memory of the host after a tenth of them and at the end */
static void many(long ops)
{
    long early = 0;
    for (long i = 0; i < ops; i++) {
        op("aten::mul");
        if (i == ops / 10) early = resident_kb();
    }
    printf("memory flat %d\n", resident_kb() - early < 1024);
}

/* A second and a half without a step, longer than a short KPROF_HANG. Then the ring is kept. */
static void rests(void)
{
    usleep(1500000);
    (void)kprof_keep();
    for (int i = 0; i < 20; i++) step(), usleep(5000);
}

/* It stands until KPROF_HANG has told so. */
static void stands(void)
{
    glob_t found;
    const bool is_watched = kprof_alive() != -ENOSYS;
    for (int i = 0; i < 1200 && is_watched; i++, usleep(100000)) {
        if (glob("kprof/hang-*.json", 0, NULL, &found) == 0) return globfree(&found);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "plain";
    long n = argc > 3 ? atol(argv[3]) : 20;
    if (!strcmp(how, "api_first")) kprof_range_push("before torch"), kprof_range_pop();
    made = (uint64_t(*)(void))dlsym(load(argv[1]), "mini_ops_made");
    if (!strcmp(how, "main_leaves")) {
        pthread_t t;
        pthread_create(&t, NULL, steps_and_rests, (void *)n);
        pthread_exit(NULL);
    }
    if (!strcmp(how, "cancelled_step")) cancelled_step();
    if (!strcmp(how, "exit_in_handler")) exit_in_handler(n);
    if (!strcmp(how, "dies_in_ring")) dies_in_ring();
    if (!strcmp(how, "keeps_ring")) return keeps_ring(), 5;
    if (!strcmp(how, "children")) children(n);
    if (!strcmp(how, "short_lived")) short_lived(n);
    if (!strcmp(how, "together")) together(n);
    if (!strcmp(how, "threads")) threads();
    if (!strcmp(how, "many")) return many(n), 5;
    for (long i = 0; i < n; i++) {
        if (i == n / 2 && !strcmp(how, "data_on_2")) {
            close(2);
            if (open("data.bin", O_CREAT | O_WRONLY, 0600) != 2) return 9;
            if (write(2, "only this\n", 10) != 10) return 9;
        }
        if (i == n / 2 && !strncmp(how, "close_fds", 9))
            for (int fd = 3; fd < 1024; fd++) close(fd);
        if (i == n / 2 && !strcmp(how, "take_fds"))
            for (int fd = 3; fd < 1024; fd++) close(fd), dup2(0, fd);
        if (i == n / 2 && !strcmp(how, "redirect_2")) dup2(open("redirected.log", O_CREAT | O_WRONLY, 0600), 2);
        if (i == n / 2 && !strcmp(how, "empties_folder")) system("rm -rf kprof");
        if (i == n / 2 && !strcmp(how, "chdir") && chdir("/")) return 9;
        if (i == n / 2 && !strcmp(how, "daemon") && fork() != 0) _exit(0);
        if (i == n / 2 && !strcmp(how, "kill")) kill(getpid(), SIGKILL);
        if (i == n / 2 && !strcmp(how, "fault")) *(volatile int *)8 = 1;
        if (i == n / 2 && !strcmp(how, "abort")) abort();
        if (i == n / 2 && !strcmp(how, "rests")) rests();
        if (i == n / 2 && strstr(how, "stands")) stands();
        if (i == n / 2 && !strcmp(how, "runs_out")) run_out();
        step();
        if (!strcmp(how, "slow")) usleep(100000);
    }
    printf("%ld steps, %lu ranges\n", n, (unsigned long)made());
    fflush(stdout);
    if (!strcmp(how, "idles")) sleep(3);
    if (!strcmp(how, "_exit")) _exit(6);
    if (!strcmp(how, "quick_exit")) quick_exit(6);
    if (!strcmp(how, "execs")) execl("/bin/echo", "echo", "executed", (char *)NULL);
    return 5;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * hidden_child.c - tries whether a program can start a command that the program itself cannot see (decisions/049)
 *
 * usage: hidden_child    one line for each way to start it: what the program's own calls then find
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 64 << 10, NAP_US = 200000 };
static char *const command[] = {"/bin/sleep", "0.1", NULL};
static volatile sig_atomic_t signals;
static void count(int signal) { (void)signal, signals = signals + 1; }

static int run(void *unused)
{
    (void)unused;
    execve(command[0], command, (char *[]){NULL});
    _exit(127);
}

static pid_t start(int (*fn)(void *), int flags)
{
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return clone(fn, stack + STACK, flags, NULL);
}

static int run_and_leave(void *unused)
{
    (void)unused;
    _exit(start(run, CLONE_VM | CLONE_VFORK) < 0);
}

static int run_and_stay(void *unused)
{
    (void)unused;
    signal(SIGCHLD, SIG_DFL); /* a table of its own: only the memory is shared */
    const pid_t pid = start(run, CLONE_VM | CLONE_VFORK);
    _exit(pid < 0 || waitpid(pid, NULL, __WALL) != pid);
}

static bool has_children(void)
{
    char text[256];
    snprintf(text, sizeof text, "/proc/self/task/%d/children", (int)getpid());
    const int fd = open(text, O_RDONLY);
    const ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n > 0;
}

/* In a child of its own, so that each way starts afresh. */
static void look(const char *name, int (*fn)(void *), int flags, bool is_reaper, bool leaves)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid) {
        waitpid(pid, NULL, 0);
        return;
    }
    signal(SIGCHLD, count);
    if (is_reaper) prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t child = start(fn, flags);
    if (leaves) waitpid(child, NULL, __WCLONE);
    const bool children = has_children();
    const bool all = waitpid(-1, NULL, WNOHANG | __WALL) >= 0, plain = waitpid(-1, NULL, WNOHANG) >= 0;
    for (int i = 0; i < 20; i++) usleep(NAP_US / 20);
    const pid_t found = waitpid(-1, NULL, WNOHANG);
    printf("%-34s SIGCHLD %d, wait finds it %s, __WALL %s, in /proc %s\n", name, (int)signals,
           found > 0 || plain ? "yes" : "no", all ? "yes" : "no", children ? "yes" : "no");
    exit(0);
}

static double seconds(pid_t pid, const struct timespec *from)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    waitpid(pid, NULL, __WALL);
    return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

static void look_at_cost(size_t bytes)
{
    struct timespec from;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
    clock_gettime(CLOCK_MONOTONIC, &from);
    pid_t pid = fork();
    if (!pid) run(NULL);
    const double copied = seconds(pid, &from);
    clock_gettime(CLOCK_MONOTONIC, &from);
    const double shared = seconds(start(run, CLONE_VM | CLONE_VFORK), &from);
    printf("with %zu MB resident: fork stops its thread for %.2f ms, CLONE_VM for %.2f ms\n", bytes >> 20, copied * 1e3,
           shared * 1e3);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    if (getuid() == 0 && (setgid(65534) || setuid(65534))) return;
    pid = start(run, CLONE_VM | CLONE_VFORK);
    printf("at RLIMIT_NPROC: %s\n", pid < 0 ? strerror(errno) : "works");
}

int main(void)
{
    look("nothing started", run_and_leave, 0, false, true);
    look("exit signal 0, then exec", run, CLONE_VM | CLONE_VFORK, false, false);
    look("child of a child that ends", run_and_leave, CLONE_VM | CLONE_VFORK, false, true);
    look("the same, program reaps for init", run_and_leave, CLONE_VM | CLONE_VFORK, true, true);
    look("child of a child that stays", run_and_stay, CLONE_VM, false, false);
    look("the same, program reaps for init", run_and_stay, CLONE_VM, true, false);
    look("the same with memory of its own", run_and_stay, 0, true, false);
    look_at_cost((size_t)2 << 30);
    return 0;
}

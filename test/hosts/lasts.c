// SPDX-License-Identifier: Apache-2.0
/*
 * lasts.c - its main thread ends, and not by exit(): what the process's end is then is not to hang on threads of others
 *
 * usage: lasts FOLDER HOW
 * raw: SYS_exit with status 4, the only thread; raw0: with 0; raw_later: when it was recorded for a while; raw_thread:
 * a thread lives on for a second and ends; raw_status: that thread ends by exit(6); killed: a filter that nobody saw
 * kills the only thread; uring: pthread_exit, with a thread of the kernel's that polls a ring; uring_thread: a thread
 * of its own lives on beside that
 */
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/hosts/torch_late.h"

static void work(const char *dir)
{
    struct mini_range r;
    load(dir);
    for (int i = 0; i < 50; i++) {
        begin(&r, "aten::add", 0);
        free(malloc(100));
        end(&r);
    }
}

static void *lives_on(void *status)
{
    sleep(1);
    write(1, "lived on\n", 9);
    if (status) exit(6);
    return NULL;
}

/* Not through a function that a profiler may know of. */
static long inlined(long number, long a, long b, long c)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#else
    return syscall(number, a, b, c);
#endif
}

static void be_killed(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_acct, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (inlined(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&prog) == 0) inlined(SYS_acct, 0, 0, 0);
}

static void poll_a_ring(void)
{
    struct io_uring_params p = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 600000};
    if (syscall(SYS_io_uring_setup, 8, &p) < 0) puts("no ring");
    usleep(50000);
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    pthread_t thread;
    work(argv[1]);
    if (strcmp(how, "raw_later") == 0) usleep(600000);
    if (strcmp(how, "raw_thread") == 0) pthread_create(&thread, NULL, lives_on, NULL);
    if (strcmp(how, "raw_status") == 0) pthread_create(&thread, NULL, lives_on, argv);
    if (strncmp(how, "uring", 5) == 0) poll_a_ring();
    if (strcmp(how, "uring_thread") == 0) pthread_create(&thread, NULL, lives_on, NULL);
    puts("bye");
    fflush(stdout);
    if (strcmp(how, "killed") == 0) be_killed();
    if (strncmp(how, "uring", 5) == 0) pthread_exit(NULL);
    inlined(SYS_exit, strcmp(how, "raw0") == 0 ? 0 : 4, 0, 0);
    return 9;
}

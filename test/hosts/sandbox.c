// SPDX-License-Identifier: Apache-2.0
/*
 * sandbox.c - forbids itself all but the ordinary system calls, as its argument says: eperm, enosys or kill; or thread:
 * all but what it needs itself, on pain of the thread's death, as sshd does before somebody has logged in; or strict:
 * all but read, write and exit. thread_raw, strict_raw: by syscall(); asks: whether the kernel has filters, which sets
 * none
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DENY(nr, answer) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, (answer))

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int filter_set(struct sock_fprog *prog, int is_raw)
{
    return is_raw ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, prog)
                  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prog, 0, 0);
}

static void blocks(int n)
{
    for (int i = 1; i < n; i++) free(malloc((size_t)i));
}

static int asks(void)
{
    blocks(100);
    printf("by prctl %d %s\n", filter_set(NULL, 0), strerror(errno));
    printf("by seccomp %d %s\n", filter_set(NULL, 1), strerror(errno));
    blocks(100);
    return 5;
}

static int strict(int is_raw)
{
    blocks(100);
    int rc = is_raw ? (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0)
                    : prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
    blocks(100);
    if (rc == 0) write(1, "strict\n", 7);
    return (int)syscall(SYS_exit, 4);
}

static int confined(int is_raw)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_brk),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_rt_sigprocmask),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
    };
    struct sock_fprog prog = {sizeof filter / sizeof *filter, filter};
    blocks(100);
    printf("alone %d\n", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    fflush(stdout);
    printf("filter %d\n", filter_set(&prog, is_raw));
    for (int i = 1; i < 1000; i++) free(malloc((size_t)i * 400));
    return 5;
}

int main(int argc, char **argv)
{
    const int is_raw = argc > 1 && strstr(argv[1], "_raw") != NULL;
    if (argc > 1 && !strncmp(argv[1], "thread", 6)) return confined(is_raw);
    if (argc > 1 && !strncmp(argv[1], "strict", 6)) return strict(is_raw);
    if (argc > 1 && !strcmp(argv[1], "asks")) return asks();
    unsigned rare = SECCOMP_RET_ERRNO | EPERM, useful = rare;
    if (argc > 1 && !strcmp(argv[1], "enosys")) useful = rare = SECCOMP_RET_ERRNO | ENOSYS;
    /* nobody survives a kill: calls that have a fallback are refused, those nobody should make are deadly */
    if (argc > 1 && !strcmp(argv[1], "kill")) rare = SECCOMP_RET_KILL_PROCESS;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENY(SYS_memfd_create, rare),
        DENY(SYS_perf_event_open, rare),
        DENY(SYS_eventfd2, rare),
        DENY(SYS_userfaultfd, rare),
        DENY(SYS_process_vm_writev, rare),
        DENY(SYS_ptrace, rare),
        DENY(SYS_socket, rare),
        DENY(SYS_bpf, rare),
        DENY(SYS_kcmp, rare),
        DENY(SYS_signalfd4, rare),
        DENY(SYS_membarrier, useful),
        DENY(SYS_fallocate, useful),
        DENY(SYS_sched_setattr, useful),
        DENY(SYS_sched_setscheduler, useful),
        DENY(SYS_setpriority, useful),
        DENY(SYS_unlinkat, useful),
        DENY(SYS_process_vm_readv, useful),
        DENY(SYS_ftruncate, useful),
        DENY(SYS_fdatasync, useful),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("filter %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0));
    fflush(stdout);
    if (argc > 2) return execv(argv[2], argv + 2);
    void *h = dlopen("libresolv.so.2", RTLD_NOW);
    printf("symbol %d\n", h && dlsym(h, "getpid") != NULL);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* sandbox.c - forbids itself all but the ordinary system calls, as its argument says: eperm, enosys or kill */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DENY(nr, answer) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, (answer))

int main(int argc, char **argv)
{
    unsigned rare = SECCOMP_RET_ERRNO | EPERM, useful = rare;
    if (argc > 1 && !strcmp(argv[1], "enosys")) useful = rare = SECCOMP_RET_ERRNO | ENOSYS;
    /* nobody survives a kill: calls that have a fallback are refused, those nobody should make are deadly */
    if (argc > 1 && !strcmp(argv[1], "kill")) rare = SECCOMP_RET_KILL_PROCESS;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENY(SYS_memfd_create, rare), DENY(SYS_perf_event_open, rare), DENY(SYS_eventfd2, rare),
        DENY(SYS_userfaultfd, rare), DENY(SYS_process_vm_writev, rare), DENY(SYS_ptrace, rare),
        DENY(SYS_socket, rare), DENY(SYS_bpf, rare), DENY(SYS_kcmp, rare), DENY(SYS_signalfd4, rare),
        DENY(SYS_membarrier, useful), DENY(SYS_fallocate, useful), DENY(SYS_sched_setattr, useful),
        DENY(SYS_sched_setscheduler, useful), DENY(SYS_setpriority, useful), DENY(SYS_unlinkat, useful),
        DENY(SYS_process_vm_readv, useful), DENY(SYS_ftruncate, useful), DENY(SYS_fdatasync, useful),
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

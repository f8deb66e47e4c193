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

#define DENY(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, 0)

int main(int argc, char **argv)
{
    unsigned answer = SECCOMP_RET_ERRNO | EPERM;
    if (argc > 1 && !strcmp(argv[1], "enosys")) answer = SECCOMP_RET_ERRNO | ENOSYS;
    if (argc > 1 && !strcmp(argv[1], "kill")) answer = SECCOMP_RET_KILL_PROCESS;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENY(SYS_memfd_create), DENY(SYS_perf_event_open), DENY(SYS_membarrier), DENY(SYS_fallocate),
        DENY(SYS_eventfd2), DENY(SYS_userfaultfd), DENY(SYS_process_vm_writev), DENY(SYS_ptrace),
        DENY(SYS_socket), DENY(SYS_bpf), DENY(SYS_sched_setattr), DENY(SYS_setpriority), DENY(SYS_unlinkat),
        DENY(SYS_mkdirat), DENY(SYS_renameat2), DENY(SYS_ftruncate),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    for (size_t i = 0; i < sizeof filter / sizeof *filter; i++)
        if (filter[i].code == (BPF_RET | BPF_K) && filter[i].k == 0) filter[i].k = answer;
    struct sock_fprog prog = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("filter %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0));
    void *h = dlopen("libresolv.so.2", RTLD_NOW);
    printf("symbol %d\n", h && dlsym(h, "getpid") != NULL);
    return 0;
}

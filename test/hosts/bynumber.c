// SPDX-License-Identifier: Apache-2.0
/* bynumber.c - makes system calls by syscall(): six arguments, errors, one that returns twice, one that returns on
 * another stack */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int wait_for(long child)
{
    int status = -1;
    waitpid((pid_t)child, &status, __WALL);
    return status;
}

#if defined(__x86_64__)
static void other_stack_begin(void) { syscall(SYS_exit, 6); }

/* The child's first return takes its address from there. */
static long clone_on_another_stack(void)
{
    uintptr_t *top = (uintptr_t *)mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) +
                     65536 / sizeof(uintptr_t) - 8;
    top[0] = (uintptr_t)other_stack_begin;
    return syscall(SYS_clone, CLONE_VM | SIGCHLD, top, NULL, NULL, NULL);
}
#endif

int main(void)
{
    char name[32] = "";
    int file = (int)syscall(SYS_openat, AT_FDCWD, "pages", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 3; i++) {
        char page[65536];
        memset(page, 'a' + i, sizeof page);
        write(file, page, sizeof page);
    }
    const char *second =
        (const char *)syscall(SYS_mmap, NULL, 65536, PROT_READ, MAP_SHARED, file, 65536); /* the sixth argument tells */
    printf("%c%c\n", second[0], second[65535]);
    errno = 0;
    long rc = syscall(SYS_mmap, NULL, 65536, PROT_READ, MAP_SHARED, -1, 0);
    printf("%ld %s\n", rc, strerror(errno));
    errno = ERANGE;
    rc = syscall(SYS_prctl, PR_SET_NAME, "bynumber", 0, 0, 0);
    prctl(PR_GET_NAME, name, 0, 0, 0);
    printf("%ld %s %s\n", rc, name, strerror(errno));
    rc = syscall(SYS_prctl, -1, 1, 2, 3, 4);
    printf("%ld %s\n", rc, strerror(errno));
    rc = syscall(SYS_seccomp, 99, 0, NULL);
    printf("%ld %s\n", rc, strerror(errno));
    fflush(stdout);
    free(malloc(10));
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) syscall(SYS_exit_group, 7);
    printf("forked %x\n", (unsigned)wait_for(child));
#if defined(__x86_64__)
    printf("on another stack %x\n", (unsigned)wait_for(clone_on_another_stack()));
#endif
    return 5;
}

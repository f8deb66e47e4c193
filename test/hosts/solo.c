// SPDX-License-Identifier: Apache-2.0
/*
 * solo.c - calls that only a process of one thread may make, or that the libc carries to all threads: the same with
 * ours there
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *churn(void *arg)
{
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 500; k++) free(malloc((size_t)k + 1));
        if (setegid(getegid()) != 0 || seteuid(geteuid()) != 0) printf("refused: %s\n", strerror(errno));
    }
    return arg;
}

static void threads(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, churn, NULL);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}

/* What a daemon does that keeps a capability over setuid: both belong to this thread alone. */
static void keeps(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    prctl(PR_SET_KEEPCAPS, 1);
    int uid = setresuid(1000, 1000, 1000);
    syscall(SYS_capget, &head, data);
    for (int i = 0; i < 2; i++) data[i].effective = data[i].permitted;
    int caps = (int)syscall(SYS_capset, &head, data), gid = setresgid(1000, 1000, 1000);
    printf("%d %d %d %d %d\n", uid, caps, gid, (int)getuid(), (int)getgid());
}

static void vforked(void)
{
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) _exit(setgid(getgid()) == 0 && setuid(getuid()) == 0 ? 5 : 6);
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
}

/* How Chromium's zygote sees that it has one thread; a path that cannot be read is refused as it was. */
static void looks(void)
{
    int proc = open("/proc", O_RDONLY | O_DIRECTORY);
    struct stat seen;
    for (int i = 0; i < 5; i++) {
        usleep(20000);
        int rc = fstatat(proc, i % 2 ? "self/task/" : "self/task", &seen, 0);
        printf("%d %d\n", rc, (int)seen.st_nlink);
    }
    const char *volatile paths[] = {"", "k", "self/tasks", (const char *)8};
    for (int i = 0; i < 4; i++) printf("%d", fstatat(proc, paths[i], &seen, 0) ? errno : 0);
    printf("\n");
    close(proc);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 100; i++) free(malloc(1000));
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "unshare")) printf("%d\n", unshare(CLONE_NEWUSER) ? errno : 0);
    if (!strcmp(what, "threads")) threads();
    if (!strcmp(what, "keeps")) keeps();
    if (!strcmp(what, "vfork")) vforked();
    if (!strcmp(what, "looks")) looks();
    errno = 7;
    int rc = setgroups(0, NULL);
    printf("groups %d %d\n", rc, errno);
    for (int i = 0; i < 100; i++) free(malloc(1000));
    return 3;
}

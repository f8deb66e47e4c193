// SPDX-License-Identifier: Apache-2.0
/* children.c - every way to make a child, many times */
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int wait_for(pid_t p)
{
    int status = 0;
    waitpid(p, &status, 0);
    return status;
}

static void forks(void)
{
    int sum = 0;
    for (int i = 0; i < 200; i++) {
        pid_t p = fork();
        if (p == 0) {
            if (i % 3 == 0) _exit(1);
            if (i % 3 == 1) exit(1);
            pid_t q = fork();
            if (q == 0) _exit(0);
            wait_for(q);
            _exit(1);
        }
        sum += WEXITSTATUS(wait_for(p));
    }
    printf("fork %d\n", sum);
}

static void raw(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++) {
        pid_t p = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (p == 0) _exit(2);
        sum += WEXITSTATUS(wait_for(p));
    }
    printf("clone %d\n", sum);
}

static void vforks(void)
{
    volatile int sum = 0;
    for (volatile int i = 0; i < 100; i++) {
        pid_t p = vfork();
        if (p == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        sum += wait_for(p);
    }
    printf("vfork %d\n", sum);
}

int main(void)
{
    char line[64] = "";
    pid_t p;
    int sum = 0;
    char *args[] = {"sh", "-c", "exit 5", NULL};
    setvbuf(stdout, NULL, _IONBF, 0);
    forks();
    raw();
    vforks();
    for (int i = 0; i < 50; i++)
        if (posix_spawn(&p, "/bin/sh", NULL, NULL, args, environ) == 0) sum += WEXITSTATUS(wait_for(p));
    printf("spawn %d\n", sum);
    printf("system %d\n", system("echo from the shell; exit 3"));
    FILE *f = popen("echo through a pipe", "r");
    if (f && fgets(line, sizeof line, f)) printf("popen %s", line);
    printf("popen ended %d\n", pclose(f));
    printf("no child is left %d\n", waitpid(-1, NULL, WNOHANG) == -1);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* lowest.c - a program of one thread counts on the lowest number: what it closes is what dup gives, as tar and shells
 * do for their children */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int others(double seconds)
{
    int wrong = 0;
    const int from = open("/dev/null", O_RDONLY);
    free(malloc(100)); /* in a child with a run of its own, that begins here */
    for (const double end = now() + seconds; now() < end;) {
        close(0);
        if (dup(from) != 0) wrong++;
    }
    return wrong;
}

int main(void)
{
    int children = 0, status;
    printf("%d in the parent\n", others(0.75));
    fflush(stdout);
    for (int i = 0; i < 100; i++) {
        const pid_t pid = fork();
        if (pid == 0) _exit(others(0.004) != 0);
        waitpid(pid, &status, 0);
        children += status != 0;
    }
    printf("%d of the children\n", children);
    return 0;
}

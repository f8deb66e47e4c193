// SPDX-License-Identifier: Apache-2.0
/* chain.c - executes itself ten times, half way with an empty environment */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10;
    char next[16], self[4096];
    char *none[] = {NULL};
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0) return 1;
    self[len] = 0;
    printf("%d ", n);
    fflush(stdout);
    if (n == 0) {
        puts("end");
        return 11;
    }
    snprintf(next, sizeof next, "%d", n - 1);
    execle(self, argv[0], next, (char *)NULL, n == 5 ? none : environ);
    return 1;
}

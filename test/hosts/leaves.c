// SPDX-License-Identifier: Apache-2.0
/*
 * leaves.c - loads torch, by no dl call after that, and leaves: exit() destroys torch's objects while helper threads
 * look for new libraries
 *
 * usage: leaves FOLDER HANDLERS MILLISECONDS
 * It stays for so long before it leaves; torch's destructors take 20 ms for each of HANDLERS.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    char path[4096];
    if (argc < 4) return 2;
    const struct timespec stay = {.tv_nsec = atol(argv[3]) * 1000000};
    setenv("MINI_HANDLERS", argv[2], 1);
    snprintf(path, sizeof path, "%s/libtorch_cpu.so", argv[1]);
    if (!dlopen(path, RTLD_NOW)) return 99;
    nanosleep(&stay, NULL);
    puts("bye");
    return 3;
}

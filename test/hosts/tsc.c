// SPDX-License-Identifier: Apache-2.0
/*
 * tsc.c - forbids itself to read the processor's counter: whoever does it in its threads from then on gets SIGSEGV
 *
 * usage: tsc FOLDER WHEN [raw]    WHEN: idle, heap (between allocations), ops (between ops), inside (an op), late (and
 *                                 only then opens torch)
 * raw: by syscall() instead of prctl()
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/hosts/torch_late.h"

static void ops(int n)
{
    struct mini_range r;
    for (int i = 0; i < n; i++) begin(&r, "aten::add", 0), end(&r);
}

static void blocks(int n)
{
    void *block[100];
    for (int i = 0; i < n; i++) block[i % 100] = malloc((size_t)i + 1), free(block[i % 100]);
}

static void forbid(int is_raw)
{
    int mode = 0, rc = is_raw ? (int)syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)
                              : prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    int asked = prctl(PR_GET_TSC, &mode, 0, 0, 0);
    printf("forbidden %d, asked %d: %d\n", rc, asked, mode);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *when = argc > 2 ? argv[2] : "";
    const int is_raw = argc > 3;
    struct mini_range outer;
    if (strcmp(when, "idle") == 0) forbid(is_raw);
    if (strcmp(when, "heap") == 0) blocks(500), forbid(is_raw), blocks(500);
    if (strcmp(when, "ops") == 0) load(argv[1]), ops(50), forbid(is_raw), ops(50);
    if (strcmp(when, "inside") == 0)
        load(argv[1]), begin(&outer, "aten::outer", 0), ops(50), forbid(is_raw), ops(50), end(&outer);
    if (strcmp(when, "late") == 0) forbid(is_raw), load(argv[1]), ops(100);
    puts("bye");
    return 5;
}

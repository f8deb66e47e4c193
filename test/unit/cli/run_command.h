// SPDX-License-Identifier: Apache-2.0
/* run_command.h - runs a command of kprof in a child, with what it says kept and what it takes measured */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/cli/cli.h"
#include "test/support/support.h"

struct ran {
    int status;      /* exit status, or -signal */
    double seconds;  /* of processor time */
    long megabytes;  /* at most in memory */
    char *out, *err; /* what it wrote, at most SAID_MOST; to be freed */
};
enum { SAID_MOST = 1 << 20 };

static char *said(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(SAID_MOST + 1, 1);
    assert_true(file && text);
    text[fread(text, 1, SAID_MOST, file)] = 0;
    fclose(file);
    unlink(path);
    return text;
}

static int output_to(const char *path, int as)
{
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0 || dup2(fd, as) < 0) return -1;
    return close(fd);
}

/* argv[0] is the command's name, as kp_cmd_* have it. file_most: bytes of the largest file it may write, 0: any. */
__attribute__((unused)) static struct ran run_command(int (*command)(int, char **), size_t file_most, char **argv)
{
    char out[300], err[300];
    struct ran ran = {0};
    struct rusage used;
    int status, argc = 0;
    while (argv[argc]) argc++;
    snprintf(out, sizeof out, "%s/stdout", kp_test_tmpdir());
    snprintf(err, sizeof err, "%s/stderr", kp_test_tmpdir());
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit files = {file_most ? file_most : RLIM_INFINITY, file_most ? file_most : RLIM_INFINITY},
                            time = {300, 300}, none = {0, 0};
        if (output_to(out, 1) || output_to(err, 2) || setrlimit(RLIMIT_FSIZE, &files) || setrlimit(RLIMIT_CPU, &time) ||
            setrlimit(RLIMIT_CORE, &none))
            _exit(99);
        const int rc = command(argc, argv);
        fflush(NULL);
        _exit(rc);
    }
    assert_int_equal(wait4(child, &status, 0, &used), child);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ran.seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                  (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    ran.megabytes = used.ru_maxrss >> 10;
    ran.out = said(out);
    ran.err = said(err);
    return ran;
}

__attribute__((unused)) static void ran_free(struct ran *ran)
{
    free(ran->out);
    free(ran->err);
}

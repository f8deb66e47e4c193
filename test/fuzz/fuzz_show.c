// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_show.c - any bytes are a trace that each command shows or writes, or it says in a line why not
 *
 * The commands run as they are, in this process: the page, the terminal's rows, findings, a slice, a comparison, the
 * stacks, and each format of export. A command that fails must say something, and none may call what it was given a
 * misuse of its options.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/cli/cli.h"

enum { WORDS_MOST = 10 };

static char database[64], trace[64];
static FILE *nothing;

typedef int (*command_fn)(int argc, char **argv);

static const struct {
    command_fn run;
    const char *words[WORDS_MOST]; /* TRACE and DATABASE stand for paths */
} runs[] = {
    {kp_cmd_report, {"report", "TRACE", "--partial"}},
    {kp_cmd_advise, {"advise", "TRACE", "--json"}},
    {kp_cmd_html, {"html", "TRACE", "-o", "/dev/null"}},
    {kp_cmd_view, {"view", "TRACE", "--json"}},
    {kp_cmd_diff, {"diff", "TRACE", "TRACE"}},
    {kp_cmd_stacks, {"stacks", "TRACE", "--json"}},
    {kp_cmd_slice, {"slice", "TRACE", "--from", "-3", "--to", "9", "-o", "/dev/null"}},
    {kp_cmd_slice, {"slice", "TRACE", "--within", "*a*"}},
    {kp_cmd_export, {"export", "TRACE", "--format", "perfetto", "-o", "/dev/null"}},
    {kp_cmd_export, {"export", "TRACE", "--format", "ndjson", "-o", "-"}},
    {kp_cmd_export, {"export", "TRACE", "--format", "speedscope", "-o", "-"}},
    {kp_cmd_export, {"export", "TRACE", "--format", "sqlite", "-o", "DATABASE"}},
};

static void command_run(size_t index)
{
    char *argv[WORDS_MOST + 1], *said = NULL;
    size_t bytes = 0;
    int argc = 0;
    for (; argc < WORDS_MOST && runs[index].words[argc]; argc++) {
        const char *word = runs[index].words[argc];
        argv[argc] = (char *)(strcmp(word, "TRACE") == 0 ? trace : strcmp(word, "DATABASE") == 0 ? database : word);
    }
    argv[argc] = NULL;
    FILE *const errors = stderr;
    stderr = open_memstream(&said, &bytes);
    if (!stderr) abort();
    const int rc = runs[index].run(argc, argv);
    fclose(stderr);
    stderr = errors;
    if (rc == KP_EXIT_USAGE || (rc != KP_EXIT_DONE && !bytes)) {
        fprintf(stderr, "kprof %s ended with %d: %s\n", argv[0], rc, said);
        abort();
    }
    free(said);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    nothing = fopen("/dev/null", "w");
    if (!nothing) return -1;
    stdout = nothing;
    snprintf(database, sizeof database, "/dev/shm/kprof-fuzz-%d.sqlite", (int)getpid());
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(trace, sizeof trace, "/proc/self/fd/%d", fd);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) command_run(i);
    unlink(database);
    close(fd);
    return 0;
}

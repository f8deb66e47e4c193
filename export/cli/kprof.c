// SPDX-License-Identifier: Apache-2.0
/* kprof.c - main and the table of commands */
#include "export/cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"report", kp_cmd_report, "the table of key_averages() for each trace"},
    {"events", kp_cmd_events, "one line an event, filtered"},
};

static void help(FILE *out)
{
    fputs("usage: kprof COMMAND [options] ...\n", out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].what);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return KP_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("kprof " KP_VERSION);
        return KP_EXIT_DONE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        help(stdout);
        return KP_EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, argv[1]) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "kprof: no command %s; kprof --help lists them\n", argv[1]);
    return KP_EXIT_USAGE;
}

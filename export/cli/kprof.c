// SPDX-License-Identifier: Apache-2.0
/* kprof.c - main: finds the command and runs it, prints help and version */
#include <stdio.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "export/cli/cli.h"
#include "export/show/terminal.h"

static const struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
#define KP_COMMAND(name, arguments, summary) {#name, summary, kp_cmd_##name},
#include "export/cli/commands.def"
#undef KP_COMMAND
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

/* Commands of other profilers (perf, memray, py-spy, nsys) and what people ask for, and what does that here. */
static const char *const others[][2] = {{"record", "run"},
                                        {"profile", "run"},
                                        {"flame", "stacks --svg"},
                                        {"flamegraph", "stacks --svg"},
                                        {"top", "view"},
                                        {"tui", "view"},
                                        {"live", "view"},
                                        {"table", "report"},
                                        {"stats", "report"},
                                        {"summary", "report"},
                                        {"lines", "report --by line"},
                                        {"leaks", "memory --leaks"},
                                        {"compare", "diff"},
                                        {"schedule", "run --schedule"},
                                        {"shapes", "run --record-shapes"},
                                        {"steps", "report --by step"},
                                        {"open", "html"},
                                        {"stop", "ctl DIR stop"},
                                        {"start", "ctl DIR start"},
                                        {"status", "ctl DIR status"},
                                        {"trace", "run"}};

static const char *command_meant(const char *name)
{
    const char *near = NULL;
    unsigned best = 3;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i][0], name) == 0) return others[i][1];
    for (size_t i = 0; i < COMMANDS; i++)
        if (kp_config_is_nearer(name, commands[i].name, &best)) near = commands[i].name;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (kp_config_is_nearer(name, others[i][0], &best)) near = others[i][1];
    return near;
}

static int unknown_tell(const char *name)
{
    const char *const meant = command_meant(name);
    fprintf(stderr, "kprof: no command '%s'", name);
    if (meant) fprintf(stderr, ", did you mean %s", meant);
    fputs("; `kprof help` lists them\n", stderr);
    return KP_EXIT_USAGE;
}

static int help(FILE *to)
{
    if (to == stdout) kp_terminal_page();
    fprintf(to, "kprof %s - profiles PyTorch programs without a change to them\n\nusage: kprof COMMAND ...\n\n",
            KP_VERSION);
    for (size_t i = 0; i < COMMANDS; i++) fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fputs("  help     COMMAND: shows the flags of a command, a line each; COMMAND --help: in full\n\n"
          "Settings are variables (KPROF_DIR, KPROF_SCHEDULE, ...) or flags of `kprof run`.\n\nA first look:\n"
          "  kprof run --with-stack ops -- python train.py\n"
          "  kprof advise\n",
          to);
    return to == stdout ? KP_EXIT_DONE : KP_EXIT_USAGE;
}

static int help_of(const char *name)
{
    char word[] = "--help";
    char *argv[] = {(char *)name, word, NULL};
    const struct command *const found = command_find(name);
    if (strcmp(name, "help") == 0) {
        puts("usage: kprof help [COMMAND]\nlists the commands, or the flags of one command, a line each\n\n"
             "`kprof COMMAND --help` shows each flag in full. The manual is kprof(1).");
        return KP_EXIT_DONE;
    }
    kp_cli_help_short();
    return found ? found->run(2, argv) : unknown_tell(name);
}

int main(int argc, char **argv)
{
    const struct command *command;
    kp_terminal_begin();
    if (argc < 2) return help(stderr);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) return kp_cli_version();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return help(stdout);
    if (argc == 4 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--markdown") == 0) {
        kp_help_page_want();
        return help_of(argv[3]);
    }
    if (strcmp(argv[1], "help") == 0) return argc > 2 ? help_of(argv[2]) : help(stdout);
    command = command_find(argv[1]);
    if (!command) return unknown_tell(argv[1]);
    const int status = command->run(argc - 1, argv + 1);
    if (kp_cli_wants_schema()) kp_cli_schema(command->name); /* argv[1] may be an argument by now */
    return status;
}

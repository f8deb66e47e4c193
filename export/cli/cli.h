// SPDX-License-Identifier: Apache-2.0
/* cli.h - the commands of kprof and what they share */
#ifndef KP_CLI_H
#define KP_CLI_H

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of every command. */
enum { KP_EXIT_DONE = 0, KP_EXIT_BAD_INPUT = 1, KP_EXIT_USAGE = 2 };

/* argv[0] is the command's name. */
int kp_cmd_report(int argc, char **argv);
int kp_cmd_events(int argc, char **argv);

/* Traces behind the paths a user gives: a trace is itself, a folder its traces, a spool what it exports to. */
struct kp_input {
    char **paths;
    char **labels;  /* what to call each: the path given, or the spool and its cycle */
    size_t count, capacity, label_capacity;
    char *folder;   /* temporary folder with exported spools, removed by kp_input_close; NULL: none */
};
/* 0 or -errno, then one line is on stderr. */
int kp_input_open(struct kp_input *input, const char *path);
void kp_input_close(struct kp_input *input);

#endif

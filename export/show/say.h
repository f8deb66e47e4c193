// SPDX-License-Identifier: Apache-2.0
/* say.h - messages and exit codes of a command: 0 done, 1 bad input, 2 usage */
#pragma once

#include <stdio.h>

enum { KP_EXIT_DONE = 0, KP_EXIT_BAD_INPUT = 1, KP_EXIT_USAGE = 2 };

/* Writes a line. It and those below show names and texts of files as export/show/plain.h does. */
void kp_cli_say(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "kprof NAME: message" on stderr; returns KP_EXIT_BAD_INPUT. */
int kp_cli_fail(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The meaning of the errno of a file that is read, or that -o names, and what to do: "Is a directory; ...". */
const char *kp_cli_read_why(int error);
const char *kp_cli_write_why(int error);
/* As kp_cli_fail, with a pointer to the help; returns KP_EXIT_USAGE. */
int kp_cli_misuse(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

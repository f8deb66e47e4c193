// SPDX-License-Identifier: Apache-2.0
/* say.c - prints the messages of a command */
#include "export/show/say.h"

#include <stdarg.h>
#include <stdlib.h>

#include "export/show/plain.h"

/* Prints a line. It may have names and texts of files, so kp_plain_put shows their control characters. */
static void line_put(FILE *to, const char *format, va_list args, const char *behind)
{
    char *line = NULL;
    if (vasprintf(&line, format, args) < 0) line = NULL;
    kp_plain_put(to, line ? line : format);
    fputs(behind, to);
    free(line);
}

void kp_cli_say(FILE *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_put(to, format, args, "\n");
    va_end(args);
}

int kp_cli_fail(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "kprof %s: ", command);
    line_put(stderr, format, args, "\n");
    va_end(args);
    return KP_EXIT_BAD_INPUT;
}

int kp_cli_misuse(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "kprof %s: ", command);
    line_put(stderr, format, args, "");
    fprintf(stderr, "; see `kprof help %s`\n", command);
    va_end(args);
    return KP_EXIT_USAGE;
}

// SPDX-License-Identifier: Apache-2.0
/* say.c - prints the messages of a command */
#include "export/show/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

static const struct cure {
    int error;
    const char *read, *write;
} cures[] = {
    {ENOENT, "check the name", "make its folder first"},
    {EACCES, "your user may not read it", "-o names a file in another folder"},
    {EROFS, NULL, "-o names a file in another folder"},
    {ENOSPC, NULL, "-o names a file on another disk"},
    {ENOTDIR, "name the folder of a run", "-o names a file in a folder"},
    {EISDIR, "name a file in it", "-o names a file in it"},
};

static const char *cure_add(int error, bool is_written)
{
    static char text[160];
    const char *what = NULL;
    for (size_t i = 0; i < sizeof cures / sizeof *cures; i++)
        if (cures[i].error == error) what = is_written ? cures[i].write : cures[i].read;
    snprintf(text, sizeof text, "%s%s%s", strerror(error), what ? "; " : "", what ? what : "");
    return text;
}

const char *kp_cli_read_why(int error) { return cure_add(error, false); }
const char *kp_cli_write_why(int error) { return cure_add(error, true); }

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

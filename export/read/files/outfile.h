// SPDX-License-Identifier: Apache-2.0
/* outfile.h - the file of a command's -o, which exists only when it is whole; without -o stdout */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct kp_outfile {
    FILE *to;
    const char *path; /* NULL: stdout */
    char *part;       /* the temporary name, beside it */
    int error;
};
/* 0 or -errno. `path` NULL, or "-": stdout. */
int kp_outfile_open(struct kp_outfile *file, const char *path);
/* Gives the file its name if `is_whole`, or removes it. 0 or -errno. */
int kp_outfile_close(struct kp_outfile *file, bool is_whole);
/* Says on stderr that this file was written; nothing where the text went to stdout or a pipe. */
void kp_outfile_tell(const char *path);
/*
 * The file of a drawing: `path` if it is given. If it is not, a terminal cannot show a drawing, so it goes to a file
 * `name` in the folder of the file (or folder) `beside`; the text is valid until the command ends. NULL: to stdout.
 */
const char *kp_outfile_drawing(const char *path, const char *beside, const char *name);
/* As kp_outfile_tell, and how to open it, where stdout is a terminal. */
void kp_outfile_tell_drawing(const char *path);
/* Returns which of these endings (without a dot; NULL is none) the name has, or `usual`: none of them, or NULL. */
unsigned kp_outfile_form(const char *path, const char *const *endings, unsigned count, unsigned usual);
const char *kp_outfile_temporary(void); /* a folder: TMPDIR or /tmp */
/* Says what is wrong with it; returns KP_EXIT_BAD_INPUT. */
int kp_outfile_fail(const char *command, const struct kp_outfile *file);

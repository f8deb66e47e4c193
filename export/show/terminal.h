// SPDX-License-Identifier: Apache-2.0
/*
 * terminal.h - fits what a command prints to a terminal: wraps prose, cuts rows of tables, colours
 *
 * A pipe or a file gets the text as the commands write it: no line is wrapped, none is cut, none has a colour.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* From here on stdout and stderr pass through this file, each of them only if it is a terminal. */
void kp_terminal_begin(void);
/* Writes what is left, waits for the pager, and gives both streams back. The exit of the process calls it, too. */
void kp_terminal_end(void);
/* As kp_terminal_begin, and stdout goes through $PAGER, else through less. If there is no terminal or no pager: no
 * change. */
void kp_terminal_page(void);
/* The columns of a stream's terminal: of the window, else $COLUMNS, else 80. 0: the stream passes no terminal. */
size_t kp_terminal_columns(FILE *to);

/* Marks in a line. They write nothing where the stream passes no terminal. */
void kp_terminal_row(FILE *to); /* first in a line: a row of a table, so it is cut; without it two gaps make a row */
void kp_terminal_name(FILE *to, bool is_begin); /* around a name that is shown bold */

/* Writes one line as on a terminal of so many columns. */
void kp_terminal_line(FILE *out, const char *line, size_t columns, bool has_colour);

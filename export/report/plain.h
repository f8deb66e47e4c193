// SPDX-License-Identifier: Apache-2.0
/* plain.h - text of a trace or a spool, fit for a terminal: nothing in it moves a cursor, ends a line or tells the
 * terminal anything */
#ifndef KP_PLAIN_H
#define KP_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Every text that came out of a file and goes to a terminal or a text file passes here. C0 (newline and tab, too),
 * 0x7f, U+0080 to U+009F and bytes that are no UTF-8 become \xNN; all else stays. Writes at most `room` bytes with a
 * NUL behind, never half a letter. How many it takes without the NUL.
 */
size_t kp_plain_text(char *out, size_t room, const char *text, size_t bytes);
bool kp_plain_is(const char *text, size_t bytes); /* it would stay as it is */
void kp_plain_put(FILE *out, const char *text);
/* A JSON string with its quotes: the same letters as \u00NN, bytes that are no UTF-8 as U+FFFD. */
void kp_plain_json(FILE *out, const char *text);
/* JSON that was checked, as it stands in a file: the same letters in its strings. */
void kp_plain_json_raw(FILE *out, const char *text);

#endif

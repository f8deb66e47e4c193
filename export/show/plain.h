// SPDX-License-Identifier: Apache-2.0
/* plain.h - makes text of a trace or a spool safe for a terminal: it has no control characters */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * All text from a file passes here on its way to a terminal or a text file. C0 (also newline and tab), 0x7f, U+0080 to
 * U+009F and bytes that are no UTF-8 become \xNN. Writes at most `room` bytes, the NUL among them, and never half a
 * letter. Returns how many bytes the whole takes without the NUL.
 */
size_t kp_plain_text(char *out, size_t room, const char *text, size_t bytes);
bool kp_plain_is(const char *text, size_t bytes); /* true: kp_plain_text() changes nothing */
void kp_plain_put(FILE *out, const char *text);
/* Writes as fprintf does, with each text (%s, without a width) made safe. Numbers: %d %u %ld %lu %zu %f. */
void kp_plain_fmt(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a JSON string with its quotes: those letters as \u00NN, bytes that are no UTF-8 as U+FFFD. NULL: null. */
void kp_plain_json(FILE *out, const char *text);
/* Writes checked JSON as it is in a file, but for those letters in its strings. */
void kp_plain_json_raw(FILE *out, const char *text);

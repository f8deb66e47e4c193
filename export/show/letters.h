// SPDX-License-Identifier: Apache-2.0
/* letters.h - texts measured and shortened by the columns that they take on a terminal; letters stay whole */
#pragma once

#include <stdio.h>

/* Counts columns: an East Asian letter or an emoji takes two, a combining mark none, a byte that is no UTF-8 one. */
size_t kp_letters_columns(const char *text);
/* Returns what is behind the letters that fit in so many columns. */
const char *kp_letters_skip(const char *text, size_t columns);
/*
 * Makes a text safe for a terminal. If it takes more than `most` columns, `dots` replace what lies between its first
 * `head` columns and the end that fits. Only the beginning stays if there is no room for the dots. Returns `out`, which
 * may be `text`.
 */
char *kp_letters_fit(char *out, size_t bytes, const char *text, size_t most, size_t head, const char *dots);
void kp_letters_pad(FILE *out, const char *text, int width); /* a negative width: blanks come behind, as in printf */
/* Writes a name, made safe, on so many columns: ends tell ops apart as well as the `head` columns of the beginning. */
void kp_letters_name_put(FILE *out, const char *name, size_t width, size_t head);

// SPDX-License-Identifier: Apache-2.0
/* table.h - prints rows the way key_averages().table() does, letter for letter */
#pragma once

#include <stdio.h>

#include "export/answers/torchtable/keyavg.h"

struct kp_table_options {
    const char *sort_by;                        /* NULL: order of first appearance */
    const char *header;                         /* NULL: none */
    long row_limit;                             /* -1: all */
    int name_width, shapes_width, source_width; /* most letters; 0: no limit */
    bool top_level_only;
    char time_unit; /* 's', 'm', 'u'; 0: by size */
};
#define KP_TABLE_DEFAULTS                                                          \
    {                                                                              \
        .row_limit = 100, .name_width = 55, .shapes_width = 80, .source_width = 75 \
    }

/* Sorts the rows by sort_by, if set, and prints them. Without rows it prints nothing. -EINVAL: unknown key. */
int kp_table_print(FILE *out, struct kp_keyavg *averages, const struct kp_table_options *options);

/* Counts the letters (code points) of a text. A byte that is no UTF-8 counts as one. */
size_t kp_table_letters(const char *text);
const char *kp_table_letters_skip(const char *text, size_t letters);
/* Writes a name, made safe, on so many columns. A longer one keeps `head` letters and its end, ".." between them: ends
 * tell ops apart as well as beginnings. */
void kp_table_name_put(FILE *out, const char *name, size_t width, size_t head);

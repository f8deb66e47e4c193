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

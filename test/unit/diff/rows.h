// SPDX-License-Identifier: Apache-2.0
/* rows.h - finds a row of a comparison by its name */
#pragma once

#include "export/answers/diff/diff.h"
#include "test/unit/tree/little_trace.h"

static inline const struct kp_diff_row *row_find(const struct kp_diff *d, int group, const char *name)
{
    for (size_t i = d->group_from[group]; i < d->group_from[group + 1]; i++)
        if (strcmp(kp_strings_get(d->strings, d->rows[i].name), name) == 0) return &d->rows[i];
    return NULL;
}

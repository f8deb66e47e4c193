// SPDX-License-Identifier: Apache-2.0
/* little_rows.h - the rows of a trace of a few events, for tests of the report's table */
#pragma once

#include "export/answers/top/toprows.h"
#include "test/unit/tree/little_trace.h"

static const struct kp_top_row *row_named(const struct kp_top *top, const char *name)
{
    for (size_t i = 0; i < top->count; i++)
        if (strcmp(kp_kineto_text(top->trace, top->rows[i].name), name) == 0) return &top->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

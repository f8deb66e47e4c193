// SPDX-License-Identifier: Apache-2.0
/* export_bridge.h - the text of a spool's cycle, for tests that read traces */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct fuzz_export {
    int fd;         /* of the spool */
    unsigned cycle; /* index */
    bool refused;   /* the spool or its cycle was: no trouble of the text */
};
int fuzz_export_each(const void *from, int (*take)(void *context, const char *text, size_t bytes), void *context);

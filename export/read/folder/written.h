// SPDX-License-Identifier: Apache-2.0
/* written.h - what a command wrote, as a line of JSON on standard output (--json) */
#pragma once

#include <stdint.h>

#include "export/show/fields.h"

enum kp_writer { KP_WRITER_EVENTS, KP_WRITER_PAGE, KP_WRITER_SPOOL }; /* which of the members its lines have */
struct kp_written {
    enum kp_writer by;
    const char *name, *path; /* path: where the file is now; NULL: where its name says */
    uint64_t events;
    uint64_t traces;      /* of a page */
    uint64_t steps, lost; /* of a trace of a spool */
    unsigned beside;      /* likewise: the files beside it, bits of KP_EXPORTS_BESIDE */
    bool is_complete;     /* likewise */
};
void kp_written_say(const struct kp_written *w);
extern const struct kp_fields *const kp_written_schema;
/* Whether a command with --json may write to `out`. Standard output has the JSON; then the message is out. */
int kp_written_check(const char *command, const char *out);

// SPDX-License-Identifier: Apache-2.0
/* written.c - prints what a command wrote as a line of JSON */
#include "export/read/folder/written.h"

#include <string.h>
#include <sys/stat.h>

#include "export/read/folder/beside.h"
#include "export/show/say.h"

static int64_t bytes_of(const struct kp_written *w)
{
    struct stat st;
    return stat(w->path ? w->path : w->name, &st) == 0 ? st.st_size : -1;
}

#define IS_PAGE r->by == KP_WRITER_PAGE
#define IS_SPOOL r->by == KP_WRITER_SPOOL
/* clang-format off */
#define WRITTEN(F, IF) \
    F(TEXT, file, r->name) \
    IF(bytes_of(r) >= 0, WHOLE, bytes, bytes_of(r)) \
    IF(IS_PAGE, WHOLE, traces, r->traces) \
    IF(IS_SPOOL, WHOLE, steps, r->steps) \
    F(WHOLE, events, r->events) \
    IF(IS_SPOOL, WHOLE, dropped, r->lost) \
    IF(IS_SPOOL, BOOL, complete, r->is_complete) \
    IF(r->beside & KP_EXPORTS_TABLE, BOOL, table, true) \
    IF(r->beside & KP_EXPORTS_STACKS, BOOL, stacks, true) \
    IF(r->beside & KP_EXPORTS_MEMORY, BOOL, memory, true)
KP_FIELDS(written, struct kp_written, WRITTEN)
/* clang-format on */

const struct kp_fields *const kp_written_schema = &written_fields;

void kp_written_say(const struct kp_written *w)
{
    kp_fields_line(stdout, &written_fields, w);
    fflush(stdout);
}

int kp_written_check(const char *command, const char *out)
{
    if (out && strcmp(out, "-") != 0) return KP_EXIT_DONE;
    return kp_cli_misuse(command, "--json says what was written; -o names the file");
}

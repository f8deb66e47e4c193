// SPDX-License-Identifier: Apache-2.0
/* sqlitefile_none.c - in place of sqlitefile.c where SQLite was not there when kprof was built */
#include <errno.h>

#include "export/answers/convert/convert.h"

struct kp_sqlite *kp_sqlite_open(const char *path, char *why, size_t why_bytes)
{
    (void)path;
    snprintf(why, why_bytes,
             "this kprof was built without SQLite (libsqlite3-dev); --format ndjson has the same events");
    return NULL;
}

int kp_sqlite_name(struct kp_sqlite *w, const struct kp_raw_event *e) { return (void)w, (void)e, -ENOSYS; }

int kp_sqlite_head(struct kp_sqlite *w, const char *text, size_t bytes)
{
    return (void)w, (void)text, (void)bytes, -ENOSYS;
}

int kp_sqlite_event(struct kp_sqlite *w, const struct kp_raw_event *e) { return (void)w, (void)e, -ENOSYS; }

int kp_sqlite_close(struct kp_sqlite *w, char *why, size_t why_bytes)
{
    return (void)w, (void)why, (void)why_bytes, -ENOSYS;
}

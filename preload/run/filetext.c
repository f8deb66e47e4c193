// SPDX-License-Identifier: Apache-2.0
/*
 * filetext.c - says which files a run wrote beside its traces, and whether there are new ones at all
 *
 * Called by: finish.c
 * Safe in:   signal handlers no; after fork yes
 */
#include "preload/run/filetext.h"

#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

static const struct {
    unsigned bit;
    const char *end, *option;
} extra_rows[] = {{KP_EXTRA_TABLE, ".table.txt", "the program runs no op"},
                  {KP_EXTRA_STACKS, ".stacks.txt", "set KPROF_WITH_STACK to 1 or ops"},
                  {KP_EXTRA_MEMORY, ".memory.html", "set KPROF_PROFILE_MEMORY=1"}};

/* Logs once what KPROF_EXPORT asked for and is missing. */
void kp_filetext_say_extras(const struct kp_export_result *result, unsigned exports)
{
    static unsigned said; /* one exporting thread at a time */
    unsigned missing = exports & KP_EXTRAS & ~result->extras & ~said;
    said |= missing;
    if (result->extras_error && missing)
        kp_log(0,
               "not all of KPROF_EXPORT could be written to %s (%s); `kprof report`, `stacks` and `memory` make "
               "it of the trace",
               kp_run_out_dir(), kp_log_error_text(result->extras_error));
    for (size_t i = 0; i < sizeof extra_rows / sizeof *extra_rows && !result->extras_error; i++)
        if (missing & extra_rows[i].bit)
            kp_log(0, "nothing to write as %s: %s", extra_rows[i].end + 1, extra_rows[i].option);
}

/* Names the last trace and its extras: "DIR/NAME.pt.trace.json.gz, .table.txt", or "DIR/NAME.table.txt" alone. */
const char *kp_filetext_last(const char *trace, unsigned extras, unsigned exports, char *out, size_t bytes)
{
    bool any = exports & KP_EXPORTS_TRACE;
    const char *path = kp_path_display(trace), *json = strstr(path, ".pt.trace.json");
    size_t n = any || !json ? strlen(path) : (size_t)(json - path);
    if (n >= bytes) n = bytes - 1;
    memcpy(out, path, n);
    out[n] = 0;
    for (size_t i = 0; i < sizeof extra_rows / sizeof *extra_rows && n < bytes; i++) {
        if (!(extras & extra_rows[i].bit)) continue;
        n += kp_fmt(out + n, bytes - n, "%s%s", any ? ", " : "", extra_rows[i].end);
        any = true;
    }
    return any ? out : NULL;
}

struct new_files {
    uint64_t since_ns;
    bool any;
};

/* A name with the time at which its file began, "HOST_PID.NANOSECONDS.kprof", that is not the own spool's. */
static void file_visit(void *context, const char *name)
{
    struct new_files *const files = context;
    const char *own = strrchr(kp_record_path(), '/');
    uint64_t at_ns = 0;
    for (const char *dot = strchr(name, '.'); dot && at_ns <= files->since_ns; dot = strchr(dot + 1, '.')) {
        at_ns = 0;
        for (const char *p = dot + 1; *p >= '0' && *p <= '9'; p++) at_ns = at_ns * 10 + (uint64_t)(*p - '0');
    }
    if (at_ns > files->since_ns && !(own && strcmp(own + 1, name) == 0)) files->any = true;
}

/* Whether another process has recorded into the folder since this one began: the ranks of a launcher, for example. */
bool kp_filetext_has_new(uint64_t since_ns)
{
    struct new_files files = {.since_ns = since_ns};
    return kp_io_each_name(kp_run_out_dir(), file_visit, &files) == 0 && files.any;
}

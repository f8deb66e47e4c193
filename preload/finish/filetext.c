// SPDX-License-Identifier: Apache-2.0
/*
 * filetext.c - says who makes the files beside a trace, and whether there are new files at all
 *
 * Called by: finish.c
 * Safe in:   signal handlers no; after fork yes
 */
#include "preload/finish/finish.h"

#include <string.h>
#include <unistd.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

/* `kprof run` makes the others of each trace, and leaves a variable for all that its program starts. */
void kp_filetext_say_beside(unsigned exports)
{
    if (exports & KP_EXPORTS_BESIDE && !kp_config_variable(environ, "KPROF_RUN_BESIDE"))
        kp_log(0, "KPROF_EXPORT: only traces are written here, and `kprof run` makes the others; of a trace: kprof "
                  "report --torch, kprof stacks --torch, kprof memory --html");
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

// SPDX-License-Identifier: Apache-2.0
/* schema.c - prints the JSON Schema of what a command prints with --json */
#include "export/cli/cli.h"

#include <string.h>

#include "export/answers/advise/adviceprint.h"
#include "export/answers/diff/diff.h"
#include "export/answers/hang/hangprint.h"
#include "export/answers/jobs/jobstart.h"
#include "export/answers/ranks/why.h"
#include "export/answers/memory/memblocks.h"
#include "export/answers/memory/oomtext.h"
#include "export/answers/ranks/rankjson.h"
#include "export/answers/runadvice/advised.h"
#include "export/answers/top/toptable.h"
#include "export/answers/view/view.h"
#include "export/answers/watch/watch.h"
#include "export/answers/advise/steplist.h"
#include "export/answers/heapview/heapview.h"
#include "export/read/folder/written.h"

enum { EACH_MOST = 6 }; /* kinds of lines that a command prints, and NULL */

static const struct {
    const char *command;
    const struct kp_fields *const *each[EACH_MOST];
} schemas[] = {
    {"run", {&kp_advised_schema}},
    {"report", {&kp_top_schema, &kp_steplist_schema, &kp_rankjson_schema}},
    {"advise", {&kp_adviceprint_schema}},
    {"html", {&kp_written_schema}},
    {"view", {&kp_view_schema}},
    {"diff", {&kp_diff_schema}},
    {"events", {&kp_events_schema}},
    {"stacks", {&kp_stacks_schema}},
    {"memory", {&kp_memjson_schema, &kp_profile_schema, &kp_oom_schema}},
    {"slice", {&kp_written_schema}},
    {"export", {&kp_written_schema}},
    {"recover", {&kp_written_schema, &kp_recovered_schema}},
    {"hang", {&kp_hang_schema}},
    {"why", {&kp_why_schema}},
    {"watch", {&kp_watch_schema}},
    {"config", {&kp_config_schema}},
    {"doctor", {&kp_doctor_schema}},
    {"ctl",
     {&kp_ctl_status_schema, &kp_ctl_where_schema, &kp_ctl_done_schema, &kp_ctl_error_schema, &kp_jobstart_schema}},
    {"path", {&kp_path_schema}},
};

void kp_cli_schema(const char *command)
{
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        const struct kp_fields *each[EACH_MOST] = {0};
        if (strcmp(schemas[i].command, command) != 0) continue;
        for (size_t n = 0; n < EACH_MOST && schemas[i].each[n]; n++) each[n] = *schemas[i].each[n];
        kp_fields_schema(stdout, each);
    }
}

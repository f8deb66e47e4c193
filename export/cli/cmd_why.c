// SPDX-License-Identifier: Apache-2.0
/* cmd_why.c - kprof why: of a job that ended, which rank went first and how, and which followed */
#include <stdio.h>

#include "export/answers/ranks/why.h"
#include "export/answers/runadvice/advised.h"
#include "export/cli/cli.h"
#include "export/cli/recover/latest.h"
#include "export/read/folder/trace_source.h"

static const struct kp_opt flags[] = {{"json", 0, KP_OPT_FLAG, NULL, "a line of JSON"}, {0}};

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    const struct kp_texts texts = kp_trace_source_texts(source);
    struct kp_advised a;
    char why[512];
    (void)several;
    const int rc = kp_advised_open(&a, &texts, source->path, true, why, sizeof why);
    if (rc == 0) kp_why_add(context, &a.tree, &a.chosen);
    kp_advised_close(&a);
    return rc ? kp_cli_fail("why", "%s", why) : KP_EXIT_DONE;
}

int kp_cmd_why(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "why", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct kp_why why = {0};
    const char *value;
    bool is_json = false;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        switch (i) {
        case 0: is_json = true; break;
        case KP_OPT_ARGUMENT: argv[count++] = (char *)value; break; /* that word was read already */
        case KP_OPT_HELP: return kp_cli_help("why", flags);
        default: return KP_EXIT_USAGE;
        }
    }
    count = kp_latest_take("why", &argv, count, 0);
    if (!count) return KP_EXIT_USAGE;
    const int worst = kp_input_each("why", argv, count, NULL, trace_take, &why);
    kp_why_settle(&why);
    if (why.count && is_json) kp_why_json(stdout, &why);
    else if (why.count) kp_why_print(stdout, &why);
    kp_why_fini(&why);
    return worst;
}

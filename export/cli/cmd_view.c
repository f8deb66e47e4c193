// SPDX-License-Identifier: Apache-2.0
/* cmd_view.c - `kprof view`: a trace on a terminal */
#include "export/cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "export/cli/advised.h"
#include "export/cli/budget.h"
#include "export/cli/latest.h"
#include "export/cli/trace_source.h"
#include "export/view/view.h"

static const struct kp_opt flags[] = {{"json", 0, KP_OPT_FLAG, NULL, "print all that it shows as JSON, a line a trace"},
                                      {0}};

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct kp_kineto *trace;
    struct kp_tree tree;
    char why[512];
    const bool is_json = *(const bool *)context;
    (void)several;
    const struct kp_texts texts = kp_trace_source_texts(source);
    int rc = kp_advised_read(&trace, &tree, &texts, source->path, why, sizeof why);
    if (rc) {
        kp_tree_fini(&tree);
        kp_kineto_close(trace);
        return kp_cli_fail("view", "%s", why);
    }
    if (!is_json) kp_budget_end(); /* the user may look at it as long as it takes */
    rc = is_json ? kp_view_json(stdout, &tree, source->label, why, sizeof why)
                 : kp_view_run(&tree, source->label, why, sizeof why);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return rc ? kp_cli_fail("view", "%s: %s", source->label, why) : KP_EXIT_DONE;
}

int kp_cmd_view(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "view", .table = flags, .argc = argc, .argv = argv, .at = 1};
    const char *value;
    bool is_json = false;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        if (i == KP_OPT_ARGUMENT) argv[count++] = (char *)value; /* that word was read already */
        else if (i == 0) is_json = true;
        else if (i == KP_OPT_HELP) return kp_cli_help("view", flags);
        else return KP_EXIT_USAGE;
    }
    if (!is_json && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return kp_cli_fail("view", "this is not a terminal; kprof report prints, kprof html writes a page");
    count = kp_latest_take("view", &argv, count, KP_LATEST_ONE);
    return count ? kp_input_each("view", argv, count, NULL, trace_take, &is_json) : KP_EXIT_USAGE;
}

// SPDX-License-Identifier: Apache-2.0
/* cmd_stacks.c - `kprof stacks`: call stacks with their time, as torch's export_stacks writes them, or a flame graph */
#include "export/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "export/cli/budget.h"
#include "export/cli/latest.h"
#include "export/cli/lines.h"
#include "export/cli/trace_source.h"
#include "export/report/folded.h"

struct stacks_command {
    const char *metric;
    bool on_device, svg;
    int lines;
};

static const struct kp_opt flags[] = {
    {"metric", 'm', KP_OPT_VALUE, "METRIC", "self_cpu_time_total (default) or self_cuda_time_total"},
    {"svg", 0, KP_OPT_FLAG, NULL, "a flame graph that opens in a browser, on stdout"},
    KP_LINES_OPTIONS("off; of spools only"),
    {0}};

static void line_print(void *context, const char *stack, int64_t us)
{
    struct stacks_command *s = context;
    kp_budget_print(strlen(stack));
    printf("%s %lld\n", stack, (long long)us);
    s->lines++;
}

struct drawing {
    struct kp_flame *flame;
    int stacks;
};

static void stack_draw(void *context, const char *stack, int64_t us)
{
    struct drawing *d = context;
    kp_budget_print(strlen(stack)); /* a walk through them takes as long as printing them */
    kp_flame_add(d->flame, stack, us);
    d->stacks++;
}

static int flame_print(const struct kp_tree *tree, const struct stacks_command *s, const char *label)
{
    struct drawing d = {.flame = kp_flame_open()};
    kp_folded_walk(tree, s->on_device, stack_draw, &d);
    kp_flame_write(d.flame, stdout, label);
    kp_flame_close(d.flame);
    return d.stacks;
}

static int lines_print(const struct kp_tree *tree, struct stacks_command *s)
{
    s->lines = 0;
    kp_folded_walk(tree, s->on_device, line_print, s);
    return s->lines;
}

static int trace_print(void *context, const struct kp_trace_source *source, bool several)
{
    struct stacks_command *s = context;
    struct kp_kineto *trace;
    struct kp_tree tree;
    char why[512];
    if (several && s->svg) return kp_cli_misuse("stacks", "--svg draws one trace, and there are several");
    if (kp_trace_source_read(source, &trace, why, sizeof why)) {
        kp_kineto_close(trace);
        return kp_cli_fail("stacks", "%s", why);
    }
    if (kp_tree_build(&tree, trace) < 0) {
        kp_kineto_close(trace);
        return kp_cli_fail("stacks", "%s: too many events", source->label);
    }
    kp_tree_fill_stacks(&tree, true);
    kp_tree_set_stacks(&tree);
    if (!(s->svg ? flame_print(&tree, s, source->label) : lines_print(&tree, s)))
        kp_cli_say(stderr,
                   "kprof stacks: %s: no call stacks that cost anything; record with KPROF_WITH_STACK=1, ops or native",
                   source->label);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return KP_EXIT_DONE;
}

int kp_cmd_stacks(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "stacks", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct stacks_command s = {.metric = "self_cpu_time_total"};
    struct kp_lines_options wish = {0};
    const char *value;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        switch (i) {
        case 0: s.metric = value; break;
        case 1: s.svg = true; break;
        case 2:
        case 3: kp_lines_option(&wish, flags[i].name, value); break;
        case KP_OPT_ARGUMENT: argv[count++] = (char *)value; break; /* that word was read already */
        case KP_OPT_HELP: return kp_cli_help("stacks", flags);
        default: return KP_EXIT_USAGE;
        }
    }
    if (!kp_folded_metric(s.metric, &s.on_device))
        return kp_cli_misuse("stacks", "no metric %s; known: self_cpu_time_total self_cuda_time_total", s.metric);
    count = kp_latest_take("stacks", &argv, count, s.svg);
    if (!count) return KP_EXIT_USAGE;
    struct kp_lines *lines = kp_lines_open("stacks", &wish);
    const int worst = kp_input_each("stacks", argv, count, kp_lines_places(lines), trace_print, &s);
    kp_lines_close(lines);
    return worst;
}

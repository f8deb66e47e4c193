// SPDX-License-Identifier: Apache-2.0
/* cmd_advise.c - `kprof advise`: what is slow, what it costs a step, and what to change */
#include "export/cli/cli.h"

#include <string.h>

#include "export/advise/advise.h"
#include "export/cli/latest.h"
#include "export/cli/trace_source.h"
#include "export/report/plain.h"

static const struct kp_opt flags[] = {{"json", 0, KP_OPT_FLAG, NULL, "print each trace's findings as a line of JSON"},
                                      {0}};
static const char *const part_names[] = {[KP_STEP_COMPUTE] = "compute",
                                         [KP_STEP_COMM] = "communication",
                                         [KP_STEP_COPIES] = "copies",
                                         [KP_STEP_LOADING] = "data_loading",
                                         [KP_STEP_IDLE] = "idle"};

static const char *verdict_of(const struct kp_advice *a)
{
    if (a->count) return "found";
    if (a->missing) return "incomplete";
    return a->is_healthy ? "healthy" : "nothing found";
}

static void finding_print(const struct kp_finding *f, size_t of)
{
    printf("%s  %s: %.3f ms a step, %.1f %% (%zu of %zu steps)\n", f->is_critical ? "CRITICAL" : "WARNING", f->what,
           f->step_ns / 1e6, 100 * f->share, f->steps, of);
    if (f->where) {
        fputs("    where   ", stdout);
        kp_plain_put(stdout, f->where);
        fputs("\n", stdout);
    }
    printf("    change  %s\n", f->change);
}

static void advice_print(const struct kp_advice *a)
{
    const double percent = a->step_ns > 0 ? 100 / a->step_ns : 0;
    if (a->steps) {
        printf("a step   %.3f ms (mean of %zu): compute %.1f %%, data loading %.1f %%", a->step_ns / 1e6, a->steps,
               a->mean_ns[KP_STEP_COMPUTE] * percent, a->mean_ns[KP_STEP_LOADING] * percent);
        if (a->has_gpu)
            printf(", exposed communication %.1f %%, exposed copies %.1f %%", a->mean_ns[KP_STEP_COMM] * percent,
                   a->mean_ns[KP_STEP_COPIES] * percent);
        printf(", %s %.1f %%\n", a->has_gpu ? "idle" : "no op", a->mean_ns[KP_STEP_IDLE] * percent);
    }
    for (size_t i = 0; i < a->count; i++) finding_print(&a->findings[i], a->steps);
    if (a->missing) printf("INCOMPLETE  %s\n", a->missing);
    else if (!a->count) printf("%s\n", verdict_of(a));
}

static void json_text(const char *text)
{
    if (text) kp_plain_json(stdout, text);
    else fputs("null", stdout);
}

static void json_print(const struct kp_advice *a, const char *label)
{
    fputs("{\"schema\":1,\"file\":", stdout);
    kp_plain_json(stdout, label);
    printf(",\"verdict\":\"%s\",\"steps\":%zu,\"step_ms\":%.6f,\"parts_ms\":{", verdict_of(a), a->steps,
           a->step_ns / 1e6);
    for (int p = 0; p < KP_STEP_PARTS; p++) printf("%s\"%s\":%.6f", p ? "," : "", part_names[p], a->mean_ns[p] / 1e6);
    fputs("},\"missing\":", stdout);
    json_text(a->missing);
    fputs(",\"findings\":[", stdout);
    for (size_t i = 0; i < a->count; i++) {
        const struct kp_finding *f = &a->findings[i];
        printf("%s{\"id\":\"%s\",\"severity\":\"%s\",\"step_ms\":%.6f,\"share\":%.6f,\"steps\":%zu,\"where\":",
               i ? "," : "", f->id, f->is_critical ? "critical" : "warning", f->step_ns / 1e6, f->share, f->steps);
        json_text(f->where);
        fputs(",\"change\":", stdout);
        kp_plain_json(stdout, f->change);
        fputs("}", stdout);
    }
    fputs("]}\n", stdout);
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    const bool is_json = *(const bool *)context;
    const struct kp_choice all = {.first_step = -1, .last_step = -1};
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_chosen chosen;
    struct kp_advice advice;
    char why[512];
    int rc = kp_trace_source_read(source, &trace, why, sizeof why);
    if (rc || kp_tree_build(&tree, trace) < 0) {
        kp_kineto_close(trace);
        return kp_cli_fail("advise", "%s%s", rc ? why : source->label, rc ? "" : ": too many events");
    }
    rc = kp_chosen_make(&chosen, &tree, &all, why, sizeof why);
    if (!rc) {
        kp_advice_make(&advice, &tree, &chosen);
        if (several && !is_json) kp_cli_say(stdout, "%s", source->label);
        if (is_json) json_print(&advice, source->label);
        else advice_print(&advice);
    }
    kp_chosen_fini(&chosen);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return rc ? kp_cli_fail("advise", "%s: %s", source->label, why) : KP_EXIT_DONE;
}

int kp_cmd_advise(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "advise", .table = flags, .argc = argc, .argv = argv, .at = 1};
    bool is_json = false;
    const char *value;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        switch (i) {
        case 0: is_json = true; break;
        case KP_OPT_ARGUMENT: argv[count++] = (char *)value; break; /* that word was read already */
        case KP_OPT_HELP: return kp_cli_help("advise", flags);
        default: return KP_EXIT_USAGE;
        }
    }
    count = kp_latest_take("advise", &argv, count, false);
    return count ? kp_input_each("advise", argv, count, NULL, trace_take, &is_json) : KP_EXIT_USAGE;
}

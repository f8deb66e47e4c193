// SPDX-License-Identifier: Apache-2.0
/* cmd_advise.c - `kprof advise`: what is slow, what it costs a step, and what to change */
#include "export/cli/cli.h"

#include <string.h>

#include "export/cli/advised.h"
#include "export/cli/heapadvice.h"
#include "export/cli/latest.h"
#include "export/cli/otheradvice.h"
#include "export/cli/phasetraces.h"
#include "export/cli/trace_source.h"
#include "export/cli/workers.h"
#include "export/report/plain.h"
#include "export/report/rankwaits.h"
#include "export/report/units.h"

static const struct kp_opt flags[] = {{"json", 0, KP_OPT_FLAG, NULL, "print each trace's findings as a line of JSON"},
                                      {"json-schema", 0, KP_OPT_FLAG, NULL, "print the JSON Schema of such a line"},
                                      {"partial", 0, KP_OPT_FLAG, NULL, "of a cut file, judge what is there"},
                                      {0}};
static const char *const part_names[] = {[KP_SPLIT_COMPUTE] = "compute",
                                         [KP_SPLIT_COMM] = "communication",
                                         [KP_SPLIT_COPIES] = "copies",
                                         [KP_SPLIT_LOADING] = "data_loading",
                                         [KP_SPLIT_IDLE] = "idle"};

static const char *const cause_names[] = {
    [KP_IDLE_GC] = "garbage_collection", [KP_IDLE_COMPILE] = "compilation", [KP_IDLE_ALLOC] = "allocator",
    [KP_IDLE_SYNC] = "synchronisation",  [KP_IDLE_LAUNCH] = "launch",       [KP_IDLE_DEPENDENCY] = "dependency",
    [KP_IDLE_PYTHON] = "python"};

#define NUMBERS "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}"
#define TEXT "{\"type\":\"string\"}"
#define MAYBE "{\"type\":[\"string\",\"null\"]}"
#define WHOLE "{\"type\":\"integer\"}"
#define SHARE "{\"type\":[\"number\",\"null\"]}"
#define NUMBER "{\"type\":\"number\"}"
static const char schema[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/"
    "schema\",\"type\":\"object\",\"additionalProperties\":false,\n"
    "\"required\":[\"schema\",\"file\",\"verdict\",\"steps\",\"step_ms\",\"step_median_ms\",\"parts_ms\",\"idle_ms\","
    "\"missing\","
    "\"unjudged\",\"seen\","
    "\"gpu\",\"lines_by\",\"slowed_by\",\"evaluated\",\"prompts\",\"waited\","
    "\"findings\"],\n"
    "\"properties\":{\"schema\":{\"const\":1},\"file\":" TEXT ",\"steps\":" WHOLE ",\"step_ms\":" NUMBER
    ",\"step_median_ms\":" NUMBER ",\n"
    "\"verdict\":{\"enum\":[\"found\",\"incomplete\",\"healthy\",\"nothing found\"]},\n"
    "\"parts_ms\":" NUMBERS ",\"idle_ms\":" NUMBERS ",\"missing\":" MAYBE
    ",\"unjudged\":{\"type\":\"array\",\"items\":" TEXT "},\n"
    "\"gpu\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\",\"additionalProperties\":false,\n"
    "\"required\":[\"busy\",\"sm_efficiency\",\"occupancy\",\"tensor_cores\",\"communication_hidden\","
    "\"queue_most\"],\n"
    "\"properties\":{\"busy\":" SHARE ",\"sm_efficiency\":" SHARE ",\"occupancy\":" SHARE ",\"tensor_cores\":" SHARE
    ",\"communication_hidden\":" SHARE ",\"queue_most\":" WHOLE "}}]},\n"
    "\"seen\":" MAYBE ",\"lines_by\":" MAYBE ",\"slowed_by\":" MAYBE ",\"evaluated\":" MAYBE ",\"prompts\":" MAYBE
    ",\"waited\":" MAYBE ",\n"
    "\"findings\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,\n"
    "\"required\":[\"id\",\"severity\",\"step_ms\",\"share\",\"step_bytes\",\"steps\",\"what\",\"where\",\"module\","
    "\"frame\","
    "\"line\",\"after\","
    "\"change\"],\n"
    "\"properties\":{\"id\":" TEXT ",\"severity\":{\"enum\":[\"warning\",\"critical\"]},\"step_ms\":" NUMBER
    ",\"share\":" NUMBER ",\"step_bytes\":" NUMBER ",\"steps\":" WHOLE ",\n"
    "\"what\":" TEXT ",\"where\":" MAYBE ",\"module\":" MAYBE ",\"frame\":" MAYBE ",\"line\":" MAYBE ",\"after\":" MAYBE
    ",\"change\":" TEXT "}}}}}\n";

static const char *verdict_of(const struct kp_advice *a)
{
    if (a->count) return "found";
    if (a->missing) return "incomplete";
    return a->is_healthy ? "healthy" : "nothing found";
}

static void line_print(const char *key, const char *text, const char *more)
{
    if (!text) return;
    printf("    %-7s ", key);
    kp_plain_put(stdout, text);
    if (more) {
        fputs(", after ", stdout);
        kp_plain_put(stdout, more);
    }
    fputs("\n", stdout);
}

/* Idle time lies between two ops. That of a loader is told by the line that asks it. */
static void between_print(const struct kp_finding *f)
{
    printf("    %-7s between ", "line");
    kp_plain_put(stdout, f->after);
    fputs(" and ", stdout);
    kp_plain_put(stdout, f->line);
    fputs("\n", stdout);
}

static void finding_print(const struct kp_finding *f, size_t of)
{
    char size[32];
    printf("%s  ", f->is_critical ? "CRITICAL" : "WARNING");
    kp_plain_put(stdout, f->what);
    if (f->step_ns > 0) printf(": %.3f ms a step, %.1f %%", f->step_ns / 1e6, 100 * f->share);
    else if (f->step_bytes > 0) printf(": %s", kp_units_bytes(size, sizeof size, (int64_t)f->step_bytes));
    printf(" (%zu of %zu steps)\n", f->steps, of);
    line_print("where", f->where, NULL);
    line_print("module", f->module, NULL);
    if (f->line && f->after && !(f->where && kp_kineto_is_loader(f->where))) between_print(f);
    else line_print("line", f->line ? f->line : f->frame, f->after);
    printf("    change  %s\n", f->change);
}

static const char *share_put(const char *before, double share, const char *what)
{
    if (share < 0) return before;
    printf("%s%.1f %% %s", before, 100 * share, what);
    return ", ";
}

/* What TensorBoard's plugin and HolisticTraceAnalysis tell of a GPU. */
static void gpu_print(const struct kp_gpu_figures *gpu)
{
    const char *before = share_put("gpu      ", gpu->busy, "busy");
    before = share_put(before, gpu->sm_efficiency, "of multiprocessors");
    before = share_put(before, gpu->occupancy, "occupancy");
    before = share_put(before, gpu->tensor_cores, "of kernel time with tensor cores");
    before = share_put(before, gpu->comm_hidden, "of communication beside compute");
    if (before[0] == ',') printf(", at most %zu launches wait\n", gpu->queue_most);
}

static void causes_print(const struct kp_advice *a)
{
    const char *before = "idle     ";
    for (int c = 0; c < KP_IDLE_CAUSES; c++) {
        if (a->cause_ns[c] < a->step_ns / 1000) continue;
        printf("%s%s %.1f %%", before, cause_names[c], 100 * a->cause_ns[c] / a->step_ns);
        before = ", ";
    }
    if (before[0] == ',') fputs(" of a step\n", stdout);
}

/* Settings that were off are no fault of the run, so they are the last line. */
static void unjudged_print(const struct kp_advice *a)
{
    const char *before = "not looked at: ";
    for (size_t i = 0; i < a->unjudged_count; i++) {
        fputs(before, stdout);
        kp_plain_put(stdout, a->unjudged[i]);
        before = ", ";
    }
    if (before[0] == ',') fputs("\n", stdout);
    if (!a->seen) return;
    fputs("seen, small: ", stdout);
    kp_plain_put(stdout, a->seen);
    fputs("\n", stdout);
}

/* As kprof report does, with both where they differ. */
static void step_print(const struct kp_advice *a)
{
    const double apart = a->step_ns - a->median_ns;
    if (apart > a->median_ns / 10 || apart < -a->median_ns / 10)
        printf("a step   %.3f ms (median of %zu; mean %.3f ms, and of that)", a->median_ns / 1e6, a->steps,
               a->step_ns / 1e6);
    else printf("a step   %.3f ms (mean of %zu)", a->step_ns / 1e6, a->steps);
}

/* Where the trace marks no steps, readers count loops, and what follows the optimizer is of the next one. */
static void optimizer_print(const struct kp_chosen *chosen)
{
    if (!chosen->is_by_optimizer || !chosen->step_count) return;
    const long number = chosen->steps[chosen->step_count - 1].number;
    printf("steps    step %ld: from the end of optimizer step %ld to the end of %ld, counted from 0\n", number,
           number - 1, number);
}

static void advice_print(const struct kp_advice *a, const struct kp_chosen *chosen)
{
    const double percent = a->step_ns > 0 ? 100 / a->step_ns : 0;
    if (a->steps) {
        step_print(a);
        printf(": compute %.1f %%, data loading %.1f %%", a->mean_ns[KP_SPLIT_COMPUTE] * percent,
               a->mean_ns[KP_SPLIT_LOADING] * percent);
        if (a->has_gpu || a->mean_ns[KP_SPLIT_COMM] > 0)
            printf(", exposed communication %.1f %%", a->mean_ns[KP_SPLIT_COMM] * percent);
        if (a->has_gpu) printf(", exposed copies %.1f %%", a->mean_ns[KP_SPLIT_COPIES] * percent);
        printf(", %s %.1f %%\n", a->has_gpu ? "idle" : "no op", a->mean_ns[KP_SPLIT_IDLE] * percent);
        optimizer_print(chosen);
        if (a->has_gpu) causes_print(a);
        if (a->has_gpu) gpu_print(&a->gpu);
    }
    for (size_t i = 0; i < a->count; i++) finding_print(&a->findings[i], a->steps);
    if (a->lines_by) printf("note     %s\n", a->lines_by);
    if (a->slowed_by) printf("note     %s\n", a->slowed_by);
    if (a->evaluated) printf("note     %s\n", a->evaluated);
    if (a->prompts) printf("note     %s\n", a->prompts);
    if (a->waited) {
        fputs("note     ", stdout);
        kp_plain_put(stdout, a->waited);
        fputs("\n", stdout);
    }
    if (a->is_unrecorded) printf("%s\n", a->is_well ? "healthy" : "nothing found");
    else if (a->missing) printf("INCOMPLETE  %s\n", a->missing);
    else if (!a->count) printf("%s\n", verdict_of(a));
    unjudged_print(a);
}

static void json_text(const char *text)
{
    if (text) kp_plain_json(stdout, text);
    else fputs("null", stdout);
}

static void json_member(const char *key, const char *text)
{
    printf(",\"%s\":", key);
    json_text(text);
}

static void json_share(const char *key, double share, const char *after)
{
    if (share < 0) printf("\"%s\":null%s", key, after);
    else printf("\"%s\":%.6f%s", key, share, after);
}

static void json_gpu(const struct kp_gpu_figures *gpu)
{
    fputs(",\"gpu\":{", stdout);
    json_share("busy", gpu->busy, ",");
    json_share("sm_efficiency", gpu->sm_efficiency, ",");
    json_share("occupancy", gpu->occupancy, ",");
    json_share("tensor_cores", gpu->tensor_cores, ",");
    json_share("communication_hidden", gpu->comm_hidden, ",");
    printf("\"queue_most\":%zu}", gpu->queue_most);
}

static void json_finding(const struct kp_finding *f)
{
    printf("{\"id\":\"%s\",\"severity\":\"%s\",\"step_ms\":%.6f,\"share\":%.6f,\"step_bytes\":%.0f,\"steps\":%zu",
           f->id, f->is_critical ? "critical" : "warning", f->step_ns / 1e6, f->share, f->step_bytes, f->steps);
    json_member("what", f->what);
    json_member("where", f->where);
    json_member("module", f->module);
    json_member("frame", f->frame);
    json_member("line", f->line);
    json_member("after", f->after);
    json_member("change", f->change);
    fputs("}", stdout);
}

static void json_print(const struct kp_advice *a, const char *label)
{
    fputs("{\"schema\":1,\"file\":", stdout);
    kp_plain_json(stdout, label);
    printf(",\"verdict\":\"%s\",\"steps\":%zu,\"step_ms\":%.6f,\"step_median_ms\":%.6f,\"parts_ms\":{", verdict_of(a),
           a->steps, a->step_ns / 1e6, a->median_ns / 1e6);
    for (int p = 0; p < KP_SPLIT_PARTS; p++) printf("%s\"%s\":%.6f", p ? "," : "", part_names[p], a->mean_ns[p] / 1e6);
    fputs("},\"idle_ms\":{", stdout);
    for (int c = 0; c < KP_IDLE_CAUSES; c++)
        printf("%s\"%s\":%.6f", c ? "," : "", cause_names[c], a->cause_ns[c] / 1e6);
    fputs("}", stdout);
    json_member("missing", a->missing);
    fputs(",\"unjudged\":[", stdout);
    for (size_t i = 0; i < a->unjudged_count; i++) {
        if (i) fputs(",", stdout);
        json_text(a->unjudged[i]);
    }
    fputs("]", stdout);
    json_member("seen", a->seen);
    if (a->has_gpu && a->steps) json_gpu(&a->gpu);
    else fputs(",\"gpu\":null", stdout);
    json_member("lines_by", a->lines_by);
    json_member("slowed_by", a->slowed_by);
    json_member("evaluated", a->evaluated);
    json_member("prompts", a->prompts);
    json_member("waited", a->waited);
    fputs(",\"findings\":[", stdout);
    for (size_t i = 0; i < a->count; i++) {
        if (i) fputs(",", stdout);
        json_finding(&a->findings[i]);
    }
    fputs("]}\n", stdout);
}

struct advise_command {
    bool is_json, partial, has_communication; /* has_communication: some finding is of it */
    struct kp_rankwaits ranks;
    struct kp_phasetraces phases; /* of several traces those of phases: a block for each phase */
};

/* The process died before it could close the window. */
static bool is_killed(const struct kp_advised *a)
{
    const char *complete = kp_kineto_fact(a->trace, "kprof.complete");
    return complete && strcmp(complete, "0") == 0;
}

static void killed_print(const struct kp_advised *a)
{
    if (!is_killed(a) || !a->chosen.step_count) return;
    printf("killed   or interrupted after step %ld: what was recorded until then\n",
           a->chosen.steps[a->chosen.step_count - 1].number);
}

/* Nothing lacks in how it was recorded: the program had no time for a step. The text is of `room`. */
static void early_tell(struct kp_advised *a, char *room, size_t bytes)
{
    const struct kp_chosen *c = &a->chosen;
    if (!is_killed(a) || c->step_count || c->optimizer_steps || c->parts.has_startup || c->parts.has_cut ||
        !c->spans.count)
        return;
    snprintf(room, bytes, "no steps in it: the program was killed or interrupted %.1f s in, before its first step",
             (double)(c->spans.of[c->spans.count - 1].end_ns - c->spans.of[0].start_ns) / 1e9);
    a->advice.missing = room;
}

static void communication_see(struct advise_command *command, const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        command->has_communication |= strcmp(a->findings[i].id, "exposed-communication") == 0;
}

/* What the traces of one phase say together. */
static int phase_print(struct advise_command *command, struct kp_phasetrace *p)
{
    struct kp_advised advised;
    char why[512];
    const int rc = kp_advised_of(&advised, p->trace, p->phase, why, sizeof why);
    p->trace = NULL;
    if (rc == 0) {
        fputs("phase    ", stdout);
        kp_plain_put(stdout, p->phase);
        if (p->rank) printf(" of rank %s", p->rank);
        printf(": %zu step%s in %zu trace%s\n", advised.advice.steps, advised.advice.steps == 1 ? "" : "s", p->traces,
               p->traces == 1 ? "" : "s");
        advice_print(&advised.advice, &advised.chosen);
        communication_see(command, &advised.advice);
    }
    kp_advised_close(&advised);
    return rc ? kp_cli_fail("advise", "%s", why) : KP_EXIT_DONE;
}

static int phases_print(struct advise_command *command, int worst)
{
    for (size_t i = 0; i < command->phases.count; i++)
        if (phase_print(command, &command->phases.of[i]) != KP_EXIT_DONE) worst = KP_EXIT_BAD_INPUT;
    kp_phasetraces_fini(&command->phases);
    return worst;
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct advise_command *const command = context;
    const bool is_json = command->is_json;
    const struct kp_texts texts = kp_trace_source_texts(source);
    struct kp_advised advised;
    char why[512], early[128];
    const int rc = kp_advised_open(&advised, &texts, source->path, command->partial, why, sizeof why);
    const bool is_torn = rc && advised.trace && advised.trace->torn;
    if (advised.is_part && rc == 0) kp_cli_say(stderr, "kprof: %s", why);
    if (rc == 0) kp_rankwaits_add(&command->ranks, &advised.tree, &advised.chosen);
    if (rc == 0 && several && !is_json && kp_phasetraces_take(&command->phases, &advised.trace)) {
        kp_advised_close(&advised);
        return KP_EXIT_DONE;
    }
    if (rc == 0) {
        if (!source->is_spool) early_tell(&advised, early, sizeof early);
        if (!source->is_spool) kp_heapadvice_add(&advised, source->path);
        if (several && !is_json) kp_cli_say(stdout, "%s", source->label);
        if (is_json) json_print(&advised.advice, source->label);
        else if (kp_otheradvice_is_meant(&advised)) kp_otheradvice_print(&advised, source);
        else {
            if (!source->is_spool) killed_print(&advised);
            advice_print(&advised.advice, &advised.chosen);
            if (!source->is_spool) kp_workers_print(&advised, source->path);
        }
        communication_see(command, &advised.advice);
    }
    kp_advised_close(&advised);
    return rc ? kp_cli_fail("advise", "%s%s", why, is_torn ? "; --partial judges those" : "") : KP_EXIT_DONE;
}

/* What the others spend in collectives is the wait for a late rank: less of it needs no overlap. */
static void ranks_print(const struct advise_command *command)
{
    const struct kp_rankwaits *ranks = &command->ranks;
    kp_rankwaits_print(stdout, ranks);
    if (command->has_communication && ranks->matched && !kp_rankwaits_has_late(ranks))
        fputs("         none of them is late alone: let communication overlap with backward: DDP(..., "
              "bucket_cap_mb=N)\n",
              stdout);
}

int kp_cmd_advise(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "advise", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct advise_command command = {0};
    const char *value;
    int count = 0, i;
    while ((i = kp_opt_next(&scan, &value)) != KP_OPT_END) {
        switch (i) {
        case 0: command.is_json = true; break;
        case 1: fputs(schema, stdout); return KP_EXIT_DONE;
        case 2: command.partial = true; break;
        case KP_OPT_ARGUMENT: argv[count++] = (char *)value; break; /* that word was read already */
        case KP_OPT_HELP: return kp_cli_help("advise", flags);
        default: return KP_EXIT_USAGE;
        }
    }
    count = kp_latest_take("advise", &argv, count, 0);
    if (!count) return KP_EXIT_USAGE;
    const int worst = phases_print(&command, kp_input_each("advise", argv, count, NULL, trace_take, &command));
    kp_rankwaits_settle(&command.ranks);
    if (!command.is_json) ranks_print(&command);
    kp_rankwaits_fini(&command.ranks);
    return worst;
}

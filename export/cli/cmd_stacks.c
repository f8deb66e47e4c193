// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_stacks.c - `kprof stacks`: call paths that sum to the wall time, folded or as a flame graph
 *
 * With --torch it prints torch's export_stacks instead, letter for letter.
 */
#include "export/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/files/budget.h"
#include "export/answers/jobs/latest.h"
#include "export/read/symbols/lines.h"
#include "export/read/files/outfile.h"
#include "export/read/folder/trace_source.h"
#include "export/read/tree/chosen.h"
#include "export/answers/stacks/flame.h"
#include "export/answers/torchtable/keyavg.h"
#include "export/show/units.h"
#include "export/answers/stacks/walltime.h"
#include "export/read/kineto/overlaps.h"

enum { FRAME_BYTES = 8192 }; /* of a frame in JSON */
#define TEXT_MOST (UINT64_C(32) << 20)
enum form { FORM_FOLDED, FORM_SVG, FORM_HTML, FORM_JSON };
struct stacks_command {
    char **files;
    int count;
    struct kp_lines_options wish;
    const struct kp_places *places; /* of frames of machine code */
    const char *metric, *out;
    char label[512]; /* of the last trace */
    char name[512];  /* its script, or its file */
    char steps[80];  /* which of it are shown, or "" */
    struct kp_choice choice;
    bool all_steps, all_paths, is_torch, on_device, partial;
    enum form form;
    struct kp_wall_options wall;
    struct kp_calltree *paths;
    struct kp_flame *flame; /* NULL: folded */
    FILE *to;
    struct kp_jsonout *json; /* NULL: another form */
    int traces, stacks, worst;
    int64_t wall_ns;
};

enum { METRIC, SVG, HTML, OUT, BACKWARD, STEP, ALL_PATHS, THREADS, TORCH, LINES, DEBUGINFO_PATH, JSON, PARTIAL };
#define INTO(member) KP_OPT_INTO(struct stacks_command, member)
static const struct kp_opt flags[] = {
    [METRIC] = {"metric", 'm', KP_OPT_VALUE, "METRIC",
                "cpu, gpu or memory; default cpu, the wall time of the main thread", INTO(metric)},
    [SVG] = {"svg", 0, KP_OPT_FLAG, NULL, "a flame graph that opens in a browser", 0},
    [HTML] = {"html", 0, KP_OPT_FLAG, NULL, "the same as a page", 0},
    [OUT] = {"out", 'o', KP_OPT_VALUE, "OUT",
             "write to a file (default: stdout; on a terminal --svg and --html write flames.svg and flames.html beside "
             "the trace); a name that ends in .svg, .html or .json needs no such flag",
             INTO(out)},
    [BACKWARD] = {"backward-at", 0, KP_OPT_VALUE, "WHERE",
                  "where backward ops appear: run or forward; run, the default, is the line that ran, forward that of "
                  "their forward op",
                  0},
    [STEP] = {"step", 0, KP_OPT_VALUE, "A-B",
              "only ProfilerStep#A to #B; A alone: one step; all: the whole trace (default: its steps, where it has "
              "some, or all of a phase)",
              0},
    [ALL_PATHS] = {"all-paths", 0, KP_OPT_FLAG, NULL,
                   "every path, however small; else, beyond 32 MB of text, small ones are added to their callers",
                   INTO(all_paths)},
    [THREADS] = {"threads", 0, KP_OPT_FLAG, NULL, "also other threads, under a root of their own", INTO(wall.threads)},
    [TORCH] =
        {"torch", 0, KP_OPT_FLAG, NULL,
         "torch's export_stacks, letter for letter; METRIC is self_cpu_time_total (default) or self_cuda_time_total",
         INTO(is_torch)},
    KP_LINES_OPTIONS("off; of spools only", INTO(wish.lines), INTO(wish.debug_path)),
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL, "the same as one JSON object: each path with its frames", 0},
    [PARTIAL] = {"partial", 0, KP_OPT_FLAG, NULL, "show what is there of a file that ends early", INTO(partial)},
    {0}};

struct stack_line {
    const char *path;
    int64_t value;
};

static void frames_put(struct kp_jsonout *j, const char *key, const struct stack_line *r)
{
    kp_jsonout_open(j, key, '[');
    for (const char *at = r->path, *end; *at; at = end + (*end == ';')) {
        char frame[FRAME_BYTES];
        end = strchrnul(at, ';');
        snprintf(frame, sizeof frame, "%.*s", (int)(end - at < FRAME_BYTES ? end - at : FRAME_BYTES - 1), at);
        kp_jsonout_text(j, NULL, frame);
    }
    kp_jsonout_close(j, ']');
}

#define STACK(F, IF)          \
    F(WHOLE, value, r->value) \
    F(OTHER, frames, (KP_TYPE_ARRAY(KP_TYPE("string")), frames_put, r))
KP_FIELDS(path, struct stack_line, STACK)

/* A kp_folded_fn and a kp_path_fn. Walking through stacks takes as long as printing them. */
static void stack_put(void *context, const char *stack, int64_t value)
{
    struct stacks_command *s = context;
    kp_budget_print(strlen(stack));
    if (s->flame) kp_flame_add(s->flame, stack, value);
    else if (s->json) kp_fields_put(s->json, NULL, &path_fields, &(struct stack_line){stack, value});
    else fprintf(s->to, "%s %lld\n", stack, (long long)value);
    s->stacks++;
}

static void torch_add(struct stacks_command *s, struct kp_tree *tree)
{
    const int had = s->stacks;
    kp_tree_fill_stacks(tree, true);
    kp_tree_set_stacks(tree);
    kp_folded_walk(tree, s->on_device, stack_put, s);
    if (s->stacks == had)
        kp_cli_say(stderr,
                   "kprof stacks: %s: no call stacks that cost anything; record with KPROF_WITH_STACK=1, ops or native",
                   s->label);
}

/* A user wants to see the steps, or all of a phase, as in its report. The parts left out are named. */
static void steps_show(struct stacks_command *s, const struct kp_chosen *chosen)
{
    const size_t n = chosen->step_count;
    const bool is_asked = s->choice.first_step >= 0;
    int64_t before_ns, after_ns;
    s->wall.within = NULL;
    s->steps[0] = 0;
    if (s->all_steps || !n || (!is_asked && !kp_chosen_is_of_steps(chosen))) return;
    s->wall.within = &chosen->in_steps;
    kp_units_steps(s->steps, sizeof s->steps, chosen->steps[0].number, chosen->steps[n - 1].number);
    if (is_asked) return;
    kp_chosen_outside(chosen, &before_ns, &after_ns);
    kp_cli_say(stderr, "kprof stacks: %s: %s; %.1f ms before and %.1f ms after are left out; --step all shows all",
               s->label, s->steps, (double)before_ns / 1e6, (double)after_ns / 1e6);
}

static void told_say(struct stacks_command *s, const struct kp_wall_told *told)
{
    s->wall_ns += told->wall_ns;
    if (!told->has_frames)
        kp_cli_say(stderr, "kprof stacks: %s: no Python frames; record with --with-stack (KPROF_WITH_STACK=ops)",
                   s->label);
    if (told->threads && s->wall.metric == KP_WALL_CPU && !s->wall.threads)
        kp_cli_say(stderr, "kprof stacks: %s: %zu other thread%s, %.1f ms in calls, left out; --threads shows %s",
                   s->label, told->threads, kp_units_s(told->threads), (double)told->threads_ns / 1e6,
                   told->threads == 1 ? "it" : "them");
}

static int wall_add(struct stacks_command *s, struct kp_tree *tree)
{
    struct kp_wall_told told;
    struct kp_chosen chosen;
    char why[512];
    if (kp_chosen_make(&chosen, tree, &s->choice, why, sizeof why) != 0) {
        kp_chosen_fini(&chosen);
        return kp_cli_fail("stacks", "%s: %s", s->label, why);
    }
    steps_show(s, &chosen);
    kp_tree_set_forward_stacks(tree);
    kp_wall_add(s->paths, tree, &s->wall, &told);
    kp_chosen_fini(&chosen);
    told_say(s, &told);
    return KP_EXIT_DONE;
}

static void names_note(struct stacks_command *s, const struct kp_kineto *trace, const struct kp_trace_source *source)
{
    const char *const script = kp_kineto_fact(trace, "kprof.script");
    snprintf(s->label, sizeof s->label, "%s", source->label);
    snprintf(s->name, sizeof s->name, "%s", script ? script : kp_path_base(source->label));
}

static void pieces_end(struct stacks_command *s, struct kp_wallpieces *pieces, struct kp_kineto *rest)
{
    struct kp_wall_told told;
    struct kp_chosen chosen;
    struct kp_calltree *const paths = kp_wallpieces_end(pieces, rest, &told, &chosen);
    if (!paths) return;
    kp_calltree_close(s->paths);
    s->paths = paths;
    steps_show(s, &chosen);
    told_say(s, &told);
    s->traces++;
    kp_chosen_fini(&chosen);
}

/* Adds a single trace in pieces, where that can be. Else *whole is the trace, or NULL: it is not read. */
static void pieces_take(struct stacks_command *s, const struct kp_trace_source *source, struct kp_kineto **whole)
{
    const bool is_time = !s->is_torch && s->wall.metric != KP_WALL_MEMORY;
    struct kp_wallpieces *pieces = NULL;
    struct kp_kineto *trace = NULL;
    char why[512];
    if (is_time && !s->partial && s->choice.first_step < 0) pieces = kp_wallpieces_open(&s->wall, s->all_steps);
    if (!pieces) return;
    const int rc = kp_trace_source_read(source, &trace, kp_wallpieces_reading(pieces), why, sizeof why);
    const bool is_whole = !kp_wallpieces_reading(pieces)->has_given;
    if (rc == 0) names_note(s, trace, source);
    if (rc == 0 && !is_whole) pieces_end(s, pieces, trace);
    if (rc == 0 && is_whole) *whole = trace;
    else kp_kineto_close(trace);
    kp_wallpieces_close(pieces);
}

static int trace_take(void *context, const struct kp_trace_source *source, bool several)
{
    struct stacks_command *s = context;
    struct kp_kineto *trace = NULL;
    struct kp_tree tree;
    int rc = KP_EXIT_DONE;
    if (!several) pieces_take(s, source, &trace);
    if (!several && s->traces) return rc;
    struct kp_trace_source of = *source;
    of.is_verbatim = s->is_torch;
    if (!trace) rc = kp_trace_source_show("stacks", &of, s->partial, true, &trace);
    if (rc != KP_EXIT_DONE) return rc;
    names_note(s, trace, source);
    if (!s->is_torch) kp_kineto_works_settle(trace);
    if (kp_tree_build(&tree, trace) < 0) {
        kp_kineto_close(trace);
        return kp_cli_fail("stacks", "%s: too many events", source->label);
    }
    if (s->is_torch) torch_add(s, &tree);
    else rc = wall_add(s, &tree);
    s->traces += rc == KP_EXIT_DONE;
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return rc;
}

/* ---- what is written ---- */

static void title_make(const struct stacks_command *s, char *out, size_t room)
{
    static const char *const what[] = {[KP_WALL_CPU] = "wall time of the main thread",
                                       [KP_WALL_GPU] = "time on GPUs",
                                       [KP_WALL_MEMORY] = "bytes allocated"};
    char of[512];
    if (s->traces == 1) snprintf(of, sizeof of, "%s", s->name);
    else snprintf(of, sizeof of, "%d traces", s->traces);
    if (s->is_torch) snprintf(out, room, "%s, %s (export_stacks)", of, s->metric);
    else
        snprintf(out, room, "%s%s%s: %s; backward at the %s", of, s->traces == 1 && s->steps[0] ? ", " : "",
                 s->traces == 1 ? s->steps : "", what[s->wall.metric],
                 s->wall.at_forward ? "forward lines that caused it" : "line that ran");
}

static void flame_put(struct stacks_command *s)
{
    char title[1024];
    title_make(s, title, sizeof title);
    const struct kp_flame_show show = {.title = title,
                                       .unit = s->wall.metric == KP_WALL_MEMORY ? KP_FLAME_BYTES : KP_FLAME_US,
                                       .has_parts = !s->is_torch,
                                       .is_page = s->form == FORM_HTML};
    kp_flame_write(s->flame, s->to, &show);
}

/* A run of minutes with every Python call has a gigabyte of paths that took microseconds. */
static void small_fold(const struct stacks_command *s)
{
    struct kp_calltree_folded folded;
    if (s->all_paths) return;
    kp_calltree_fold(s->paths, TEXT_MOST, &folded);
    if (!folded.paths) return;
    const bool is_bytes = s->wall.metric == KP_WALL_MEMORY;
    kp_cli_say(stderr,
               "kprof stacks: %zu path%s of less than %.3f %s each are added to their callers; --all-paths shows them",
               folded.paths, kp_units_s(folded.paths), (double)folded.below / (is_bytes ? 1048576 : 1e6),
               is_bytes ? "MiB" : "ms");
}

/* The steps that were asked for are in none of the traces. */
static int none_say(const struct stacks_command *s)
{
    const char *const need = s->wall.metric == KP_WALL_GPU      ? KP_NEED_GPU
                             : s->wall.metric == KP_WALL_MEMORY ? KP_NEED_MEMORY
                                                                : "nothing to show as cpu";
    kp_cli_say(stderr, "kprof stacks: %s: %s", s->label, need);
    return KP_EXIT_BAD_INPUT;
}

static void stacks_make(struct stacks_command *s)
{
    s->worst = kp_input_each("stacks", s->files, s->count, s->places, trace_take, s);
    if (s->worst == KP_EXIT_USAGE || !s->traces) return;
    if (!s->is_torch) {
        const int64_t unit = s->wall.metric == KP_WALL_MEMORY ? 1 : 1000;
        small_fold(s);
        kp_calltree_each(s->paths, unit, stack_put, s);
        if (!s->stacks) s->worst = none_say(s);
    }
    if (s->flame) flame_put(s);
}

static void stacks_put(struct kp_jsonout *j, const char *key, struct stacks_command *s)
{
    s->json = j;
    kp_jsonout_open(j, key, '[');
    stacks_make(s);
    kp_jsonout_close(j, ']');
}

struct stacks_answer {
    struct stacks_command *command;
};
#define IS_OF_BYTES !r->command->is_torch && r->command->wall.metric == KP_WALL_MEMORY
#define STACKS(F, IF)                                         \
    F(TEXT, metric, r->command->metric)                       \
    F(WORD, unit, (IS_OF_BYTES ? "bytes" : "us", "bytes|us")) \
    F(EACH_OF, stacks, (path, stacks_put, r->command))        \
    F(WHOLE, traces, r->command->traces)                      \
    IF(r->command->traces, FIXED, wall_us, (3, (double)r->command->wall_ns / 1e3))
KP_FIELDS(answer, struct stacks_answer, STACKS)

const struct kp_fields *const kp_stacks_schema = &answer_fields;

static int stacks_write(struct stacks_command *s)
{
    struct kp_outfile file;
    if (kp_outfile_open(&file, s->out)) return kp_outfile_fail("stacks", &file);
    s->to = file.to;
    s->paths = kp_calltree_open();
    s->flame = s->form == FORM_FOLDED || s->form == FORM_JSON ? NULL : kp_flame_open();
    if (s->form == FORM_JSON) kp_fields_line(s->to, &answer_fields, &(struct stacks_answer){s});
    else stacks_make(s);
    const bool is_any = s->traces && (s->stacks || s->is_torch), is_drawn = s->flame;
    if (s->flame) kp_flame_close(s->flame);
    kp_calltree_close(s->paths);
    if (kp_outfile_close(&file, is_any)) return kp_outfile_fail("stacks", &file);
    if (is_any && is_drawn) kp_outfile_tell_drawing(s->out);
    else if (is_any) kp_outfile_tell(s->out);
    return s->worst;
}

/* ---- the command line ---- */

static int metric_read(struct stacks_command *s)
{
    static const char *const names[] = {[KP_WALL_CPU] = "cpu", [KP_WALL_GPU] = "gpu", [KP_WALL_MEMORY] = "memory"};
    if (!s->metric) s->metric = s->is_torch ? "self_cpu_time_total" : "cpu";
    if (s->is_torch && kp_folded_metric(s->metric, &s->on_device)) return KP_EXIT_DONE;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !s->is_torch; i++)
        if (strcmp(s->metric, names[i]) == 0) {
            s->wall.metric = (enum kp_wall_metric)i;
            return KP_EXIT_DONE;
        }
    return kp_cli_misuse(
        "stacks", "--metric is %s, not %s",
        s->is_torch ? "self_cpu_time_total or self_cuda_time_total with --torch" : "cpu, gpu or memory", s->metric);
}

static int backward_read(struct stacks_command *s, const char *value)
{
    if (strcmp(value, "run") != 0 && strcmp(value, "forward") != 0)
        return kp_cli_misuse("stacks", "--backward-at is run or forward, not %s", value);
    s->wall.at_forward = *value == 'f';
    return KP_EXIT_DONE;
}

static int form_set(struct stacks_command *s, int flag)
{
    const enum form form = flag == SVG ? FORM_SVG : flag == HTML ? FORM_HTML : FORM_JSON;
    if (s->form != FORM_FOLDED && s->form != form)
        return kp_cli_misuse("stacks", "--svg, --html and --json do not go together");
    s->form = form;
    return KP_EXIT_DONE;
}

/* The name of OUT chooses the format if no flag does. */
static void form_read(struct stacks_command *s)
{
    static const char *const endings[] = {[FORM_SVG] = "svg", [FORM_HTML] = "html", [FORM_JSON] = "json"};
    if (s->form == FORM_FOLDED && !s->is_torch)
        s->form = (enum form)kp_outfile_form(s->out, endings, sizeof endings / sizeof *endings, s->form);
}

/* The flags that --torch has no answer to. KP_EXIT_USAGE: it was said. */
static int torch_check(const struct stacks_command *s)
{
    if (!s->is_torch || (s->choice.first_step < 0 && !s->all_steps)) return KP_EXIT_DONE;
    return kp_cli_misuse("stacks", "--step does not go with --torch, torch's own export_stacks");
}

static int stacks_run(struct stacks_command *s)
{
    s->count = kp_latest_take("stacks", &s->files, s->count, s->wish.lines ? KP_LATEST_SPOOL : 0);
    if (!s->count) return KP_EXIT_USAGE;
    if (s->form == FORM_SVG || s->form == FORM_HTML)
        s->out = kp_outfile_drawing(s->out, s->files[0], s->form == FORM_SVG ? "flames.svg" : "flames.html");
    struct kp_lines *const lines = kp_lines_open("stacks", &s->wish);
    s->places = kp_lines_places(lines);
    const int worst = stacks_write(s);
    kp_lines_close(lines);
    return worst;
}

static int option_take(void *command, const struct kp_opt_scan *scan, int id, const char *value)
{
    struct stacks_command *const s = command;
    if (id == BACKWARD) return backward_read(s, value);
    if (id != STEP) return form_set(s, id);
    return kp_opt_steps_or_all(scan->command, value, &s->choice.first_step, &s->choice.last_step, &s->all_steps);
}

int kp_cmd_stacks(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "stacks", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct stacks_command s = {.choice = {.first_step = -1, .last_step = -1}, .files = argv};
    const int i = kp_opt_flags(&scan, &s, option_take);
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (metric_read(&s) || torch_check(&s)) return KP_EXIT_USAGE;
    form_read(&s);
    s.count = scan.count;
    return stacks_run(&s);
}

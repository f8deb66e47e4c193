// SPDX-License-Identifier: Apache-2.0
/* cmd_report.c - `kprof report`: where the time of a trace went, or torch's own table of it */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/advise/advice.h"
#include "export/answers/advise/parts/finding.h"
#include "export/answers/advise/stepkinds/steppieces.h"
#include "export/answers/advise/steplist.h"
#include "export/answers/ranks/lastwords.h"
#include "export/answers/ranks/rankjson.h"
#include "export/answers/runadvice/judged.h"
#include "export/answers/top/toprows.h"
#include "export/answers/top/toptable.h"
#include "export/cli/cli.h"
#include "export/answers/jobs/stood.h"
#include "export/answers/jobs/latest.h"
#include "export/cli/report_torch.h"
#include "export/read/folder/jobends.h"
#include "export/read/folder/phasetraces.h"
#include "export/read/folder/trace_source.h"
#include "export/read/frames/modulename.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/overlaps.h"
#include "export/read/parse/kineto_parse.h"
#include "export/read/symbols/lines.h"
#include "export/show/units.h"

/* ---- holds what a command writes to stdout, until it is known what stands first ---- */

struct kp_heldout { /* all zero: nothing is held */
    FILE *out;
    char *text;
    size_t bytes;
};

/* From here on stdout is held. It is not if there is no memory. */
static void heldout_begin(struct kp_heldout *held)
{
    FILE *const to = open_memstream(&held->text, &held->bytes);
    if (!to) return;
    held->out = stdout;
    stdout = to;
}

/* Gives it back: `first` (or nothing, NULL) and then all that was held. */
static void heldout_end(struct kp_heldout *held, const struct kp_stuck_told *first)
{
    FILE *const to = stdout;
    if (held->out) stdout = held->out;
    if (first) kp_stuck_put(stdout, first);
    if (!held->out) return;
    fclose(to);
    fwrite(held->text, 1, held->bytes, stdout);
    free(held->text);
    *held = (struct kp_heldout){0};
}

struct report_command {
    struct kp_report_torch torch;
    struct kp_choice choice;
    const char *sort;
    const char *by; /* NULL: what suits the sort */
    bool by_step;
    long most; /* rows, 0: all */
    bool has_most;
    bool is_torch, json, partial, all_steps;
    const char *phase;              /* of KPROF_PHASES, or NULL */
    char others[256];               /* phases that were met instead */
    bool is_met;                    /* a trace of that phase */
    struct kp_phaserows phases;     /* of several traces: the table is of one phase */
    struct kp_phasetraces of_phase; /* then all traces of that one, put together */
    bool is_within_phase;           /* --within named a phase, and nothing in it has that name */
    bool is_within_met;
    size_t within_missed; /* traces of phases without that name */
    char why_missed[512];
    struct kp_rankwaits ranks;
    struct kp_stuck stuck;
    char ended[KP_LASTWORDS_BYTES + 80]; /* of the trace at hand: kp_lastwords_ended */
    bool is_spool;                       /* the same */
    char path[4400];                     /* of its file */
    const char *ours;                    /* the last option that --torch has not, or NULL */
};

enum option_id { SORT, ROWS, TOP, LIMIT, BY, STEP, WITHIN, PHASE, FROM, TO, JSON, PARTIAL, TORCH, TORCH_FIRST };
enum { ROWS_DEFAULT = 20 };
#define TIME_MOST_NS (INT64_C(1) << 60)

#define INTO(member) KP_OPT_INTO(struct report_command, member)
static const struct kp_opt flags[] = {
    [SORT] = {"sort", 0, KP_OPT_VALUE, "KEY", "self, total, count, mem or gpu, descending; default self", 0},
    [ROWS] = {"rows", 'n', KP_OPT_VALUE, "N", "at most N rows; default 20, 0: all", 0},
    [TOP] = {"top", 0, KP_OPT_VALUE, "N", "the same as -n", 0},
    [LIMIT] = {"limit", 0, KP_OPT_VALUE, "N", "the same as -n", 0},
    [BY] = {"by", 0, KP_OPT_VALUE, "WHAT",
            "a row for each op, line, library, function, module, class, shape, kernel, symbol or step; line: your "
            "code's; library: the lines of libraries other than torch; function: a Python function; symbol: of "
            "KPROF_SYMBOLS; default op, with --sort mem shape",
            0},
    [STEP] = {"step", 0, KP_OPT_VALUE, "A-B",
              "only steps A to B; A alone: one step; all: with start-up and end (default: the steps)", 0},
    [WITHIN] = {"within", 0, KP_OPT_VALUE, "NAME",
                "only while a range, op, Python function or call of CUDA of that name runs; globs work: "
                "'train.py(12)*' is the function whose def is in line 12",
                0},
    [PHASE] = {"phase", 0, KP_OPT_VALUE, "NAME", "only the traces of that phase (of a run with --phases)", 0},
    [FROM] = {"from", 0, KP_OPT_VALUE, "US", "only from US microseconds after the profiler's start", 0},
    [TO] = {"to", 0, KP_OPT_VALUE, "US", "only up to US microseconds after the profiler's start", 0},
    [JSON] = {"json", 0, KP_OPT_FLAG, NULL,
              "the same numbers as JSON, a line per trace; of several ranks one more of them together", 0},
    [PARTIAL] = {"partial", 0, KP_OPT_FLAG, NULL, "report what is there of a file that ends early", INTO(partial)},
    [TORCH] = {"torch", 0, KP_OPT_FLAG, NULL, "torch's own table, key_averages().table(); each option below implies it",
               INTO(is_torch)},
    KP_REPORT_TORCH_OPTIONS,
    {0}};

/* ---- options ---- */

static const char *const sorts[] = {[KP_TOP_SELF] = "self",
                                    [KP_TOP_TOTAL] = "total",
                                    [KP_TOP_COUNT] = "count",
                                    [KP_TOP_MEM] = "mem",
                                    [KP_TOP_GPU] = "gpu"};
static const char *const bys[] = {[KP_TOP_BY_OP] = "op",           [KP_TOP_BY_LINE] = "line",
                                  [KP_TOP_BY_LIBRARY] = "library", [KP_TOP_BY_FUNCTION] = "function",
                                  [KP_TOP_BY_MODULE] = "module",   [KP_TOP_BY_CLASS] = "class",
                                  [KP_TOP_BY_SHAPE] = "shape",     [KP_TOP_BY_KERNEL] = "kernel",
                                  [KP_TOP_BY_SYMBOL] = "symbol"};
enum { SORTS = sizeof sorts / sizeof *sorts, BYS = sizeof bys / sizeof *bys };

/* Returns the index of a word, or -1. */
static int word_find(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0) return i;
    return -1;
}

static int sort_set(struct report_command *r, const char *text)
{
    r->sort = text;
    if (word_find(sorts, SORTS, text) >= 0) return 0;
    return kp_cli_misuse("report", "--sort is self, total, count, mem or gpu, not %s", text);
}

static int by_set(struct report_command *r, const char *text)
{
    r->by_step = strcmp(text, "step") == 0;
    r->by = r->by_step ? NULL : text;
    if (r->by_step) return 0;
    return word_find(bys, BYS, text) >= 0
               ? 0
               : kp_cli_misuse("report",
                               "--by is op, line, library, function, module, class, shape, kernel or step, not %s",
                               text);
}

static int rows_set(struct report_command *r, const char *flag, const char *text)
{
    r->has_most = true;
    return kp_report_number_set(&r->most, 0, flag, text);
}

static int time_set(int64_t *out, bool *has, const char *flag, const char *text)
{
    int64_t ns;
    if (kp_opt_time("report", flag, text, &ns, has)) return KP_EXIT_USAGE;
    *out = ns > TIME_MOST_NS ? TIME_MOST_NS : ns < -TIME_MOST_NS ? -TIME_MOST_NS : ns;
    return 0;
}

static int option_take(void *command, const struct kp_opt_scan *scan, int id, const char *value)
{
    struct report_command *const r = command;
    (void)scan;
    if (id >= TORCH_FIRST) return kp_report_torch_option(&r->torch, flags[id].name, value);
    if (id == ROWS || id == TOP || id == LIMIT) return rows_set(r, flags[id].name, value);
    r->ours = flags[id].name;
    switch (id) {
    case SORT: return sort_set(r, value);
    case BY: return by_set(r, value);
    case STEP: return kp_opt_steps_or_all("report", value, &r->choice.first_step, &r->choice.last_step, &r->all_steps);
    case WITHIN: r->choice.within = value; return 0;
    case PHASE: r->phase = value; return 0;
    case FROM: return time_set(&r->choice.from_ns, &r->choice.has_from, flags[id].name, value);
    case TO: return time_set(&r->choice.to_ns, &r->choice.has_to, flags[id].name, value);
    default: r->json = true; return 0;
    }
}

static int options_check(struct report_command *r)
{
    const struct kp_choice *const c = &r->choice;
    if (kp_opt_times_check("report", c->has_from && c->has_to, c->from_ns, c->to_ns)) return KP_EXIT_USAGE;
    if (r->torch.given) r->is_torch = true;
    if (r->is_torch && r->has_most) r->torch.table.row_limit = r->most ? r->most : -1;
    if (!r->is_torch || !r->ours) return 0;
    return kp_cli_misuse("report", "--%s does not go with --%s, torch's own table", r->ours,
                         r->torch.given ? r->torch.given : "torch");
}

/* ---- one trace ---- */

/* A grouping needs what the recording has. */
static int rows_check(const struct kp_top *top, const char *label)
{
    const char *need = NULL;
    if (top->sort == KP_TOP_MEM && !top->has_memory) need = KP_NEED_MEMORY;
    if (kp_top_is_by_line(top) && !top->has_lines && !top->trace->has_stacks)
        need = "no line of the program in it; record with --with-stack ops";
    if (top->by == KP_TOP_BY_FUNCTION && !top->has_calls && !top->trace->has_stacks)
        need = "no function of Python in it; record with --with-stack 1";
    if (top->by == KP_TOP_BY_SHAPE && !top->trace->record_shapes) need = "no shapes in it; record with --record-shapes";
    if (top->by == KP_TOP_BY_SYMBOL && !top->count) need = "no call of a symbol in it; record with --symbols GLOBS";
    if (top->by == KP_TOP_BY_KERNEL && !top->count) need = KP_NEED_GPU;
    if (top->sort == KP_TOP_GPU && !top->has_gpu) need = KP_NEED_GPU;
    if (kp_top_is_by_module(top) && top->count == 1 && !top->rows[0].name)
        need = "no nn.Module in it; record with --with-stack 1 (--with-modules has those of TorchScript alone)";
    if (need) kp_cli_say(stderr, "kprof: %s: %s", label, need);
    return need ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
}

static bool is_of_memory(const struct report_command *r) { return strcmp(r->sort, sorts[KP_TOP_MEM]) == 0; }

/* Who asks what takes the memory asks with which shapes, too. */
static enum kp_top_by by_of(const struct report_command *r, const struct kp_kineto *trace)
{
    if (r->by) return (enum kp_top_by)word_find(bys, BYS, r->by);
    return trace && is_of_memory(r) && trace->record_shapes ? KP_TOP_BY_SHAPE : KP_TOP_BY_OP;
}

struct top_numbers {
    struct kp_summary summary;
    struct kp_stepparts parts;
    struct kp_slowest slowest; /* nothing of a trace in pieces */
    struct kp_top top;
    struct kp_chosen chosen;
    const char *bound_by;
    double gpu_step_ns; /* the mean, of a GPU that its host is ahead of, or 0 */
    struct kp_advice_kinds kinds;
    const struct kp_steplist *steps; /* in place of the rows; NULL: they are shown */
};

/* No time was asked for: then what is shown is the steps, where the trace has some (decisions/090). */
static bool is_any_time(const struct report_command *r)
{
    const struct kp_choice *c = &r->choice;
    return !r->all_steps && c->first_step < 0 && !c->has_from && !c->has_to;
}

static bool is_unasked(const struct report_command *r) { return is_any_time(r) && !r->choice.within; }

/* If the rows are of steps, or of other time that was asked for, the time in no op is one of them. */
static bool wants_gap(const struct report_command *r, const struct top_numbers *n)
{
    if (r->choice.within) return false;
    return n->top.trace->windows || r->choice.has_from || r->choice.has_to || (n->summary.steps && !r->all_steps);
}

static int numbers_print(const struct report_command *r, const char *label, struct top_numbers *n)
{
    struct kp_kineto_windows *const windows = n->top.trace->windows;
    struct kp_kineto_runs runs = {0};
    if (windows && is_unasked(r)) kp_kineto_windows_runs(windows, &runs);
    if (runs.is_all) n->top.runs = runs.count;
    const struct kp_top_report report = {.label = label,
                                         .summary = &n->summary,
                                         .top = &n->top,
                                         .choice = &r->choice,
                                         .chosen = &n->chosen,
                                         .sort = r->sort,
                                         .by = bys[n->top.by],
                                         .most = (size_t)r->most,
                                         .runs = &runs,
                                         .parts = kp_stepparts_has(&n->parts) ? &n->parts : NULL,
                                         .slowest = &n->slowest,
                                         .bound_by = n->bound_by,
                                         .gpu_step_ns = n->gpu_step_ns,
                                         .evaluated = n->kinds.evaluated,
                                         .prompts = n->kinds.prompts,
                                         .ended = r->ended,
                                         .is_spool = r->is_spool};
    if (wants_gap(r, n)) kp_top_add_gap(&n->top, n->summary.steps && !n->chosen.ended_by);
    if (n->summary.is_of_steps && is_unasked(r)) kp_top_keep_steps(&n->top);
    kp_top_join_modules(&n->top);
    kp_top_order(&n->top, (enum kp_top_sort)word_find(sorts, SORTS, r->sort));
    const int rc = rows_check(&n->top, label);
    if (rc == KP_EXIT_DONE && r->json && n->steps) kp_steplist_json(stdout, n->steps, label);
    else if (rc == KP_EXIT_DONE && r->json) kp_top_json_print(stdout, &report);
    if (rc == KP_EXIT_DONE && !r->json) {
        kp_top_head_print(stdout, &report);
        if (n->steps) kp_steplist_print(stdout, n->steps, (size_t)r->most);
        else kp_top_table_print(stdout, &report);
        kp_top_more_print(stdout, &report);
        if (!r->is_spool && n->summary.data_ns > n->summary.shared_ns / 10) kp_workers_lead(r->path);
    }
    return rc;
}

static void numbers_fini(struct top_numbers *n)
{
    kp_top_fini(&n->top);
    kp_chosen_fini(&n->chosen);
    kp_stepparts_fini(&n->parts);
}

/* A row for each phase of a run comes first; --phase shows the table of one. */
static int numbers_show(struct report_command *r, const char *label, struct top_numbers *n, bool several)
{
    const char *phase = kp_kineto_fact(n->top.trace, "kprof.phase");
    if (phase && several && !r->phase && !r->json) {
        kp_phaserows_add(&r->phases, n->top.trace, &n->chosen, &n->summary, is_unasked(r));
        return KP_EXIT_DONE;
    }
    if (several && !r->json) kp_cli_say(stdout, "%s:", label);
    return numbers_print(r, label, n);
}

/* A trace that was read in pieces has no tree to tell it by. */
static const char *kinds_unknown(const struct kp_summary *s)
{
    if (s->is_uneven_by_cores) return "the long steps are those that waited for a CPU core";
    return s->is_uneven ? "whether the long steps hold an evaluation, take a prompt or wait: kprof advise" : NULL;
}

/* Asks `kprof advise` of these steps. Nothing is known about other time that was asked for. */
static void bound_find(struct top_numbers *n, const struct report_command *r, const struct kp_tree *tree)
{
    struct kp_advice advice;
    if (!n->summary.has_gpu || r->choice.within || r->choice.has_from || r->choice.has_to) return;
    kp_advice_make(&advice, tree, &n->chosen);
    n->bound_by = kp_advice_bound(&advice);
    if (advice.ahead && !advice.is_late) n->gpu_step_ns = advice.step_ns;
}

/* A name that one phase of several has not, another may have: then what was missing is told at the end. */
static int missing_say(struct report_command *r, const char *label, const struct kp_kineto *trace, const char *why,
                       bool several)
{
    if (r->choice.within && trace->windows && several) {
        if (!r->within_missed++) snprintf(r->why_missed, sizeof r->why_missed, "%s", why);
        return KP_EXIT_DONE;
    }
    kp_cli_say(stderr, "kprof: %s: %s", label, why);
    return KP_EXIT_BAD_INPUT;
}

static int steps_missed(const char *label)
{
    kp_cli_say(stderr, "kprof: %s: no whole step in it; kprof doctor --steps names what may count as one", label);
    return KP_EXIT_BAD_INPUT;
}

static int ours_report(struct report_command *r, const char *label, struct kp_tree *tree, bool several)
{
    struct top_numbers n = {.bound_by = NULL};
    char why[512];
    if (!tree->count) {
        kp_cli_say(stderr,
                   "kprof: %s: no op, range or GPU work in it; kprof memory shows a heap, kprof events the rest",
                   label);
        return KP_EXIT_BAD_INPUT;
    }
    kp_tree_fill_calls(tree);
    kp_tree_set_forward_stacks(tree);
    if (kp_chosen_make(&n.chosen, tree, &r->choice, why, sizeof why)) {
        kp_chosen_fini(&n.chosen);
        return missing_say(r, label, tree->trace, why, several);
    }
    r->is_within_met |= r->choice.within != NULL;
    if (r->choice.within && is_any_time(r)) kp_chosen_keep_steps(&n.chosen);
    if (r->choice.within) kp_chosen_count_passes(&n.chosen, tree);
    kp_rankwaits_add(&r->ranks, tree, &n.chosen);
    kp_stood_look(&r->stuck, tree, &n.chosen, r->path, r->is_spool);
    (void)kp_lastwords_ended(r->ended, sizeof r->ended, tree, &n.chosen);
    kp_summary_make(&n.summary, tree, &n.chosen);
    if (r->choice.first_step >= 0) kp_summary_no_core(&n.summary, tree, &n.chosen);
    if (!r->choice.within) kp_stepparts_add(&n.parts, tree, &n.chosen);
    kp_slowest_find(&n.slowest, tree, &n.chosen);
    kp_top_build(&n.top, tree, &n.chosen, by_of(r, tree->trace));
    n.top.calls = kp_chosen_are_calls_cut(&n.chosen) ? 0 : n.chosen.within_calls;
    n.top.is_of_steps = n.chosen.outside_ns > 0;
    if (r->choice.within && n.summary.is_of_steps) n.top.steps = 0; /* the rows are of more than the steps */
    bound_find(&n, r, tree);
    if (is_unasked(r) && !r->json) kp_advice_kinds_make(&n.kinds, tree, &n.chosen);
    struct kp_steplist steps = {0};
    if (r->by_step) kp_steplist_make(&steps, tree, &n.chosen, strcmp(r->sort, sorts[KP_TOP_TOTAL]) == 0);
    if (r->by_step) n.steps = &steps;
    const int rc = r->by_step && !n.chosen.step_count ? steps_missed(label) : numbers_show(r, label, &n, several);
    kp_steplist_fini(&steps);
    numbers_fini(&n);
    return rc;
}

/* Whether the trace is of the phase that is asked for. All are remembered, to be told if none is. */
static bool is_of_phase(struct report_command *r, const struct kp_kineto *trace)
{
    const char *phase = kp_kineto_fact(trace, "kprof.phase");
    const size_t used = strlen(r->others);
    if (phase && used + strlen(phase) + 3 < sizeof r->others && !strstr(r->others, phase))
        snprintf(r->others + used, sizeof r->others - used, "%s%s", used ? ", " : "", phase);
    if (r->phase && !(phase && strcmp(phase, r->phase) == 0)) return false;
    return r->is_met = true;
}

static bool has_name(const struct kp_kineto *trace, const char *pattern)
{
    for (size_t i = 0; i < trace->count; i++)
        if (kp_modulename_is_meant(trace, pattern, trace->events[i].name)) return true;
    return false;
}

/* Does --within name the trace's phase, and no range, op or function of it? Then all of the phase is meant. */
static bool is_phase_within(struct report_command *r, const struct kp_kineto *trace)
{
    const char *phase = kp_kineto_fact(trace, "kprof.phase");
    if (!r->choice.within || !phase || fnmatch(r->choice.within, phase, 0) != 0) return false;
    if (has_name(trace, r->choice.within)) return false;
    if (!r->is_within_phase) kp_cli_say(stderr, "kprof report: %s is a phase: the same as --phase %s", phase, phase);
    return r->is_within_phase = r->is_within_met = true;
}

/* The figures of all traces together. A job that stands is told first, and of it no rank as the last one. */
static void together_print(struct report_command *r, struct kp_heldout *held)
{
    struct kp_stuck_told first;
    const bool stands = kp_stood_tell(&first, &r->stuck);
    kp_stuck_fini(&r->stuck);
    if (r->phases.count) kp_phaserows_print(stdout, &r->phases);
    kp_phaserows_fini(&r->phases);
    kp_rankwaits_settle(&r->ranks);
    if (r->json) kp_rankjson_print(stdout, &r->ranks, stands ? first.what : NULL);
    else if (!stands) kp_rankwaits_print(stdout, &r->ranks);
    kp_rankwaits_fini(&r->ranks);
    heldout_end(held, !r->json ? &first : NULL);
}

static int phase_check(const struct report_command *r, int worst)
{
    if (r->within_missed && !r->is_within_met) {
        kp_cli_say(stderr, "kprof: %s; the traces are of phases: --phase NAME, of %s", r->why_missed, r->others);
        return KP_EXIT_BAD_INPUT;
    }
    if (r->is_met || worst != KP_EXIT_DONE) return worst;
    if (*r->others) kp_cli_say(stderr, "kprof: no trace of phase %s; there are %s", r->phase, r->others);
    else kp_cli_say(stderr, "kprof: no trace of a phase; kprof run --phases records them");
    return KP_EXIT_BAD_INPUT;
}

/* Whether the report is about one whole trace: then its pieces add up. Collectives of several meet in whole ones. */
static bool is_of_all(const struct report_command *r, bool several)
{
    if (r->by_step || (!r->by && is_of_memory(r))) return false; /* its rows depend on what was recorded */
    return !r->is_torch && !several && r->choice.first_step < 0 && !r->choice.within && !r->choice.has_from &&
           !r->choice.has_to;
}

struct report_reading {
    struct kp_kineto *trace; /* or what is left of it behind the pieces */
    struct top_numbers n;
    bool is_numbered; /* in pieces: the numbers are made */
    bool is_torn;     /* the file ends early, and that is a failure */
};

static int source_read(const struct report_command *r, const struct kp_trace_source *source, struct kp_kineto **out,
                       struct kp_kineto_pieces *pieces, char *why, size_t why_bytes)
{
    const struct kp_kineto_wish wish = {.texts = kp_trace_source_texts(source),
                                        .label = source->path,
                                        .pieces = pieces,
                                        .keep_works = !r->is_torch,
                                        .lasting_names = !r->is_torch};
    return kp_kineto_read(out, &wish, why, why_bytes);
}

/* The facts about long steps, as far as their pieces have them. */
struct kinds_pieces {
    struct report_command *report; /* its stuck and ended */
    struct kp_evalpieces *evaluations;
    struct kp_promptpieces *prompts;
    const struct kp_kineto *settled; /* the trace that knows how its launcher was told of its end */
};

static void kinds_add(void *pieces, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kinds_pieces *const k = pieces;
    char ended[sizeof k->report->ended];
    if (k->settled != tree->trace) kp_jobends_settle(tree->trace, k->report->path);
    k->settled = tree->trace;
    kp_stood_look(&k->report->stuck, tree, chosen, k->report->path, k->report->is_spool);
    if (*kp_lastwords_ended(ended, sizeof ended, tree, chosen)) memcpy(k->report->ended, ended, sizeof ended);
    if (k->evaluations) kp_evalpieces_add(k->evaluations, tree, chosen);
    if (k->prompts) kp_promptpieces_add(k->prompts, tree, chosen);
}

static void kinds_find(const struct kinds_pieces *k, struct report_reading *out)
{
    struct kp_advice_kinds *const kinds = &out->n.kinds;
    if (k->evaluations) kinds->evaluated = kp_evalpieces_text(k->evaluations, out->trace, &out->n.chosen);
    if (k->prompts) kinds->prompts = kp_promptpieces_text(k->prompts, out->trace, &out->n.chosen);
    if (!kinds->evaluated && !kinds->prompts) kinds->evaluated = kinds_unknown(&out->n.summary);
}

static void kinds_close(const struct kinds_pieces *k)
{
    kp_evalpieces_close(k->evaluations);
    kp_promptpieces_close(k->prompts);
}

/* How long evaluations are, their ops tell, which pieces do not keep. So many events are read again as a whole. */
enum { WHOLE_EVENTS_MOST = 4000000 };

static bool is_to_be_whole(const struct kinds_pieces *k, const struct report_reading *in)
{
    return k->evaluations && in->trace->seen <= WHOLE_EVENTS_MOST && kp_evalpieces_has(k->evaluations);
}

/* Reads a trace in pieces, as far as it can be cut. False: it must be read as a whole. */
static bool pieces_read(struct report_command *r, const struct kp_trace_source *source, struct report_reading *out,
                        int *rc, char *why, size_t why_bytes)
{
    const size_t stuck = r->stuck.count;
    struct kinds_pieces kinds = {.report = r};
    struct kp_toppieces *const pieces = kp_toppieces_open(by_of(r, NULL), kinds_add, &kinds);
    struct kp_kineto_pieces *const reading = kp_toppieces_reading(pieces);
    r->ended[0] = 0;
    if (is_unasked(r)) kinds.evaluations = kp_evalpieces_open(), kinds.prompts = kp_promptpieces_open();
    *rc = source_read(r, source, &out->trace, reading, why, why_bytes);
    bool holds = *rc != -ESTALE;
    if (out->trace && reading->has_given)
        out->is_numbered = holds =
            kp_toppieces_end(pieces, out->trace, &out->n.top, &out->n.summary, &out->n.parts, &out->n.chosen);
    kp_toppieces_close(pieces);
    if (out->is_numbered && is_to_be_whole(&kinds, out)) {
        numbers_fini(&out->n);
        out->is_numbered = holds = false;
    }
    if (out->is_numbered && is_unasked(r)) kinds_find(&kinds, out);
    kinds_close(&kinds);
    if (!holds) kp_stuck_drop(&r->stuck, stuck), kp_kineto_close(out->trace);
    return holds;
}

/* Returns 0, or -errno with a line on stderr. */
static int trace_read(struct report_command *r, const struct kp_trace_source *source, bool several,
                      struct report_reading *out)
{
    char why[768];
    int rc = 0;
    *out = (struct report_reading){0};
    if (r->partial || !is_of_all(r, several) || !pieces_read(r, source, out, &rc, why, sizeof why))
        rc = source_read(r, source, &out->trace, NULL, why, sizeof why);
    if (!rc) kp_jobends_settle(out->trace, source->path);
    if (!rc) return 0;
    const bool is_readable = out->trace && out->trace->seen;
    const bool takes_torn = !r->is_torch && !out->is_numbered && (r->partial || !r->json);
    if (takes_torn && kp_trace_source_take_torn(out->trace, why, sizeof why)) {
        kp_cli_say(stderr, "kprof: %s%s", why, r->partial ? "" : "; see --partial");
        out->is_torn = !r->partial;
        return 0;
    }
    kp_cli_say(stderr, "kprof: %s%s", why, is_readable && !r->partial ? "; --partial reports those" : "");
    return out->trace && r->partial ? 0 : rc;
}

static void reading_close(struct report_reading *in)
{
    if (in->is_numbered) numbers_fini(&in->n);
    kp_kineto_close(in->trace);
}

/* The report of a whole trace. --acc-events keeps the trace. */
static int whole_report(struct report_command *r, const char *label, bool several, struct report_reading *in)
{
    struct kp_tree tree;
    int rc = KP_EXIT_DONE;
    if (!r->is_torch) kp_kineto_works_settle(in->trace);
    if (kp_tree_build(&tree, in->trace) < 0) {
        kp_cli_say(stderr, "kprof: %s: too many events", label);
        return KP_EXIT_BAD_INPUT;
    }
    if (r->torch.adds_up) kp_report_torch_add(&r->torch, &tree);
    else if (r->is_torch) kp_report_torch_print(&r->torch, &tree);
    else rc = ours_report(r, label, &tree, several);
    if (r->torch.adds_up) in->trace = NULL;
    kp_tree_fini(&tree);
    return rc;
}

/* Several traces of the phase that is asked for have one table: they wait for one another. */
static bool is_to_wait(struct report_command *r, struct report_reading *in, bool several, bool is_phase)
{
    if (!several || !(r->phase || is_phase) || r->json || in->is_torn) return false;
    return kp_phasetraces_take(&r->of_phase, &in->trace);
}

/* The table of each process's traces of one phase. */
static int phase_report(struct report_command *r, int worst)
{
    const bool several = r->of_phase.count > 1;
    kp_phasetraces_settle(&r->of_phase);
    if (r->is_within_phase) r->choice.within = NULL;
    for (size_t i = 0; i < r->of_phase.count; i++) {
        struct kp_phasetrace *const p = &r->of_phase.of[i];
        struct report_reading in = {.trace = p->trace};
        char label[400];
        p->trace = NULL;
        snprintf(label, sizeof label, "phase %s%s%s of %zu trace%s", p->phase, p->rank ? ", rank " : "",
                 p->rank ? p->rank : "", p->traces, kp_units_s(p->traces));
        if (!several) kp_cli_say(stdout, "%s:", label);
        const int rc = whole_report(r, label, several, &in);
        reading_close(&in);
        worst = rc > worst ? rc : worst;
    }
    kp_phasetraces_fini(&r->of_phase);
    return worst;
}

static int report_trace(void *context, const struct kp_trace_source *source, bool heading)
{
    struct report_command *r = context;
    struct report_reading in;
    r->is_spool = source->is_spool;
    snprintf(r->path, sizeof r->path, "%s", source->path);
    int rc = trace_read(r, source, heading, &in) ? KP_EXIT_BAD_INPUT : KP_EXIT_DONE;
    const char *const within = r->choice.within;
    if (rc == KP_EXIT_DONE) kp_phasetraces_look(&r->of_phase, in.trace);
    const bool is_phase = rc == KP_EXIT_DONE && is_phase_within(r, in.trace);
    if (is_phase) r->choice.within = NULL;
    if (rc == KP_EXIT_DONE && is_of_phase(r, in.trace) && !is_to_wait(r, &in, heading, is_phase)) {
        if (heading && r->is_torch && !r->torch.adds_up) kp_cli_say(stdout, "%s:", source->label);
        rc = in.is_numbered ? numbers_print(r, source->label, &in.n) : whole_report(r, source->label, heading, &in);
    }
    r->choice.within = within;
    const bool is_torn = in.is_torn;
    reading_close(&in);
    return rc == KP_EXIT_DONE && is_torn ? KP_EXIT_BAD_INPUT : rc;
}

static int help_print(void)
{
    kp_cli_help("report", flags);
    if (!kp_cli_wants_schema()) printf("\n--sort-by: %s\n", kp_keyavg_keys());
    return KP_EXIT_DONE;
}

int kp_cmd_report(int argc, char **argv)
{
    struct kp_opt_scan scan = {.command = "report", .table = flags, .argc = argc, .argv = argv, .at = 1};
    struct report_command r = {.torch = {.table = KP_TABLE_DEFAULTS},
                               .choice = {.first_step = -1, .last_step = -1},
                               .sort = sorts[KP_TOP_SELF],
                               .most = ROWS_DEFAULT};
    const int i = kp_opt_flags(&scan, &r, option_take);
    if (i == KP_OPT_HELP) return help_print();
    if (i != KP_OPT_END) return kp_opt_ended(&scan, i);
    if (options_check(&r)) return KP_EXIT_USAGE;
    const int count = kp_latest_take("report", &argv, scan.count, 0);
    if (!count) return KP_EXIT_USAGE;
    struct kp_lines *lines = kp_lines_open("report", &(struct kp_lines_options){0});
    struct kp_heldout held = {0};
    heldout_begin(&held);
    int worst = kp_input_each("report", argv, count, kp_lines_places(lines), report_trace, &r);
    worst = phase_report(&r, worst);
    kp_report_torch_end(&r.torch);
    if (worst != KP_EXIT_DONE && !r.stuck.count && !r.json) kp_stood_alone_put(argv, count);
    together_print(&r, &held);
    kp_lines_close(lines);
    return phase_check(&r, worst);
}

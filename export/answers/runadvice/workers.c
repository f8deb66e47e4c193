// SPDX-License-Identifier: Apache-2.0
/* workers.c - leads from a training that waits for its DataLoader to the lines that its workers spend their time in */
#include "export/answers/runadvice/judged.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export/answers/advise/rules/load/loadsavings.h"
#include "export/answers/top/timeshares.h"
#include "export/answers/top/toprows.h"
#include "export/read/facts/selftime.h"
#include "export/read/files/budget.h"
#include "export/read/folder/run_folder.h"
#include "export/read/frames/workerframe.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/plain.h"
#include "export/show/units.h"
#include "export/read/facts/namefacts.h"

enum { LINES = 2, WORKERS_MOST = 8 }; /* WORKERS_MOST: whose traces are read */
#define SHARE_LEAST 0.05              /* of a worker's time, before a line is worth a word */
#define SHARE_IDLE 0.50               /* of a worker's time, in which it waits for work: more workers do not help */
#define SHARE_ALL_IDLE 0.90           /* it has next to nothing to do */
#define SHARE_COMPUTES 0.50           /* of a worker's time: it computes for most of it */
#define CORES_SPARE 0.5         /* less than these are not free: the kernel and other programs take of them, too */
enum { QUICK_BYTES = 4 << 20 }; /* of a worker's trace: larger ones take seconds to read */
enum { MEASURED_MS = 200 };     /* a shorter time tells little */
enum { TEXT_BYTES = 512 };
#define IDLE_WORKERS \
    "the present ones wait for work. The cost is handing batches over (queue, pickling, waking a process). "

/* The times that a worker's own trace has. */
struct worker {
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_chosen chosen;
    int64_t wall_ns;
    struct kp_spans idle; /* it waits for work: known where Python's calls were recorded */
    int32_t loop;         /* the call of torch's loop, -1: not in the trace */
    int64_t waits_ns;     /* of the loop's thread: calls that wait (sleep, network, lock) in its items */
    int64_t fetch_ns;     /* in which it loads batches, and how many these are */
    size_t fetches;
    const char *line;      /* of the program, which costs most; or NULL */
    struct kp_idleness {   /* of the workers whose loops were seen */
        size_t seen, idle; /* idle: wait for work most of their time */
        double share;      /* the mean of those that are idle */
    } others;
    struct kp_plan { /* of the whole program */
        size_t workers;
        long cores;
        double computes, used; /* a worker's share of its time; cores, with the training */
    } plan;
};

/* Returns the newest trace of FOLDER/children beside a trace, or NULL. The caller frees it. */
static char *children_find(char *folder, size_t bytes, const char *trace_path)
{
    const char *slash = strrchr(trace_path, '/');
    snprintf(folder, bytes, "%.*schildren", slash ? (int)(slash + 1 - trace_path) : 0, trace_path);
    return kp_advised_newest(folder);
}

/* The finding about data that workers load, and a step waits for; NULL: there is none. */
static struct kp_finding *finding_of(struct kp_advice *a)
{
    for (struct kp_finding *f = a->findings; f < a->findings + a->count; f++)
        if (!f->is_of_main && strcmp(f->id, "data-loading") == 0 && f->where && strstr(f->where, "_MultiProcessing"))
            return f;
    return NULL;
}

static void lead_put(FILE *out, const char *before, const char *folder)
{
    fprintf(out, "%skprof report --by line ", before);
    kp_plain_put(out, folder);
    fputs("\n", out);
}

void kp_workers_lead(const char *trace_path)
{
    char folder[4200];
    char *path = children_find(folder, sizeof folder, trace_path);
    if (path) lead_put(stdout, "what its workers did: ", folder);
    free(path);
}

/* ---- a worker's time ---- */

static bool is_call(const struct kp_tree *tree, int32_t node, const char *file, const char *function)
{
    const char *const name = node >= 0 ? kp_kineto_text(tree->trace, tree->nodes[node].name) : "";
    const char *const at = strstr(name, file), *const end = at ? strstr(at, "): ") : NULL;
    return end && tree->nodes[node].is_python && strcmp(end + 3, function) == 0;
}

static bool is_loop(const struct kp_tree *tree, int32_t node)
{
    return is_call(tree, node, "data/_utils/worker.py(", "_worker_loop");
}

/* A call that waits for work is in the loop itself: a queue that an item asks is not. */
static void idle_find(struct worker *w)
{
    const struct kp_tree *const tree = &w->tree;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const node = &tree->nodes[i];
        if (w->loop < 0 && is_loop(tree, (int32_t)i)) w->loop = (int32_t)i;
        if (is_call(tree, (int32_t)i, "multiprocessing/queues.py(", "get") && is_loop(tree, node->parent))
            kp_spans_add(&w->idle, node->start_ns, node->end_ns);
        if (!is_call(tree, (int32_t)i, "data/_utils/fetch.py(", "fetch") || !is_loop(tree, node->parent)) continue;
        w->fetch_ns += node->end_ns - node->start_ns;
        w->fetches++;
    }
    kp_spans_settle(&w->idle);
}

static void wait_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct worker *const w = context;
    const struct kp_tree *const tree = &w->tree;
    if (!tree->nodes[node].is_python || !(kp_namefacts(tree->trace, tree->nodes[node].name) & KP_NAME_IDLE)) return;
    if (kp_tree_event(tree, node)->tid != kp_tree_event(tree, (size_t)w->loop)->tid) return;
    w->waits_ns += to_ns - from_ns - kp_spans_between(&w->idle, from_ns, to_ns);
}

static double share_of(const struct worker *w, int64_t ns)
{
    return w->wall_ns > 0 ? (double)ns / (double)w->wall_ns : 0;
}

static double idle_share(const struct worker *w) { return share_of(w, kp_spans_length(&w->idle, NULL)); }

/* Keeps the time in which the worker has work. */
static void idle_leave_out(struct worker *w)
{
    struct kp_spans works = {0};
    int64_t from = INT64_MIN;
    for (size_t i = 0; i < w->idle.count; i++) {
        kp_spans_add(&works, from, w->idle.of[i].start_ns);
        from = w->idle.of[i].end_ns;
    }
    kp_spans_add(&works, from, INT64_MAX);
    kp_spans_settle(&works);
    kp_spans_cut(&w->chosen.spans, &works);
    kp_spans_fini(&works);
}

static void share_print(FILE *out, const char *what, double share)
{
    fputs("    worker  ", out);
    kp_plain_put(out, what);
    fprintf(out, ": %.1f %% of its time\n", 100 * share);
}

/* Prints the lines that took most of one worker's time. The threads that feed its queue wait meanwhile: a share is of
 * the time that passed, not of the sum over threads. */
static void lines_print(FILE *out, struct worker *w)
{
    struct kp_top top;
    size_t shown = 0;
    kp_top_build(&top, &w->tree, &w->chosen, KP_TOP_BY_LINE);
    kp_top_order(&top, KP_TOP_SELF);
    for (size_t i = 0; i < top.count && shown < LINES; i++) {
        const struct kp_top_row *row = &top.rows[i];
        const double share = share_of(w, (int64_t)row->cost.self_ns);
        if (!row->name) continue;
        const char *const line = kp_kineto_text(w->trace, row->name);
        const bool is_of_loop = strcmp(line, KP_WORKERFRAME_LOOP) == 0;
        if (!is_of_loop && !w->line) w->line = line;
        if (share < SHARE_LEAST) break;
        share_print(out, is_of_loop ? "torch's loop (collating, handing over)" : line, share);
        shown++;
    }
    kp_top_fini(&top);
}

/* ---- what helps ---- */

static void change_set(struct kp_advised *a, const char *text)
{
    struct kp_finding *const f = finding_of(&a->advice);
    char all[6 * TEXT_BYTES];
    snprintf(all, sizeof all, "%s%s%s", f->first ? f->first : "", f->first ? " " : "", text);
    f->change = kp_strings_keep(a->trace->strings, all);
}

/* "Make an item cheaper", at the line that costs most. */
static const char *cheaper_text(const struct worker *w, char *room, size_t bytes)
{
    snprintf(room, bytes, "Make an item cheaper%s%s: cache it, vectorize its work, or decode it once.",
             w->line ? ", first at " : "", w->line ? w->line : "");
    return room;
}

/* The time that a step waits for its workers. */
static double waited_ns(struct kp_advised *a) { return finding_of(&a->advice)->step_ns; }

/* Cores that the training takes while it does not wait for its workers: at most its threads. */
static double training_cores(const struct kp_advised *a, long cores)
{
    const struct kp_threads said = kp_threads_of(a->trace);
    const long most = said.torch > 0 ? said.torch : said.omp;
    long threads = most > 0 && (said.busy <= 0 || most < said.busy) ? most : said.busy;
    if (a->advice.has_gpu || threads < 1) threads = 1;
    if (threads > cores) threads = cores;
    if (!(a->advice.step_ns > 0)) return (double)threads;
    return (double)threads * (1 - a->advice.mean_ns[KP_SPLIT_LOADING] / a->advice.step_ns);
}

/* A worker of the same training that was recorded beside the newest: not one of an epoch before. */
static bool is_beside(const struct kp_found *f, const struct kp_found *newest)
{
    return newest && f->parent_pid && f->parent_pid == newest->parent_pid && f->until_ns >= newest->begin_ns;
}

/* A worker has a trace for each window. */
static size_t workers_count(struct kp_run_folder *folder)
{
    const struct kp_found *const newest = kp_run_folder_newest(folder, true, 0);
    size_t count = 0;
    for (size_t i = 0; i < folder->count; i++) {
        bool is_new = is_beside(&folder->of[i], newest);
        for (size_t k = 0; k < i && is_new; k++)
            is_new = !is_beside(&folder->of[k], newest) || !kp_found_is_same_worker(&folder->of[k], &folder->of[i]);
        count += is_new;
    }
    return count;
}

/* Sets what is known of the whole program. False: too little was measured. */
static bool plan_make(struct worker *w, const struct kp_advised *a, struct kp_run_folder *folder)
{
    const long of_ms = kp_kineto_number(w->trace, "kprof.busy_of_ms");
    const bool is_measured = of_ms >= MEASURED_MS;
    w->plan.cores = kp_kineto_number(w->trace, "kprof.cores");
    w->plan.workers = workers_count(folder);
    w->plan.computes = is_measured ? (double)kp_kineto_number(w->trace, "kprof.busy_ms") / (double)of_ms
                                   : 1 - idle_share(w) - share_of(w, w->waits_ns);
    if (w->plan.computes > 1) w->plan.computes = 1;
    if (w->plan.computes < 0) w->plan.computes = 0;
    w->plan.used = w->plan.computes * (double)w->plan.workers + training_cores(a, w->plan.cores);
    return w->plan.cores > 0 && w->plan.workers &&
           (is_measured || (w->loop >= 0 && w->wall_ns >= MEASURED_MS * 1000000));
}

/*
 * Workers that compute are limited by the cores, whatever share of their time this recording found: where they and the
 * training take all, more do not help. Cores that other programs take are not known.
 */
static bool are_cores_full(const struct worker *w, double training)
{
    const double free_from = (double)w->plan.cores - CORES_SPARE;
    return w->plan.used >= free_from ||
           (w->plan.computes >= SHARE_COMPUTES && (double)w->plan.workers + training >= free_from);
}

static void full_tell(FILE *out, struct kp_advised *a, const struct worker *w)
{
    const struct kp_plan *const p = &w->plan;
    char cheaper[TEXT_BYTES], change[2 * TEXT_BYTES];
    fprintf(out, "compute on %ld core%s for %.0f %% of their time: more workers do not help, cheaper lines do\n",
            p->cores, kp_units_s((size_t)p->cores), 100 * p->computes);
    snprintf(change, sizeof change, "%s More workers do not help: the present ones and the training fill the cores.",
             cheaper_text(w, cheaper, sizeof cheaper));
    change_set(a, change);
}

static void free_tell(FILE *out, struct kp_advised *a, const struct worker *w)
{
    const struct kp_plan *const p = &w->plan;
    const bool computes = p->computes >= SHARE_COMPUTES;
    /* More workers save no more than is waited for, nor than the cores leave. */
    const double saves_ns = fmin(waited_ns(a), a->advice.step_ns * (1 - p->used / (double)p->cores));
    char change[TEXT_BYTES];
    fprintf(out, "%s %.0f %% of their time, ", computes ? "compute" : "wait",
            100 * (computes ? p->computes : 1 - p->computes));
    if (!computes && w->loop < 0) {
        fputs("for work or in their items. To find out: kprof run --with-stack 1 --children --schedule 10-30 -- ...\n",
              out);
        change_set(a, "See whether the workers wait for work (then more of them do not help) or in their items (then "
                      "more do): kprof run --with-stack 1 --children --schedule 10-30, then kprof advise.");
        return;
    }
    fprintf(out, "and this program uses %.1f of %ld core%s: more workers help\n", p->used, p->cores,
            kp_units_s((size_t)p->cores));
    snprintf(change, sizeof change,
             "Give the DataLoader more workers (num_workers=N, persistent_workers=True): this program uses %.1f of %ld "
             "core%s. That saves at most %.1f ms a step.",
             p->used, p->cores, kp_units_s((size_t)p->cores), saves_ns / 1e6);
    change_set(a, change);
}

/* Workers that wait for work, and a step that waits for them: to hand over costs. Says what loading without costs. */
static void hand_over_tell(struct kp_advised *a, const struct worker *w)
{
    const double waited = waited_ns(a), each = w->fetches ? (double)w->fetch_ns / (double)w->fetches : 0;
    const struct kp_loading l = {.load_ns = each, .step_ns = a->advice.step_ns};
    char cheaper[TEXT_BYTES], without[TEXT_BYTES], change[4 * TEXT_BYTES];
    if (!w->fetches)
        snprintf(without, sizeof without,
                 "Without workers (num_workers=0) a step is shorter only if a batch loads in less than %.1f ms, the "
                 "wait here",
                 waited / 1e6);
    else
        snprintf(without, sizeof without,
                 waited < each ? "Loading a batch takes a worker %.1f ms. With workers a step waits %.1f ms of that; "
                                 "without them it would wait all of it"
                               : "Loading a batch takes a worker %.1f ms; the step waits %.1f ms for it",
                 each / 1e6, waited / 1e6);
    if (w->fetches && each < waited && kp_loading_size_of(&l) == KP_LOADING_SHORT) /* cheap items, for a long wait */
        snprintf(change, sizeof change,
                 "More workers do not help: " IDLE_WORKERS
                 "Load the items in the main process (num_workers=0): loading a batch takes a worker %.1f ms, and the "
                 "step waits %.1f ms for it. Or hand over fewer, larger batches.",
                 each / 1e6, waited / 1e6);
    else
        snprintf(change, sizeof change,
                 "More workers do not help: " IDLE_WORKERS
                 "Hand over less: tensors are shared, all else is pickled, so collate into tensors what the step uses. "
                 "Or hand over fewer, larger batches. %s %s.",
                 cheaper_text(w, cheaper, sizeof cheaper), without);
    change_set(a, change);
}

/* The wait for an idle worker is one for a core, where nobody has one: it is no finding then. */
static bool is_core_the_wait(const struct kp_advised *a, const struct worker *w)
{
    return a->advice.crowded && kp_summary_core_waited(a->trace) >= KP_CORE_WAITED_HALF &&
           kp_summary_core_waited(w->trace) >= KP_CORE_WAITED_HALF && idle_share(w) >= SHARE_ALL_IDLE;
}

static void finding_drop(FILE *out, struct kp_advised *a, const struct worker *w)
{
    fprintf(out,
            "    worker  is idle, and it has no CPU core for %.0f %% of the time that it wants one. The %.1f ms per "
            "step in next() of the DataLoader are no finding: see them on a free machine\n",
            100 * kp_summary_core_waited(w->trace), waited_ns(a) / 1e6);
    kp_finding_drop(&a->advice, finding_of(&a->advice));
}

/* All of them wait for work, and the training for them. */
static void idle_tell(FILE *out, struct kp_advised *a, const struct worker *w)
{
    if (is_core_the_wait(a, w)) finding_drop(out, a, w);
    else if (finding_of(&a->advice)->is_bursty)
        change_set(a, "Prefetch more (prefetch_factor=N), as the workers wait for work most of their time: a slow "
                      "batch holds up those behind it, which are ready. Or take them as they are ready: "
                      "DataLoader(..., in_order=False), torch 2.6 and later. More workers help less.");
    else hand_over_tell(a, w);
}

/* The loader gives batches to its workers by turns, and takes them in that order. */
static void uneven_tell(FILE *out, struct kp_advised *a, const struct kp_idleness *all)
{
    const size_t busy = all->seen - all->idle;
    fprintf(out, "    worker  %zu of %zu %s most of the work; the other%s wait%s for some %.0f %% of the time\n", busy,
            all->seen, busy == 1 ? "has" : "have", all->idle == 1 ? "" : "s", all->idle == 1 ? "s" : "",
            100 * all->share);
    change_set(a,
               "Let a worker that is ready take the next batch: DataLoader(..., in_order=False), torch 2.6 and later. "
               "Without it batches go to the workers by turns, so the slow ones may all come to one; then as many "
               "more workers need not help. Or even out what items cost: shuffle them, cache the slow ones.");
}

/* Workers that wait for work have nothing to share. Others that wait leave the cores to more of them. Items that
 * compute take the cores from one another. */
static void help_tell(FILE *out, struct kp_advised *a, struct worker *w, struct kp_run_folder *folder)
{
    if (idle_share(w) >= SHARE_IDLE) {
        idle_tell(out, a, w);
        return;
    }
    if (2 * w->others.idle >= w->others.seen && w->others.idle) {
        uneven_tell(out, a, &w->others);
        return;
    }
    if (!plan_make(w, a, folder)) return;
    fprintf(out, "    worker  %zu of them ", w->plan.workers);
    if (are_cores_full(w, training_cores(a, w->plan.cores))) full_tell(out, a, w);
    else free_tell(out, a, w);
}

static void worker_tell(FILE *out, struct kp_advised *a, struct worker *w, struct kp_run_folder *folder)
{
    const double idle = idle_share(w);
    if (w->loop >= 0) kp_selftime_each(&w->tree, wait_take, w);
    if (idle >= SHARE_LEAST) fprintf(out, "    worker  waits for work %.1f %% of its time\n", 100 * idle);
    idle_leave_out(w);
    lines_print(out, w);
    help_tell(out, a, w, folder);
}

static void worker_close(struct worker *w)
{
    kp_spans_fini(&w->idle);
    kp_chosen_fini(&w->chosen);
    kp_tree_fini(&w->tree);
    kp_kineto_close(w->trace);
}

/* False: nothing can be told of it. The caller closes it either way. */
static bool worker_open(struct worker *w, const char *path)
{
    *w = (struct worker){.loop = -1};
    kp_budget_beside(path);
    if (kp_advised_read_all(&w->trace, &w->tree, &w->chosen, path) != 0 || !w->tree.count) return false;
    w->wall_ns = kp_spans_length(&w->chosen.spans, NULL);
    idle_find(w);
    return true;
}

static void idleness_add(struct kp_idleness *all, const struct worker *w)
{
    const double idle = idle_share(w);
    if (w->loop < 0) return;
    all->seen++;
    if (idle < SHARE_IDLE) return;
    all->share = (all->share * (double)all->idle + idle) / (double)(all->idle + 1);
    all->idle++;
}

/* Takes, of some workers, the one that waits least: the training may wait for that. Notes how the others wait. */
static void others_look(struct worker *w, const char *newest, struct kp_run_folder *folder)
{
    const struct kp_found *const f = kp_run_folder_newest(folder, true, 0);
    struct kp_idleness all = {0};
    size_t looked = 1;
    idleness_add(&all, w);
    for (size_t i = folder->count; f && i-- > 0 && looked < WORKERS_MOST;) {
        const struct kp_found *const other = &folder->of[i];
        struct worker more;
        if (other->is_spool || !is_beside(other, f) || strcmp(other->path, newest) == 0) continue;
        looked++;
        const bool is_known = worker_open(&more, other->path) && more.loop >= 0;
        if (is_known) idleness_add(&all, &more);
        if (is_known && idle_share(&more) < idle_share(w)) {
            const struct worker least = more;
            more = *w;
            *w = least;
        }
        worker_close(&more);
    }
    w->others = all;
}

static void workers_tell(FILE *out, struct kp_advised *a, const char *newest, const char *folder_path)
{
    struct kp_run_folder folder = {.path = folder_path};
    struct worker w;
    if (worker_open(&w, newest)) {
        if (kp_run_folder_read(&folder) == 0) (void)kp_found_family(&folder); /* notes whose they are */
        others_look(&w, newest, &folder);
        worker_tell(out, a, &w, &folder);
        kp_run_folder_free(&folder);
    }
    worker_close(&w);
}

bool kp_workers_defer(struct kp_advised *a, const char *trace_path)
{
    char folder[4200];
    struct stat st;
    char *const path = finding_of(&a->advice) ? children_find(folder, sizeof folder, trace_path) : NULL;
    const bool is_large = path && stat(path, &st) == 0 && st.st_size > QUICK_BYTES;
    if (is_large)
        change_set(a,
                   "The workers' own traces say whether more workers or cheaper items help: kprof advise reads them.");
    free(path);
    return is_large;
}

void kp_workers_tell(struct kp_advised *a, const char *trace_path)
{
    char folder[4200];
    size_t bytes;
    FILE *out = finding_of(&a->advice) ? open_memstream(&a->workers, &bytes) : NULL;
    if (!out) return;
    char *path = children_find(folder, sizeof folder, trace_path);
    if (path) {
        workers_tell(out, a, path, folder);
        a->has_read_workers = true;
        lead_put(out, "workers  ", folder);
    } else {
        fputs("workers  their waits and lines were not recorded. To see them: kprof run --with-stack 1 --children "
              "--schedule 10-30 -- ..., then kprof advise\n",
              out);
    }
    fclose(out);
    free(path);
}

// SPDX-License-Identifier: Apache-2.0
/* partrules.c - the rules over parts of a step: which is too large, and what to change; bounds are in decisions/061 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include <stdlib.h>

#include "export/answers/advise/rules/rules.h"
#include "export/answers/top/timeshares.h"
#include "export/read/facts/valuereads.h"

#define KP_FINDING_ON_CPU "op-on-cpu"
#define NO_OP_SHARE 0.40    /* of a step in which no op runs */
#define NO_OP_NOTED 0.35    /* from here on it is a note: it differs from run to run, and no step is healthy */
#define NO_OP_CRITICAL 0.50 /* small ops alone cost nearly as much as the bound */
#define ONE_GAP_SHARE 0.15  /* of a step, in one place in which no op runs */
#define LINE_SHARE 0.05     /* of a step, in long gaps before ops of one line */
#define LONG_GAP_NS 500000  /* shorter ones are what calls of ops and of modules cost */
#define ONE_GAP_NS 1e6      /* what is less is the price of an optimizer's, or of a loader's, own Python */
#define ITSELF_SHARE 0.95   /* of a function with its callees; else both are told */
#define SHARE_IDLE 0.15     /* of a step, before a GPU's idle time is a finding, by whatever cause */

struct advice_rule {
    int measure;  /* a part of the step, or KP_CAUSE() of its idle time */
    double bound; /* share of a step */
    enum { ANYWHERE, WITH_GPU, WITHOUT_GPU } with;
    const char *id, *what, *change;
};
static const struct advice_rule rules[] = {
    {KP_SPLIT_LOADING, 0.10, ANYWHERE, "data-loading", "the step waits for the DataLoader",
     "Give the DataLoader more workers (num_workers=N, persistent_workers=True) if its items wait, or if fewer workers "
     "than cores compute. Otherwise make items cheaper: cache them, or decode them once."},
    {KP_SPLIT_COMM, 0.05, WITH_GPU, KP_FINDING_COMM, "collectives run while nothing computes",
     "Let communication overlap with backward: DDP(..., bucket_cap_mb=N, gradient_as_bucket_view=True). First see with "
     "the traces of all ranks (kprof advise) that no rank is late."},
    {KP_SPLIT_COMM, 0.05, WITHOUT_GPU, KP_FINDING_COMM, "the step waits for other ranks or for the network",
     "First compare the ranks: `kprof advise` with the traces of all says which one arrives last, and why."},
    {KP_SPLIT_COPIES, 0.05, WITH_GPU, "exposed-copies", "copies run while nothing computes",
     "Copy from pinned memory while the GPU computes: DataLoader(..., pin_memory=True) and .to(device, "
     "non_blocking=True)."},
    {KP_CAUSE(KP_IDLE_SYNC), 0.10, WITH_GPU, "implicit-sync", "the host waited until the GPU had run out of work",
     "Wait less often: keep losses and metrics on the GPU, and read them (.item(), .cpu(), print) every N steps."},
    {KP_CAUSE(KP_IDLE_LAUNCH), 0.10, WITH_GPU, "launch-bound",
     "the GPU waits for operators that the host is still launching",
     "Launch less: torch.compile(model, mode=\"reduce-overhead\"), CUDA graphs, fused optimizers, larger batches."},
    {KP_CAUSE(KP_IDLE_PYTHON), 0.10, WITH_GPU, "python-starved", "the GPU waits for Python between operators",
     "Move that work out of the step or into a worker. To see the functions: kprof run --with-stack 1 --schedule 10-30 "
     "-- ..., then kprof stacks."},
    {KP_CAUSE(KP_IDLE_DEPENDENCY), 0.10, WITH_GPU, "dependency",
     "launched work starts late, although this program runs nothing on the GPU",
     "Check whether another process uses this GPU (nvidia-smi); processes take turns of some milliseconds. If none "
     "does, see what the work waits for: kprof run --cuda-sync."},
    {KP_CAUSE(KP_IDLE_ALLOC), 0.05, WITH_GPU, "device-malloc",
     "the GPU waits while device memory is allocated or freed",
     "Do not call torch.cuda.empty_cache() in a step. Keep shapes the same from step to step, or set "
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."},
    {KP_SPLIT_IDLE, SHARE_IDLE, WITH_GPU, "gpu-idle", "the GPU is idle for several reasons",
     "See what the host does meanwhile: kprof run --with-stack ops -- ..., then kprof stacks."},
    {KP_SPLIT_IDLE, NO_OP_SHARE, WITHOUT_GPU, KP_FINDING_NO_OP,
     "no operator runs (Python code between operators, or a wait)",
     "Find the lines: kprof run --with-stack 1 --schedule 10-30 -- ..., then kprof stacks. Larger batches and fewer, "
     "larger operators reduce it."},
};

static int64_t measured(const struct kp_step_split *split, int measure)
{
    return measure < KP_SPLIT_PARTS ? split->part_ns[measure] : split->cause_ns[measure - KP_SPLIT_PARTS];
}

static bool is_cause(const struct advice_rule *rule) { return rule->measure >= KP_SPLIT_PARTS; }

static void place_tell(const struct kp_costrules *x, const struct advice_rule *rule, struct kp_finding *f)
{
    const struct kp_costplaces *const python = &x->places->causes[KP_IDLE_PYTHON], *at = python;
    if (is_cause(rule)) at = &x->places->causes[rule->measure - KP_SPLIT_PARTS];
    else if (rule->measure != KP_SPLIT_IDLE) at = &x->places->parts[rule->measure];
    kp_costplaces_tell(at, x->tree->trace, f);
    f->is_gap = at == python && f->where; /* the op, or the launch, that ends it */
}

/* Python between reads of values is told with those. */
static bool is_of_reads(const struct kp_costrules *x, const char *where)
{
    return kp_costrules_find(x, KP_FINDING_READS) && where && kp_valueread_is_name(where);
}

static const char call_change[] = "Make that line cheaper, run it less often, or move it out of the step. `kprof "
                                  "report --by line` has the other lines, `kprof stacks` their callers.";
static const char own_change[] =
    "Make that function cheaper, call it less often, or move it into a DataLoader's workers or another thread: it runs "
    "hardly any operators. `kprof stacks` shows who calls it.";
static const char lines_change[] = "The code between these lines is plain Python, such as a loop or a comprehension. "
                                   "Move it out of the step or into a worker, or use torch operators.";
static const char gap_change[] = "See what runs there: kprof run --with-stack 1 --schedule 10-12 -- ..., then kprof "
                                 "report --by line. Make it cheaper, move it out of the step, or do it less often.";

/* A line beside the cost would be taken for that of all of it. */
static void small_place_tell(const struct kp_costrules *x, struct kp_finding *f, double ns)
{
    char room[512];
    const char *const line = kp_finding_line(f, room, sizeof room);
    f->what = KP_TEXT("%s, %.3g ms of it before %s%s%s", f->what, ns / 1e6, f->where,
                      line && f->line && !f->after ? " at "
                      : line                       ? ", "
                                                   : "",
                      line ? line : "");
    f->where = f->line = f->also_line = f->after = f->frame = f->module = NULL;
    f->is_gap = f->is_backward = f->is_after_backward = false;
}

/* The place before which most of the time without an op lies may have a part of it alone. */
static void gap_place_tell(const struct kp_costrules *x, double part, struct kp_finding *f)
{
    const struct kp_costplace *const most = kp_costplaces_most(&x->places->causes[KP_IDLE_PYTHON]);
    const double ns = most ? part * (double)most->ns / (double)x->out->steps : 0;
    if (!f->is_gap || !(ns > 0)) return;
    if (2 * ns < f->step_ns) small_place_tell(x, f, ns);
    else if (ns < ITSELF_SHARE * f->step_ns)
        f->what = KP_TEXT("%s, %.3g ms of it before %s", f->what, ns / 1e6, f->where);
    if (4 * ns >= f->step_ns && most->ns >= KP_OP_COMPUTES_NS * (int64_t)most->count) f->change = gap_change;
}

/* If Python's calls were recorded, one of them filled the gaps. `part`: of these, all but the waits for a core. */
static void gap_tell(const struct kp_costrules *x, double part, struct kp_finding *f)
{
    double *weights = kp_kineto_room(x->out->steps + 1, sizeof *weights);
    for (size_t i = 0; i < x->out->steps; i++) weights[i] = 1 / (double)x->out->steps;
    struct kp_gap_call call = kp_gapplace_tell(x, weights, f->step_ns / part, f);
    free(weights);
    call.ns *= part;
    call.itself_ns *= part;
    if (call.ns > 0 && f->is_gap) {
        f->what = KP_TEXT("no operator runs, %.3g ms of it in " KP_GAP_OF_FUNCTION, call.ns / 1e6);
        f->change = lines_change;
    } else if (call.ns > 0) {
        const bool has_callees = call.itself_ns < ITSELF_SHARE * call.ns;
        f->what = KP_TEXT("no operator runs, %.3g ms of it in %s%s", call.ns / 1e6, f->where,
                          has_callees ? KP_TEXT(" and what it calls (itself %.3g ms)", call.itself_ns / 1e6) : "");
        f->change = call.is_python ? own_change : call_change;
    } else gap_place_tell(x, part, f);
}

/* The time of a step in gaps at one place. */
static double place_ns(const struct kp_costrules *x, size_t step, const struct kp_costplace *place)
{
    const uint64_t key = kp_costplace_key_of(place);
    double ns = 0;
    for (struct kp_longsteps_walk w = kp_longsteps_walk_of(x, step, true); kp_longsteps_next(&w);)
        ns += kp_costplace_key(x->tree, w.node) == key ? (double)w.ns : 0;
    return ns;
}

/* How many of all steps have half of what such a gap costs on average, slow ones, too. NULL: wherever it lies. */
static size_t gap_steps(const struct kp_costrules *x, double ns, const struct kp_costplace *place)
{
    const struct kp_costrules *const of = x->whole ? x->whole : x;
    const struct kp_step_split *const splits = of->trained ? of->trained : of->splits;
    size_t steps = 0;
    for (size_t i = 0; i < of->chosen->step_count; i++)
        steps += 2 * (place ? place_ns(of, i, place) : (double)splits[i].part_ns[KP_SPLIT_IDLE]) >= ns;
    return steps;
}

static void turns_tell(const struct kp_costrules *x, struct kp_finding *f)
{
    const struct kp_turns *const turns = &x->places->turns;
    *f = (struct kp_finding){.id = KP_FINDING_SHARED,
                             .steps = f->steps,
                             .step_ns = f->step_ns,
                             .share = f->share,
                             .of = f->of,
                             .is_critical = f->is_critical};
    f->what = KP_TEXT("another process takes turns on this GPU (%zu gaps of %.1f ms in launched work)", turns->count,
                      (double)turns->each_ns / 1e6);
    f->change = "See who uses the GPU (nvidia-smi), and record again when it is free. The other process interrupts "
                "kernels, so other times are too long as well.";
}

/* No call of the op launches anything. Nodes of autograd are no work that could be moved. */
static bool is_of_the_host(const struct kp_tree *tree, const char *op)
{
    struct kp_values values;
    bool is_op = false;
    if (op && (strncmp(op, "autograd::", 10) == 0 || strncmp(op, "torch::autograd::", 17) == 0)) return false;
    for (size_t i = 0; op && i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (node->removed || node->on_device || strcmp(kp_kineto_text(tree->trace, node->name), op) != 0) continue;
        kp_tree_values(tree, i, &values);
        if (values.device_total > 0) return false;
        is_op |= kp_tree_event(tree, i)->kind == KP_KINETO_OP;
    }
    return is_op;
}

/* An op that computes launches nothing. If it has half of the time that is the cause, else a part of it. */
static void host_op_tell(const struct kp_costrules *x, struct kp_finding *f)
{
    const struct kp_costplace *const most = kp_costplaces_most(&x->places->causes[KP_IDLE_LAUNCH]);
    const double ns = most ? (double)most->ns / (double)x->out->steps : 0;
    if (2 * ns < f->step_ns || most->ns < KP_OP_COMPUTES_NS * (int64_t)most->count) {
        f->change = "That operator computes on the host while the GPU waits. Run it on the GPU (device=\"cuda\") or in "
                    "the DataLoader's workers. Launch less for the rest: torch.compile(model, "
                    "mode=\"reduce-overhead\"), larger batches.";
        return;
    }
    f->share *= ns / f->step_ns;
    f->step_ns = ns;
    f->id = KP_FINDING_ON_CPU;
    f->what = "the GPU waits for an operator that computes on the CPU";
    f->change = "Run it on the GPU (device=\"cuda\") or in the DataLoader's workers.";
}

/* The splits without the time in which no op runs that the finding of reads has told; the caller frees them. */
static struct kp_step_split *without_reads(const struct kp_costrules *x, const struct kp_step_split *splits)
{
    struct kp_step_split *const out = kp_kineto_room(x->out->steps + 1, sizeof *out);
    for (size_t i = 0; i < x->out->steps; i++) {
        const int64_t ns = kp_spans_between(&x->read_idle, x->chosen->steps[i].start_ns, x->chosen->steps[i].end_ns);
        out[i] = splits[i];
        out[i].part_ns[KP_SPLIT_IDLE] -= ns < splits[i].part_ns[KP_SPLIT_IDLE] ? ns : splits[i].part_ns[KP_SPLIT_IDLE];
    }
    return out;
}

/* Adds up, over the steps, what a finding costs and in how many it passes the bound. Returns the mean step's ns. */
static double cost_measure(struct kp_finding *f, const struct kp_step_split *splits, size_t steps, int measure,
                           double bound)
{
    double step_ns = 0;
    for (size_t i = 0; i < steps; i++) {
        f->steps += (double)measured(&splits[i], measure) >= bound * (double)splits[i].step_ns;
        f->step_ns += (double)measured(&splits[i], measure) / (double)steps;
        step_ns += (double)splits[i].step_ns / (double)steps;
    }
    return step_ns;
}

/* The place of a GPU's idle time, and what is known of its reason. */
static void cause_place_tell(const struct kp_costrules *x, const struct advice_rule *rule, struct kp_finding *f)
{
    if (rule->measure == KP_CAUSE(KP_IDLE_LAUNCH)) {
        if (is_of_the_host(x->tree, f->where)) host_op_tell(x, f);
        else kp_launchplace_tell(x, f);
    }
    if (rule->measure == KP_CAUSE(KP_IDLE_SYNC) && f->where && strstr(f->where, "Synchronize"))
        f->change = "Remove torch.cuda.synchronize(), which is meant for timing. Read losses and metrics (.item(), "
                    ".cpu(), print) every N steps.";
    if (rule->measure == KP_CAUSE(KP_IDLE_DEPENDENCY) && x->places->turns.count) turns_tell(x, f);
}

static bool is_no_op(const struct kp_advice *out, const struct advice_rule *rule)
{
    return rule->measure == KP_SPLIT_IDLE && !out->has_gpu;
}

/* The splits without what the rule does not judge; the caller frees them. NULL: it judges all. */
static struct kp_step_split *judged_of(const struct kp_costrules *x, const struct advice_rule *rule,
                                       const struct kp_step_split *splits, struct kp_loadcore *taken)
{
    if (is_no_op(x->out, rule)) {
        struct kp_step_split *const of = without_reads(x, splits), *const out =
                                                                       kp_loadcore_splits(x, of, KP_SPLIT_IDLE, taken);
        free(of);
        return out;
    }
    if (rule->measure != KP_SPLIT_LOADING || kp_part_is_of_others(x, KP_SPLIT_LOADING)) return NULL;
    return kp_loadcore_splits(x, splits, KP_SPLIT_LOADING, taken);
}

/* Loading has its own line, and its change, where the step itself loads. */
static void loading_tell(struct kp_costrules *x, const struct kp_loadcore *taken, struct kp_finding *f)
{
    const bool is_each = kp_loadepochs_each(x, f), is_tensors = !is_each && kp_loadtensors_tell(x, f);
    if (!is_each && !is_tensors && f->where && kp_kineto_is_of_workers(f->where)) kp_loadsampler_awake(x, f);
    if (!is_each && f->where && strstr(f->where, "_SingleProcessDataLoaderIter")) {
        const char *const unpacks = kp_loadunpack_most(x);
        kp_loadplace_tell(x, taken, f);
        f->what =
            unpacks && !f->is_bursty
                ? KP_TEXT("the step waits for data, which its items %s, and the DataLoader has no workers", unpacks)
            : f->is_bursty ? KP_TEXT("%s: it has no workers", f->what)
                           : "the step waits for data, because the DataLoader has no workers";
    }
    f->what = KP_TEXT("%s%s", f->what, kp_loadsampler_text(x));
}

/* Does Python itself have the time, with each of its calls recorded? That slows its own code by up to 3 times. */
static bool is_of_python(const struct kp_costrules *x, const struct advice_rule *rule, const struct kp_finding *f)
{
    const bool loads =
        rule->measure == KP_SPLIT_LOADING && f->where && strstr(f->where, "_SingleProcessDataLoaderIter");
    const bool is = is_no_op(x->out, rule) || rule->measure == KP_CAUSE(KP_IDLE_PYTHON) || loads;
    return is && kp_costrules_has_calls(x);
}

/* Its share is of steps without waits for a core. */
static void core_tell(const struct kp_loadcore *taken, double judged_ns, struct kp_finding *f)
{
    if (taken->step_ns >= KP_CORE_WAITED_MUCH * (judged_ns + taken->step_ns)) f->of.core_ns = judged_ns;
}

/*
 * Waits are known by step, and not in which of its parts they lie. If others have as much of the core as the thread
 * has, all of them may lie in this part: the rest of it then has to be critical.
 */
static bool is_sure(const struct kp_costrules *x, const struct kp_loadcore *taken, double judged_ns, double part_ns)
{
    const double least_ns = part_ns + taken->load_ns - taken->step_ns;
    return kp_summary_core_waited(x->tree->trace) < KP_CORE_WAITED_HALF || least_ns >= KP_SHARE_CRITICAL * judged_ns;
}

/* Two runs of one program may lie on both sides of the bound: below it a note says the same. */
static void no_op_note(struct kp_costrules *x, const struct advice_rule *rule, struct kp_finding f)
{
    if (!is_no_op(x->out, rule) || f.share < NO_OP_NOTED || f.share >= NO_OP_SHARE || x->tree->trace->has_heap) return;
    place_tell(x, rule, &f);
    if (is_of_reads(x, f.where)) return;
    f.of.is_steady = x->whole;
    f.of.mean_ns = x->out->step_ns;
    const char *const of = kp_costrules_share_of(x, &f.of);
    x->out->no_op = KP_TEXT("%s: %s%.3g ms per step, %.1f %%%s%s", f.what, is_of_python(x, rule, &f) ? "at most " : "",
                            f.step_ns / 1e6, 100 * f.share, of ? " " : "", of ? of : "");
}

/* Whether it is a finding. */
static struct kp_finding *rule_judge(struct kp_costrules *x, const struct advice_rule *rule)
{
    struct kp_advice *const out = x->out;
    const struct kp_step_split *splits = x->splits;
    struct kp_finding f = {.id = rule->id, .what = rule->what, .change = rule->change};
    struct kp_loadcore taken = {0};
    if (rule->with == (out->has_gpu ? WITHOUT_GPU : WITH_GPU)) return NULL;
    if (out->is_gpu_lost && (is_cause(rule) || rule->measure == KP_SPLIT_IDLE)) return NULL;
    if (is_cause(rule) && out->has_gpu && out->mean_ns[KP_SPLIT_IDLE] < SHARE_IDLE * out->step_ns) return NULL;
    if ((rule->measure == KP_SPLIT_LOADING || is_no_op(out, rule)) && x->trained) {
        splits = x->trained; /* what an evaluation inside of the training has of it is no fault of that */
        f.of.is_trained = x->evaluated.count;
    }
    struct kp_step_split *const rest = judged_of(x, rule, splits, &taken);
    const double judged_ns = cost_measure(&f, rest ? rest : splits, out->steps, rule->measure, rule->bound);
    f.share = judged_ns > 0 ? f.step_ns / judged_ns : 0;
    const bool is_found = f.steps >= KP_STEPS_LEAST && judged_ns > 0 && f.step_ns >= rule->bound * judged_ns;
    if (is_found && rule->measure == KP_SPLIT_LOADING) kp_loadwaits_tell(x, rest ? rest : splits, &f);
    free(rest);
    core_tell(&taken, judged_ns, &f);
    if (!is_found) no_op_note(x, rule, f);
    if (!is_found) return NULL;
    f.is_critical = kp_advise_is_critical(&f, out->steps);
    if (rule->measure == KP_SPLIT_LOADING && f.share >= KP_SHARE_CRITICAL && f.steps >= 3)
        f.is_critical |= f.is_bursty || 10 * f.steps >= out->steps; /* of several workers few steps wait, for all */
    if (f.of.core_ns > 0) f.is_critical &= is_sure(x, &taken, judged_ns, f.step_ns);
    place_tell(x, rule, &f);
    cause_place_tell(x, rule, &f);
    if (rule->measure == KP_SPLIT_IDLE && is_of_reads(x, f.where)) return NULL;
    if (is_no_op(out, rule) && x->tree->trace->has_heap) return NULL; /* it was traced */
    if (is_no_op(out, rule)) {
        f.is_critical &= f.share >= NO_OP_CRITICAL;
        const double part = f.step_ns / (f.step_ns + taken.load_ns);
        f.steps = gap_steps(x, f.step_ns / part, NULL);
        gap_tell(x, part, &f);
    }
    if (rule->measure == KP_SPLIT_LOADING) loading_tell(x, &taken, &f);
    f.is_at_most = is_of_python(x, rule, &f);
    return kp_costrules_tell(x, &f);
}

/*
 * Judges the place that has most of the time without an op, where all of that time is no finding: one loop of Python in
 * each step is to be found, many short gaps are the price of small ops. A few long ones are those of slow steps.
 */
static bool one_gap_judge(struct kp_costrules *x, const struct advice_rule *rule)
{
    const struct kp_step_split *const splits = x->trained ? x->trained : x->splits;
    const struct kp_costplace *const most = kp_costplaces_most(&x->places->causes[KP_IDLE_PYTHON]);
    struct kp_finding f = {.id = rule->id, .what = rule->what, .change = rule->change};
    if (!most || x->tree->trace->has_heap) return false;
    struct kp_loadcore taken;
    struct kp_step_split *const rest = kp_loadcore_splits(x, splits, KP_SPLIT_IDLE, &taken);
    const double judged_ns = cost_measure(&f, rest, x->out->steps, KP_SPLIT_IDLE, ONE_GAP_SHARE);
    const double part = f.step_ns > 0 ? f.step_ns / (f.step_ns + taken.load_ns) : 1;
    free(rest);
    core_tell(&taken, judged_ns, &f);
    const bool is_sure_part = !(f.of.core_ns > 0) || is_sure(x, &taken, judged_ns, f.step_ns);
    f.of.is_trained = x->trained && x->evaluated.count;
    f.step_ns = part * (double)most->ns / (double)x->out->steps; /* of all gaps only this place's */
    f.share = judged_ns > 0 ? f.step_ns / judged_ns : 0;
    if (f.step_ns < ONE_GAP_NS || f.share < ONE_GAP_SHARE || 2 * f.steps < x->out->steps) return false;
    const double most_ns = part * (double)most->most_ns;
    if (most_ns > 3 * f.step_ns || 2 * most_ns < f.step_ns) return false;
    f.steps = gap_steps(x, f.step_ns / part, most);
    if (2 * f.steps < (x->whole ? x->whole : x)->chosen->step_count)
        return false; /* a single one that is shorter than 3 means, of a few steps */
    f.is_critical = is_sure_part && kp_advise_is_critical(&f, x->out->steps);
    place_tell(x, rule, &f);
    if (is_of_reads(x, f.where)) return false;
    f.is_at_most = is_of_python(x, rule, &f);
    gap_tell(x, part, &f);
    if (f.what == rule->what) f.change = gap_change;
    else if (f.change != own_change)
        f.change = "Move that line out of the step, or run it less often. `kprof report --by line` has the other "
                   "lines, `kprof stacks` their callers.";
    (void)kp_costrules_tell(x, &f);
    x->out->no_op = NULL;
    return true;
}

struct gap_place {
    double ns;
    uint32_t line;
    size_t steps, last_step; /* last_step: + 1 */
};
struct line_gaps {
    struct kp_costrules *x;
    struct kp_keyindex keys; /* kp_costplace_key; rows: struct gap_place */
    uint32_t line;           /* that is charged; 0: all are looked at */
    double *of;              /* by step */
    size_t count;
    struct kp_costplaces places;
    struct kp_spans loading; /* calls of a DataLoader, which is told as such */
};

/* Another finding has told it, or it is before an op of torch's optimizer, or in backward, which runs no Python. */
static bool is_told_gap(const struct kp_costrules *x, int32_t node, int64_t ns)
{
    const int64_t end = x->tree->nodes[node].start_ns;
    return kp_node_is_in(x->tree, node, KP_NAME_OPTIMIZER) || kp_node_is_in(x->tree, node, KP_NAME_ENGINE) ||
           2 * kp_spans_between(&x->read_idle, end - ns, end) > ns ||
           (kp_costrules_find(x, KP_FINDING_INPUT) && kp_rules_is_input(x, (size_t)node));
}

/* A wait for a core makes a gap anywhere. */
static bool is_of_most_steps(const struct line_gaps *g, const struct gap_place *place)
{
    return 2 * place->steps >= g->x->chosen->step_count;
}

static void line_gap_take(struct line_gaps *g, size_t step, int32_t node, int32_t before, int64_t ns)
{
    const int64_t end = g->x->tree->nodes[node].start_ns;
    ns -= kp_spans_between(&g->loading, end - ns, end);
    const uint32_t line = ns < LONG_GAP_NS ? 0 : kp_costplace_line(g->x->tree, node);
    if (!line || (g->line && line != g->line) || is_told_gap(g->x, node, ns)) return;
    const struct gap_place empty = {.line = line};
    struct gap_place *const place = kp_keyindex_row(&g->keys, kp_costplace_key(g->x->tree, node), &empty, sizeof empty);
    if (!g->line) {
        place->ns += (double)ns;
        place->steps += place->last_step != step + 1;
        place->last_step = step + 1;
    } else if (is_of_most_steps(g, place)) {
        g->of[step] += (double)ns;
        g->count++;
        kp_costplaces_add(&g->places, g->x->tree, node, before, ns);
    }
}

static void line_gaps_walk(struct line_gaps *g)
{
    for (size_t i = 0; i < g->x->chosen->step_count; i++)
        for (struct kp_longsteps_walk w = kp_longsteps_walk_of(g->x, i, true); kp_longsteps_next(&w);)
            line_gap_take(g, i, w.node, w.before, w.ns);
}

/* The line with most of the places that most steps have a gap at; its ns. */
static double line_gaps_most(struct line_gaps *g)
{
    struct kp_keyindex lines = {0}; /* rows: ns */
    const struct gap_place *const of = g->keys.rows;
    double most = 0;
    for (size_t i = 0; i < g->keys.count; i++) {
        if (!is_of_most_steps(g, &of[i])) continue;
        double *const ns = kp_keyindex_sum(&lines, of[i].line);
        *ns += of[i].ns;
        if (*ns > most) most = *ns, g->line = of[i].line;
    }
    kp_keyindex_fini(&lines);
    return most;
}

/* Sets the ns of a step; returns how many steps have half of it or more. 0: too little. */
static size_t line_gaps_find(struct line_gaps *g, double *ns)
{
    size_t count = 0;
    kp_costrules_spans(g->x, KP_NAME_LOADER, &g->loading);
    line_gaps_walk(g);
    *ns = line_gaps_most(g) / (double)g->x->chosen->step_count;
    if (*ns < ONE_GAP_NS || *ns < LINE_SHARE * g->x->out->step_ns) return 0;
    line_gaps_walk(g);
    for (size_t i = 0; i < g->x->chosen->step_count; i++) count += 2 * g->of[i] >= *ns;
    return count;
}

/*
 * Several gaps of one line are told together: a mask that each layer makes is one gap, or two, of each layer. A cost
 * that less than half of the steps have stands with the slow ones.
 */
static void line_gaps_judge(struct kp_costrules *x, const struct advice_rule *rule)
{
    struct line_gaps g = {.x = x, .of = kp_kineto_zeros(x->chosen->step_count + 1, sizeof *g.of)};
    struct kp_finding f = {.id = rule->id, .change = gap_change};
    const bool may_wait = x->tree->trace->has_heap || x->out->mean_ns[KP_SPLIT_COMM] > 0 || /* traced; for ranks */
                          kp_costrules_is_crowded(x);
    f.steps = may_wait ? 0 : line_gaps_find(&g, &f.step_ns);
    f.share = x->out->step_ns > 0 ? f.step_ns / x->out->step_ns : 0;
    if (f.steps && 2 * f.steps >= x->chosen->step_count) {
        f.is_critical = kp_advise_is_critical(&f, x->out->steps);
        kp_costplaces_tell(&g.places, x->tree->trace, &f);
        f.what = KP_TEXT("no operator runs in %.3g gaps per step before operators of one line",
                         (double)g.count / (double)x->chosen->step_count);
        if (kp_costrules_has_calls(x)) f.change = lines_change;
        (void)kp_costrules_tell(x, &f);
        x->out->no_op = NULL;
    }
    kp_keyindex_fini(&g.keys);
    kp_costplaces_fini(&g.places);
    kp_spans_fini(&g.loading);
    free(g.of);
}

/* The bytes that a link moves meanwhile: from each collective's begin to its end, in which a rank may wait for
 * others. */
static const char *bandwidth_tell(const struct kp_costrules *x, const char *what)
{
    double bytes = 0, ns = 0;
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        if (w->part != KP_SPLIT_COMM || !w->said || w->said->bus_bytes <= 0) continue;
        bytes += (double)w->said->bus_bytes;
        ns += (double)(w->end_ns - w->start_ns);
    }
    return ns > 0 ? KP_TEXT("%s, at %.1f GB/s of bus bandwidth including waits", what, bytes / ns) : what;
}

/* The work that overlaps, by what ranks send one another for; `change` is that of gradients. */
static const char *overlap_text(const struct kp_costrules *x, const char *change)
{
    struct kp_commkinds kinds = {0};
    kp_commkinds_add(&kinds, x->tree, &x->chosen->in_steps);
    const enum kp_commkind most = kp_commkinds_most(&kinds);
    if (most == KP_COMM_REDUCE) return change;
    return KP_TEXT("If no rank is late (see kprof advise with the traces of all ranks): %s.",
                   kp_commkinds_overlap(&kinds));
}

/* The causes come first among the rules: all idle is told only where no cause of it is. */
void kp_rules_parts(struct kp_costrules *x)
{
    bool has_cause = false;
    kp_rules_no_sync(x);
    kp_rules_sampler(x);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if ((rules[i].measure == KP_SPLIT_IDLE && has_cause) || x->explained >> rules[i].measure & 1) continue;
        struct kp_finding *const told = rule_judge(x, &rules[i]);
        if (!told && is_no_op(x->out, &rules[i]) && rules[i].with == WITHOUT_GPU && !one_gap_judge(x, &rules[i]))
            line_gaps_judge(x, &rules[i]);
        if (!told) continue;
        has_cause |= is_cause(&rules[i]);
        if (rules[i].measure != KP_SPLIT_COMM || kp_rules_small_comm(x, rules[i].bound, told)) continue;
        told->what = bandwidth_tell(x, told->what);
        if (rules[i].with == WITH_GPU) told->change = overlap_text(x, told->change);
    }
}

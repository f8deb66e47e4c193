// SPDX-License-Identifier: Apache-2.0
/* advice.c - what is advised of a trace: asks all rules, puts their findings in order, and says what is not judged */
#include "export/answers/advise/advice.h"

#include <math.h>
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/hotlines.h"
#include "export/answers/advise/opsrules/opsrules.h"
#include "export/answers/advise/rules/rules.h"
#include "export/answers/advise/rules/waits.h"
#include "export/answers/top/timeshares.h"
#include "export/answers/stacks/stepparts.h"
#include "export/read/facts/steps/stepthreads.h"
#include "export/read/facts/unanswered.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/phasetimes.h"
#include "export/show/units.h"

#define OTHERS_LITTLE 0.1 /* of the time in which the thread of the steps had a core */
#define KP_BARE_TOLD 1.15 /* recorded steps last so many times as long: that changes which finding is the first */

/*
 * A program that leaves memory in each step ends by it, whatever else it costs. Threads that take the cores from one
 * another make all slower: all other findings are measured under them. A cost that half of the steps have at least
 * comes before one that few have: a run has more of the former, however long it was recorded. A compiler that has half
 * of all time comes with the former: the next size compiles again (decisions/195).
 */
static int rank_of(const struct kp_finding *f)
{
    if (strcmp(f->id, KP_FINDING_GROWS) == 0 || strcmp(f->id, KP_FINDING_RESIDENT) == 0) return 0;
    const bool is_most = strcmp(f->id, KP_FINDING_COMPILE) == 0 && f->share >= KP_SHARE_MOST;
    if (!f->is_critical && !is_most) return 3;
    return strcmp(f->id, KP_FINDING_THREADS) == 0 ? 1 : 2;
}

KP_ORDERED(finding_order, struct kp_finding, if (rank_of(x) != rank_of(y)) return rank_of(x) - rank_of(y);
           KP_DOWN(step_ns))

static void means_make(struct kp_advice *out, const struct kp_step_split *splits)
{
    memset(out->mean_ns, 0, sizeof out->mean_ns);
    memset(out->cause_ns, 0, sizeof out->cause_ns);
    out->step_ns = 0;
    struct kp_sample lengths = {0};
    for (size_t i = 0; i < out->steps; i++) {
        out->step_ns += (double)splits[i].step_ns;
        kp_sample_add(&lengths, (double)splits[i].step_ns);
        for (int p = 0; p < KP_SPLIT_PARTS; p++) out->mean_ns[p] += (double)splits[i].part_ns[p] / (double)out->steps;
        for (int c = 0; c < KP_IDLE_CAUSES; c++) out->cause_ns[c] += (double)splits[i].cause_ns[c] / (double)out->steps;
    }
    out->median_ns = kp_sample_end(&lengths, 0.5);
    if (out->steps) out->step_ns /= (double)out->steps; /* once, as kp_chosen_steps_ns(): shares round alike */
}

static void usual_make(struct kp_advice *out, const struct kp_step_split *splits)
{
    double *lengths = kp_kineto_room(out->steps + 1, sizeof *lengths);
    for (size_t i = 0; i < out->steps; i++) lengths[i] = (double)splits[i].step_ns;
    out->usual = (struct kp_usual_split){.of = kp_usual_steps_of(lengths, out->steps)}; /* the host's, then the GPU's */
    free(lengths);
    const double count = (double)(out->steps - out->usual.of.left_out);
    for (size_t i = 0; i < out->steps && out->usual.of.left_out; i++) {
        if ((double)splits[i].step_ns > out->usual.of.most_ns) continue;
        out->usual.step_ns += (double)splits[i].step_ns / count;
        for (int p = 0; p < KP_SPLIT_PARTS; p++) out->usual.mean_ns[p] += (double)splits[i].part_ns[p] / count;
    }
}

/*
 * Judges what every step has, without those that are long for a reason of their own. All that costs by then was charged
 * to all steps. `explained`: what rules before said better, of steps that are not long, too. False: none is long.
 */
static bool steady_judge(struct kp_costrules *x, uint32_t explained)
{
    struct kp_steady steady;
    struct kp_advice *const out = x->out;
    const size_t steps = out->steps, told = out->count;
    const bool is_known = kp_steady_open(&steady, x);
    if (is_known) {
        struct kp_costrules of = *x;
        of.whole = x;
        of.chosen = &steady.chosen;
        of.splits = steady.splits;
        of.trained = steady.trained;
        of.places = &steady.places;
        out->steps = steady.chosen.step_count;
        means_make(out, steady.splits);
        of.explained = explained;
        if (out->mean_ns[KP_SPLIT_IDLE] <= 2 * (out->cause_ns[KP_IDLE_GC] + out->cause_ns[KP_IDLE_COMPILE]))
            of.explained |= 1u << KP_SPLIT_IDLE; /* half of it is a collector or a compiler: their rules have told it */
        kp_rules_each_step(&of);
        kp_rules_parts(&of);
        for (size_t i = told; i < out->count; i++) {
            out->findings[i].of.is_steady = true;
            out->findings[i].of.mean_ns = out->step_ns;
        }
        x->unrecorded = of.unrecorded;
        kp_spans_fini(&of.read_idle); /* with that of x */
        x->read_idle = (struct kp_spans){0};
        out->steps = steps;
        means_make(out, x->splits);
    }
    kp_steady_fini(&steady);
    return is_known;
}

/* For steps of the host. */
static void host_rules_judge(struct kp_costrules *x)
{
    const uint32_t of_gpu = x->explained;
    kp_rules_waits(x);
    kp_rules_pycalls(x);
    const uint32_t of_waits = x->explained & ~of_gpu;
    kp_rules_compiling(x);
    kp_rules_collecting(x);
    const uint32_t of_collecting = x->explained;
    kp_rules_steps(x);
    const uint32_t of_steps = x->explained & ~of_collecting;
    kp_rules_memory(x);
    kp_rules_host(x);
    kp_rules_faults(x);
    if (steady_judge(x, of_gpu | of_waits | of_steps)) return;
    kp_rules_each_step(x);
    kp_rules_parts(x);
}

/* For steps of a GPU that its host is ahead of: by the GPU's work, whatever the host does meanwhile. */
static void rules_judge(struct kp_costrules *x)
{
    const bool is_of_host = !x->out->ahead || x->out->is_late;
    if (x->out->has_gpu && !x->out->is_gpu_lost) kp_gpu_figures_make(&x->out->gpu, x);
    kp_rules_copies(x);
    if (is_of_host && !x->out->is_gpu_lost) kp_rules_launches(x);
    kp_rules_kernels(x);
    kp_rules_attention(x);
    kp_rules_repeated(x);
    kp_rules_sorts(x);
    if (!x->out->is_gpu_lost) kp_rules_fusing(x);
    if (x->out->has_gpu) kp_rules_bandwidth(x);
    if (is_of_host) host_rules_judge(x);
    else kp_rules_parts(x);
    kp_rules_float64(x);
    kp_rules_bfloat16(x);
    kp_rules_wasted(x);
    kp_rules_pairwise(x);
    if (!x->out->has_gpu) kp_rules_dense_gradients(x);
    kp_rules_unused_grads(x);
    kp_rules_optimizer_faults(x);
    kp_rules_resident(x);
    kp_rules_open_files(x);
}

/*
 * The host is ahead, so what runs in its steps is of earlier ones. The GPU's own steps are judged, by what runs in
 * them. False: they are not to be had, and nothing is judged.
 */
static bool gpu_steps_judge(struct kp_costrules *x, struct kp_step_split *splits, double backlog_ns)
{
    const struct kp_chosen *const chosen = x->chosen;
    const struct kp_split_places *const kept = x->places;
    struct kp_split_places places = {0};
    struct kp_chosen steps;
    const bool is_known = kp_gpu_steps_make(&steps, x->tree, chosen);
    if (is_known) {
        kp_rules_memory(x);
        kp_step_split_places(splits, x->tree, &steps, &places);
        means_make(x->out, splits);
        usual_make(x->out, splits);
        x->chosen = &steps;
        x->places = &places;
        x->out->ahead = KP_TEXT("the host is ahead of the GPU, by %.1f steps more at the end than at the "
                                "start: a step is the GPU's, from its first work to that of the next",
                                backlog_ns / x->out->step_ns);
        rules_judge(x);
        x->chosen = chosen;
        x->places = kept;
    }
    kp_split_places_fini(&places);
    kp_chosen_fini(&steps);
    return is_known;
}

/* The host waits for the GPU now and then: the steps of both last equally long in the mean alone. NULL: not so. */
static const char *late_of(struct kp_costrules *x)
{
    const size_t count = x->chosen->step_count;
    struct kp_chosen steps;
    const bool is_known = kp_gpu_steps_make(&steps, x->tree, x->chosen);
    struct kp_sample lengths = {0};
    size_t late = 0;
    for (size_t i = 0; is_known && i < count; i++) {
        kp_sample_add(&lengths, (double)steps.steps[i].inside_ns);
        late += steps.steps[i].start_ns >= x->chosen->steps[i].end_ns;
    }
    const double median = kp_sample_end(&lengths, 0.5);
    kp_chosen_fini(&steps);
    if (late <= count / 2) return NULL;
    return KP_TEXT("the host is ahead of the GPU, by a step or more in %zu of %zu steps, until it waits: on "
                   "the GPU a step lasts %.3f ms (median, from its first work to that of the next)",
                   late, count, median / 1e6);
}

/* True: the GPU falls behind, and its steps are not to be had. */
static bool steps_judge(struct kp_costrules *x, struct kp_step_split *splits, double backlog_ns)
{
    struct kp_advice *const a = x->out;
    if (kp_gpu_steps_are_behind(a->steps, a->step_ns, backlog_ns)) return !gpu_steps_judge(x, splits, backlog_ns);
    if (a->has_gpu && a->steps) a->ahead = late_of(x);
    a->is_late = a->ahead;
    if (a->steps) rules_judge(x);
    return false;
}

/* A sentence, if kernels were launched and are not in the trace: then what the GPU does is not judged. Else NULL. */
static const char *lost_work(struct kp_costrules *x)
{
    struct kp_unanswered of = {0};
    char text[160];
    kp_unanswered_add(&of, x->tree);
    if (!kp_unanswered_much(&of)) return NULL;
    if (of.kernels && of.kernels_lost == of.kernels && of.graphs_lost == of.graphs)
        return KP_TEXT("none of the %zu launched kernels is in the trace, so the GPU's work is unknown. %s", of.kernels,
                       kp_kineto_fact(x->tree->trace, "kprof.gpu_source")
                           ? "`kprof report` and `kprof doctor` say why"
                           : "Its profiler could not record the GPU: `kprof doctor` there says why");
    kp_unanswered_text(text, sizeof text, &of);
    return KP_TEXT("%s, so the GPU is busier than shown", text);
}

/* The parts that lack in the recording of whole steps. */
static const char *lost_of(struct kp_costrules *x)
{
    const struct kp_kineto *const trace = x->tree->trace;
    const bool has_gpu = x->out->has_gpu;
    const char *const dropped = kp_kineto_fact(trace, "kprof.lost");
    if (!has_gpu && x->tree->has_device)
        return "GPU work was recorded before or after these steps, but not in them. Another profiler may have used "
               "CUPTI then";
    if (!has_gpu && kp_kineto_gpu_ended(trace)) return "the recording of GPU work stopped; `kprof report` says why";
    if (dropped && strcmp(dropped, "0") != 0) return "events were dropped; `kprof report` lists them";
    return lost_work(x);
}

static const char *missing_of(struct kp_costrules *x, bool is_behind)
{
    const struct kp_kineto *const trace = x->tree->trace;
    const struct kp_chosen *const chosen = x->chosen;
    const size_t steps = chosen->step_count;
    if (!steps && kp_kineto_fact(trace, "kprof.parent_pid"))
        return "this is a worker or another child process, which has no steps. Its parent's trace has them; `kprof "
               "report` shows what this one did";
    if (!steps && kp_kineto_missed_call(trace)) return kp_kineto_missed_call(trace);
    if (!steps && (chosen->parts.has_startup || chosen->parts.has_cut))
        return "no step is whole: the first contains the program's start, and the last was cut short. Record steps in "
               "between: kprof run --schedule wait=1,warmup=1,active=10";
    if (!steps)
        return "no steps were found in the trace. To count calls of the model as steps: kprof run --schedule "
               "active=1000. To count calls of a function: --step call:MODULE:FUNCTION (kprof doctor --steps lists "
               "some). Without steps: kprof report";
    if (steps < KP_STEPS_LEAST) return "fewer than two whole steps. To record 21: kprof run --schedule 10-30";
    if (is_behind)
        return "the GPU falls behind: in these steps the host launches more work than the GPU finishes. Record more "
               "steps: kprof run --schedule 10-30";
    return lost_of(x);
}

/* A schedule leaves out most of what a run evaluates. The trace of a training says how much that was. */
static void phases_tell(struct kp_costrules *x)
{
    struct kp_phasetimes times;
    char text[1024];
    const char *const phase = kp_kineto_fact(x->tree->trace, "kprof.phase");
    if (!kp_phasetimes_of(&times, x->tree->trace) || (phase && strncmp(phase, "train", 5) != 0)) return;
    if (!kp_phasetimes_text(text, sizeof text, &times, phase ? phase : "train")) return;
    x->out->evaluated =
        KP_TEXT("%s%s%s, none of which is in %s", x->out->evaluated ? x->out->evaluated : "",
                x->out->evaluated ? "; " : "", text, times.is_of_last ? "this phase's traces" : "this trace");
}

/* The time of a phase that lies in no step, also in none that is not whole. 0: the trace is of none. */
static int64_t outside_of_steps(const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_spans steps = {0};
    if (!tree->trace->windows) return 0;
    for (size_t i = 0; i < tree->count; i++)
        if (kp_node_is_step(tree, &tree->nodes[i]))
            kp_spans_add(&steps, tree->nodes[i].start_ns, tree->nodes[i].end_ns);
    for (size_t i = 0; i < chosen->step_count; i++) /* those of an optimizer are no nodes */
        kp_spans_add(&steps, chosen->steps[i].start_ns, chosen->steps[i].end_ns);
    kp_spans_settle(&steps);
    const int64_t outside = kp_spans_length(&chosen->spans, NULL) - kp_spans_length(&steps, &chosen->spans);
    kp_spans_fini(&steps);
    return outside;
}

/* Steps are judged. A validation by hand may have much behind its last step. */
static void outside_tell(struct kp_costrules *x)
{
    const int64_t all = kp_spans_length(&x->chosen->spans, NULL), outside = outside_of_steps(x->tree, x->chosen);
    const char *const phase = kp_kineto_fact(x->tree->trace, "kprof.phase");
    if (!phase || (double)outside <= (1 - KP_SHARE_HEALTHY) * (double)all) return;
    x->out->outside =
        KP_TEXT("%.1f %% of the phase (%.1f ms) is outside steps and was not checked: kprof report --phase %s",
                100 * (double)outside / (double)all, (double)outside / 1e6, phase);
}

const char *kp_advice_guesses(const struct kp_kineto *trace)
{
    const char *const source = kp_kineto_fact(trace, "kprof.step_source");
    if (!source) return NULL;
    if (strcmp(source, "module") == 0) return "calls of a model";
    if (strcmp(source, "dataloader") == 0) return "batches of a DataLoader";
    return strcmp(source, "time") == 0 ? "seconds" : NULL;
}

/* Steps of before the first one by an optimizer, where the schedule started over. */
static const char *guessed_of(const struct kp_costrules *x)
{
    const struct kp_kineto *const trace = x->tree->trace;
    const char *const each = kp_advice_guesses(trace), *const until = kp_kineto_fact(trace, "kprof.steps_until");
    if (!each || !until || !x->out->steps) return NULL;
    return KP_TEXT("the steps are %s from before the first step by %s; they may be an evaluation", each,
                   strcmp(until, "optimizer") == 0 ? "an optimizer" : until);
}

/* How many times as long recorded steps last as those before the window; 0: not known, or others have the cores. */
static double times_as_long(const struct kp_costrules *x)
{
    long steps;
    const double bare = (double)kp_summary_bare_ns(x->tree->trace, &steps);
    return bare > 0 && !kp_costrules_is_crowded(x) && !x->out->ahead ? x->out->median_ns / bare : 0;
}

/* Recording lengthens what the host does, and not what its GPU does: what is left of a GPU's waits without it. */
static const char *host_without(const struct kp_costrules *x, double times)
{
    const double host = x->out->cause_ns[KP_IDLE_LAUNCH] + x->out->cause_ns[KP_IDLE_PYTHON];
    const double longer = x->out->median_ns - x->out->median_ns / times;
    if (!x->out->has_gpu || host < KP_SHARE_CRITICAL * x->out->step_ns || longer >= host) return "";
    return KP_TEXT(". The GPU waits %.3g ms per step for launches and Python, about %.3g ms without recording",
                   host / 1e6, (host - longer) / 1e6);
}

/* The cost of the recording itself, if it may be taken for the program's. */
static const char *slowed_by(const struct kp_costrules *x)
{
    const double times = times_as_long(x);
    if (x->tree->trace->has_heap)
        return "recording every allocation (KPROF_MALLOC=trace) makes steps longer; measure times in a separate run";
    const char *const python = kp_kineto_fact(x->tree->trace, "kprof.python_version"); /* NULL: of a trace of before */
    if (x->out->count && kp_costrules_has_calls(x))
        return python && KP_NAME_IS(python, "3.10", "3.11")
                   ? "recording every Python call slows loops on Python 3.10 and 3.11 by up to 3x, so "
                     "pure Python looks slower than it is. Use `--with-stack ops` for timing"
                   : "recording every Python call makes functions look slower than they are. Use "
                     "`--with-stack ops` for timing";
    if (!x->out->count || times < KP_BARE_TOLD) return NULL;
    return KP_TEXT("a step takes %.2f times as long as before recording (%.3f ms). If recording is why, ops, "
                   "launches and Python cost less than reported%s",
                   times, x->out->median_ns / times / 1e6, host_without(x, times));
}

/* A killed program's recording does not tell how many threads were busy, but how long all but the one had a core. */
static bool is_one_thread(const struct kp_costrules *x)
{
    const double had = kp_costrules_fact(x, "kprof.core_had_us"), others = kp_costrules_fact(x, "kprof.core_others_us");
    return kp_kineto_fact(x->tree->trace, "kprof.core_others_us") && others < OTHERS_LITTLE * had;
}

/* Who has the cores that the thread of the steps wanted. */
static const char *who_has_them(struct kp_costrules *x)
{
    const long cores = (long)kp_costrules_fact(x, "kprof.cores");
    const bool is_one = is_one_thread(x);
    const long busy = (long)kp_costrules_fact(x, "kprof.busy_threads"), ran = busy > 0 ? busy : is_one;
    const char *const own = kp_ownthreads_text(x), *const plural = cores == 1 ? "" : "s";
    x->out->is_crowded_by_own = own;
    if (own) return KP_TEXT("%s (%s)", own, kp_ownthreads_where(x));
    if (!ran) return "More threads than cores, other programs or a container limit used the cores";
    if (ran > cores)
        return KP_TEXT("This program ran %ld threads on %ld core%s; other programs may use them as well", ran, cores,
                       plural);
    const char *const relatives = kp_ownthreads_relatives(x);
    return KP_TEXT(
        "Other programs%s or a container limit%s used the cores: this program ran %ld thread%s on %ld core%s",
        *relatives ? relatives : ",", *relatives ? "" : ",", ran, ran == 1 ? "" : "s", cores, plural);
}

/* "The machine got busier: ..", or "". */
static const char *busier_text(const struct kp_costrules *x)
{
    struct kp_steptrend trend, rest;
    double *const waits = kp_waitedsteps_find(x);
    const bool grow = kp_waitedsteps_grow(x, waits, &trend);
    for (size_t i = 0; i < x->chosen->step_count; i++) waits[i] = (double)x->splits[i].step_ns - waits[i];
    const bool rest_grows = grow && kp_steptrend_find(&rest, waits, x->chosen->step_count);
    free(waits);
    if (!grow) return "";
    const char *const more = rest_grows ? KP_TEXT(" The rest of a step grew as well, from %s to %s.",
                                                  kp_units_ms(rest.early_ns), kp_units_ms(rest.late_ns))
                                        : "";
    return KP_TEXT("The machine got busier: a step waited %s for a core in the first third of these steps, "
                   "and %s in the last.%s ",
                   kp_units_ms(trend.early_ns), kp_units_ms(trend.late_ns), more);
}

/* Everything is longer then, and no finding is to blame. */
static const char *crowded_of(struct kp_costrules *x)
{
    const double waited = kp_summary_core_waited(x->tree->trace);
    if (!kp_costrules_is_crowded(x) || !x->out->steps) return NULL;
    x->out->crowded_ns =
        fmin(1e3 * kp_costrules_fact(x, "kprof.core_waited_us") / (double)x->out->steps, x->out->step_ns);
    x->out->crowded_verdict = KP_TEXT("%s " KP_CORE_WAITED_SHORT, x->out->step_thread, 100 * waited);
    x->out->crowded_by = who_has_them(x);
    return KP_TEXT("%s " KP_CORE_WAITED_TEXT ". %s%s", x->out->step_thread, KP_CORE_WAITED_ARGS(waited), busier_text(x),
                   x->out->crowded_by);
}

/* No rule knows what a step is for that is no part of a training, as a sound that is filtered for each batch. A note
 * tells evaluations. */
static double elsewhere_of(const struct kp_costrules *x)
{
    struct kp_stepparts parts = {0};
    if (x->out->count || x->out->has_gpu || !x->out->steps) return 0;
    kp_stepparts_add(&parts, x->tree, x->chosen);
    const double other = (double)(kp_stepparts_ns(&parts, KP_PART_OTHER, false) - parts.all.between_ns) -
                         x->out->evaluated_ns * (double)x->out->steps;
    const bool is_known = kp_stepparts_has(&parts) && kp_stepparts_ns(&parts, KP_PART_FORWARD, false) > 0;
    const double share = is_known ? other / (double)parts.all.steps_ns : 0;
    kp_stepparts_fini(&parts);
    return share >= KP_SHARE_ELSEWHERE ? share : 0;
}

/* Kernels of devices whose traces differ from Kineto's: silence would say that the host alone computes. */
static const char *unread_text(const struct kp_costrules *x)
{
    const char *const device = kp_kineto_unread(x->tree->trace);
    if (!device) return NULL;
    return KP_TEXT("kernels of %s are in the trace, and are not judged: what is said here is of the host alone",
                   device);
}

/* Silence about what was not recorded would look like health. */
static void health_judge(struct kp_costrules *x)
{
    struct kp_advice *out = x->out;
    out->elsewhere = elsewhere_of(x);
    const bool is_well = !out->count && !out->missing && !out->unread && !out->outside && !out->crowded &&
                         !out->elsewhere && out->evaluated_ns < KP_SHARE_CRITICAL * out->step_ns &&
                         out->mean_ns[KP_SPLIT_COMPUTE] >= KP_SHARE_HEALTHY * out->step_ns;
    out->is_well = is_well;
    out->is_healthy = is_well && !x->unrecorded;
    if (out->count || out->missing || !x->unrecorded) return;
    out->is_unrecorded = true;
    out->missing = KP_TEXT("%s; not recorded, so not checked: %s",
                           is_well ? "healthy, as far as it was recorded" : "nothing is found", x->unrecorded);
}

/* Once all are told: their shares and those in words, and their order. */
static void findings_settle(struct kp_costrules *x)
{
    struct kp_advice *const out = x->out;
    const bool is_crowded = kp_costrules_is_crowded(x);
    const double much_ns = KP_SHARE_CRITICAL * out->step_ns;
    for (size_t i = 0; i < out->count; i++) {
        struct kp_finding *const f = &out->findings[i];
        /* Streams may work side by side for longer than the step, in sum: that is the most that it can cost. */
        if (f->share > 1) f->step_ns /= f->share, f->share = 1;
        /* A critical share is one of all of the time: if evaluations take most, of the steps without them. */
        if (f->step_ns > 0 && out->evaluated_ns >= much_ns && f->step_ns < much_ns) f->is_critical = false;
        f->of.has_waits = f->step_ns > 0 && !(f->of.core_ns > 0) && is_crowded;
        f->share_of = kp_costrules_share_of(x, &f->of);
    }
    qsort(out->findings, out->count, sizeof *out->findings, finding_order);
}

/* Which thread a step's costs are of: one, or each of several. */
static void threads_tell(struct kp_costrules *x)
{
    struct kp_stepthreads threads;
    struct kp_advice *const out = x->out;
    kp_stepthreads_find(&threads, x->tree);
    out->step_threads = threads.count;
    out->step_thread = threads.count > 1    ? "a thread of the steps"
                       : threads.are_others ? "the thread of the steps"
                                            : "the main thread";
    if (threads.count > 1 && out->steps >= 2 * threads.count) {
        out->at_once = KP_TEXT(
            "%zu threads run steps at once: one ends each %s, and a thread takes %s from one of its steps to its next",
            threads.count, kp_units_ms(out->step_ns), kp_units_ms(out->step_ns * (double)threads.count));
    } else if (threads.count > 1 && out->steps) { /* a thread for each request: none has a next step, and few meet */
        out->step_threads = 1;
        out->at_once =
            KP_TEXT("%zu threads ran %zu steps, about one each, as in a server that starts a thread for each request",
                    threads.count, out->steps);
    }
    kp_stepthreads_fini(&threads);
}

void kp_advice_make(struct kp_advice *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_step_split *splits = kp_kineto_room(chosen->step_count + 1, sizeof *splits);
    struct kp_split_places places = {0};
    *out = (struct kp_advice){.steps = chosen->step_count, .gpu = {-1, -1, -1, -1, -1, 0}};
    if (out->steps) out->ended_by = chosen->ended_by, out->last_step = chosen->steps[out->steps - 1].number;
    out->has_gpu = kp_step_split_places(splits, tree, chosen, &places);
    struct kp_unanswered unanswered = {0};
    if (out->has_gpu) kp_unanswered_add(&unanswered, tree);
    out->is_gpu_lost = kp_unanswered_most(&unanswered);
    means_make(out, splits);
    usual_make(out, splits);
    struct kp_costrules costs = {.tree = tree, .chosen = chosen, .splits = splits, .places = &places, .out = out};
    kp_costrules_open(&costs);
    threads_tell(&costs);
    const bool is_behind = steps_judge(&costs, splits, (double)places.backlog_ns);
    findings_settle(&costs);
    out->unread = unread_text(&costs);
    if (tree->trace->overlaps)
        out->overlaps = kp_costrules_text(&costs,
                                          "%zu GPU kernels or copies overlap the next one of their stream. Each counts "
                                          "up to the start of the next one",
                                          tree->trace->overlaps);
    out->missing = missing_of(&costs, is_behind);
    if (out->evaluated) out->evaluated = kp_costrules_text(&costs, "%s%s", out->evaluated, out->evaluated_how);
    if (out->steps) outside_tell(&costs), phases_tell(&costs);
    out->guessed = guessed_of(&costs);
    out->crowded = crowded_of(&costs);
    if (out->count && !tree->trace->has_stacks && !tree->trace->with_stack)
        out->lines_by = strcmp(out->findings[0].id, "data-loading") == 0
                            ? "source lines were not recorded. To see those that load: kprof run --with-stack 1 "
                              "--schedule 10-30 -- ..., then kprof report --by line"
                            : "source lines were not recorded. To see them: kprof run --with-stack ops -- ...";
    out->slowed_by = slowed_by(&costs);
    health_judge(&costs);
    kp_hotlines_tell(&costs);
    kp_costrules_fini(&costs);
    kp_split_places_fini(&places);
    free(splits);
}

/* Finds what the steps are for, and nothing of what they cost. The caller calls kp_costrules_fini(). */
static struct kp_costrules kinds_find(struct kp_advice *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_costrules x = {.tree = tree, .chosen = chosen, .out = out};
    *out = (struct kp_advice){.steps = chosen->step_count};
    kp_costrules_open(&x);
    if (!out->steps) return x;
    out->step_ns = kp_chosen_steps_ns(chosen) / (double)out->steps;
    kp_evalsteps_tell(&x, &x.evaluated);
    return x;
}

void kp_advice_evaluations(bool *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_advice advice;
    struct kp_costrules x = kinds_find(&advice, tree, chosen);
    for (size_t i = 0; i < advice.steps; i++)
        out[i] = kp_spans_between(&x.evaluated, chosen->steps[i].start_ns, chosen->steps[i].end_ns) > 0;
    kp_costrules_fini(&x);
}

void kp_advice_kinds_make(struct kp_advice_kinds *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_advice advice;
    struct kp_costrules x = kinds_find(&advice, tree, chosen);
    bool *const is_prompt = kp_kineto_room(chosen->step_count + 1, sizeof *is_prompt);
    if (advice.steps) kp_promptsteps_tell(&x, is_prompt);
    *out = (struct kp_advice_kinds){.evaluated = advice.evaluated, .prompts = advice.prompts};
    free(is_prompt);
    kp_costrules_fini(&x);
}

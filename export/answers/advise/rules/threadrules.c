// SPDX-License-Identifier: Apache-2.0
/*
 * threadrules.c - threads that wait for a core of one another's, or of other programs': what that costs at least, and
 * how many threads there should be
 *
 * Calls of torch's ops are of one kind by name, call stack and their turn in the step. A call waits for threads that
 * have no core where it lasts over twice the median of its kind. If all calls do, the wait of the thread of the steps
 * for a core shows it. Sharing a small op costs more than it saves even where each thread has a core (decisions/117). A
 * call may wait because of other programs, too: of those no trace tells. If these have the cores of threads that are no
 * more than the cores, an op waits for the slowest of them. One thread needs at most as much of a core as all together
 * do in the quickest calls, and waits for it as long as this one does.
 */

#include <math.h>
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/rules/load/loadwaits.h"
#include "export/answers/advise/rules/ownthreads.h"
#include "export/answers/advise/rules/rules.h"
#include "export/answers/top/timeshares.h"

enum { THREADS_CRITICAL = 4 }; /* times as many as there should be: they come first */
#define COST_LEAST 0.02        /* of a step: what is less is told as no cost */

long kp_rules_threads_wanted(const struct kp_costrules *x)
{
    return x->out->has_gpu ? 0 : kp_summary_threads_of(x->tree->trace, false);
}

/* ---- what calls of ops last, and what they usually last ---- */

#define WAITS_MEDIANS 2.0      /* times the median of its kind: a call waited */
enum { SMALL_NS = 50000 };     /* an op that two threads compute no faster than one */
enum { KIND_CALLS_LEAST = 3 }; /* of a kind, before they have a usual time */

KP_ORDER(length_order, struct kp_kindtime, ns)

/* Takes the ops of torch in steps that no other of them calls. */
static void calls_take(struct kp_kindtimes *t, const struct kp_costrules *x)
{
    const struct kp_tree *const tree = x->tree;
    bool *const is_in =
        kp_kineto_room(tree->count + 1, sizeof *is_in); /* it is one, or is in one; parents come first */
    for (size_t i = 0; i < tree->count; i++) {
        const int32_t parent = tree->nodes[i].parent;
        const bool was_in = parent >= 0 && is_in[parent];
        const bool is_op = kp_costrules_is_op(x, i) && strncmp(kp_costrules_name(x, (int32_t)i), "aten::", 6) == 0;
        is_in[i] = was_in || is_op;
        if (was_in || !is_op || x->loaders[i] >= 0) continue;
        const size_t step = kp_costrules_step(x, i);
        if (step < x->chosen->step_count)
            kp_kindtimes_add(t, kp_costplace_key(tree, (int32_t)i), step, (double)kp_costrules_ns(x, i));
    }
    free(is_in);
}

/*
 * Returns by step how much longer calls were than usual, of kinds that have a usual time. 0: than the median, where
 * they waited. `times`: than so many times the quickest tenth, as one thread takes. That waits as long for a core, so
 * less than nothing counts. Puts the quickest tenth in place of each call's time.
 */
static double *waits_take(struct kp_kindtimes *t, size_t steps, double times)
{
    double *const waits = kp_kineto_zeros(steps + 1, sizeof *waits);
    kp_kindtimes_sort(t);
    for (size_t i = 0, end; i < t->count; i = end) {
        end = kp_kindtimes_end(t, i);
        if (end - i < KIND_CALLS_LEAST) continue;
        const double quickest = kp_kindtimes_quickest(t->of + i, end - i);
        const double usual = times > 0 ? times * quickest : t->of[i + (end - i) / 2].ns;
        for (size_t k = i; k < end; k++) {
            if (times > 0 || t->of[k].ns > WAITS_MEDIANS * usual) waits[t->of[k].step] += t->of[k].ns - usual;
            t->of[k].ns = quickest;
        }
    }
    return waits;
}

/* Half of the time of all calls at their quickest is in calls that last no longer. 0: there is none. */
static double usual_length(struct kp_kindtimes *t)
{
    double all = 0, sum = 0;
    size_t at = 0;
    if (t->count) qsort(t->of, t->count, sizeof *t->of, length_order);
    for (size_t i = 0; i < t->count; i++) all += t->of[i].ns;
    for (; at < t->count && 2 * (sum + t->of[at].ns) < all; at++) sum += t->of[at].ns;
    return at < t->count ? t->of[at].ns : 0;
}

/*
 * Charges the finding with these waits, and leaves other rules what calls usually last. Returns how long ops last at
 * their quickest. Writes by step how long calls are, if asked for.
 */
static double cost_set(struct kp_finding *f, struct kp_costrules *x, double times, double *ops)
{
    struct kp_kindtimes t = {0};
    const size_t steps = x->chosen->step_count;
    calls_take(&t, x);
    for (size_t i = 0; ops && i < t.count; i++) ops[t.of[i].step] += t.of[i].ns;
    double *const waits = waits_take(&t, steps, times);
    const double length = usual_length(&t);
    for (size_t i = 0; i < steps; i++) f->step_ns += waits[i] / (double)steps;
    f->share = x->out->step_ns > 0 ? f->step_ns / x->out->step_ns : 0;
    if (f->share < COST_LEAST) f->step_ns = f->share = 0;
    else x->usual_times = times > 0 ? times : WAITS_MEDIANS, x->usual_share = times > 0 ? 0.1 : 0.5;
    kp_kindtimes_fini(&t);
    free(waits);
    return length;
}

/* ---- more threads than cores: what the thread of the steps waits for one ---- */

#define LARGE_SHARE 0.5      /* of a step: what may cost so much comes first, though it may cost nothing */
#define STRANGERS_SHARE 0.25 /* of all cores: other programs have that, and would take what threads leave */

/* How many cores the program had, while its thread wanted one. 0: the trace does not tell. */
static double cores_had(const struct kp_costrules *x)
{
    const double had = kp_costrules_fact(x, "kprof.core_had_us"), others = kp_costrules_fact(x, "kprof.core_others_us"),
                 wanted = had + kp_costrules_fact(x, "kprof.core_waited_us"), asleep = kp_loadcore_asleep_ns(x) / 1e3;
    const struct kp_threads threads = kp_threads_of(x->tree->trace);
    return had > 0 && others > 0 && threads.busy > threads.cores ? (had + others) / (wanted + fmax(0, asleep)) : 0;
}

/* The part of a core that one thread would have while other programs have little. all: what the program had. */
static double core_alone(const struct kp_costrules *x, double all)
{
    const double had = kp_costrules_fact(x, "kprof.core_had_us"),
                 wanted = had + kp_costrules_fact(x, "kprof.core_waited_us");
    const struct kp_threads threads = kp_threads_of(x->tree->trace);
    const double cores = (double)threads.cores, strangers = fmax(0, cores * wanted / had - (double)threads.busy);
    return fmin(1, fmin(all, cores / (1 + strangers)));
}

/* The time by which steps last longer than with one thread, which has so much of a core; the mean. */
static double wait_mean(const struct kp_costrules *x, const double *ops, double share)
{
    const size_t steps = x->chosen->step_count;
    double sum = 0, *const waits = kp_waitedsteps_find(x);
    for (size_t i = 0; i < steps; i++) {
        const double wait = waits[i] < ops[i] ? waits[i] : ops[i];
        const double more = ops[i] - (ops[i] - wait) / share;
        if (more > 0) sum += more / (double)steps;
    }
    free(waits);
    return sum > COST_LEAST * x->out->step_ns ? sum : 0;
}

enum { COST_UNKNOWN, COST_ABOUT, COST_UP_TO };

/*
 * If all calls are slow, none of them shows it. The thread has no core while the others spin on it, and these keep it
 * for whole turns. Its time less that wait is the need of one thread (decisions/117). Other programs would take the
 * cores of threads that are gone: one thread may then have all that the program had, or no more than it has now.
 */
static int cost_of_wait(struct kp_finding *f, struct kp_costrules *x, const double *ops, double *most)
{
    const double cores = (double)kp_threads_of(x->tree->trace).cores, had = cores_had(x);
    if (!(had > 0)) return COST_UNKNOWN;
    const bool are_strangers = had < (1 - STRANGERS_SHARE) * cores;
    *most = wait_mean(x, ops, are_strangers ? fmin(1, had) : core_alone(x, had));
    f->step_ns = are_strangers ? 0 : *most;
    f->share = f->step_ns > 0 ? f->step_ns / x->out->step_ns : 0;
    x->usual_times = f->step_ns > 0 ? 1 - f->share : 0, x->usual_share = 0.5;
    return are_strangers ? COST_UP_TO : COST_ABOUT;
}

/* ---- what is told ---- */

/* Each of the threads has to have its turn on a core before a shared op is done: so long may a small one last. */
static bool is_small(const struct kp_threads *threads, double length)
{
    const double cores = (double)threads->cores, busy = (double)threads->busy;
    return length > 0 && length < SMALL_NS * (busy > cores && cores > 0 ? busy / cores : 1);
}

/* The setting that the program has to have, with its reason. */
static const char *change_of(const struct kp_costrules *x, long wanted, double length)
{
    const struct kp_threads threads = kp_threads_of(x->tree->trace);
    const long omp = threads.omp, ranks = threads.ranks;
    const bool small = is_small(&threads, length);
    const long number = small ? 1 : wanted;
    const char *why = ranks > 1 && number > 1 ? ": the cores divided by the ranks." : ".", *set;
    if (small && wanted > 1)
        why = KP_TEXT(": half of the ops' time is in ops of at most %.3f ms. One thread is as fast with "
                      "them. At most %ld where ops are larger.",
                      length / 1e6, wanted);
    else if (length > 0 && wanted > 1)
        why = KP_TEXT("%s while each has a core to itself, and 1 where other programs also use the cores: "
                      "half of the time of ops is in ops of at least %.3f ms, long enough to be shared.",
                      ranks > 1 ? " (the cores divided by the ranks)" : "", length / 1e6);
    set = KP_TEXT("torch.set_num_threads(%ld)%s", number, why);
    if (kp_threads_are_of_others(&threads))
        return KP_TEXT("torch computes with %ld of them: the others are the program's own, or of a library "
                       "such as NumPy's BLAS. Start fewer, or set OMP_NUM_THREADS=%ld, which most read.",
                       threads.torch, wanted);
    if (!kp_threads_are_set(&threads))
        return KP_TEXT("Set OMP_NUM_THREADS=%ld, or %s%s", number, omp > 0 ? "" : "where the program calls it itself ",
                       set);
    if (omp > 0) return KP_TEXT("OMP_NUM_THREADS is %ld, so the program sets them: %s", omp, set);
    return KP_TEXT("OMP_NUM_THREADS is not set, and torch then takes no more threads than cores, so the "
                   "program sets them%s: %s",
                   threads.torch > 0 ? "" : ", or starts threads of its own", set);
}

static const char *others_of(const struct kp_costrules *x)
{
    return *kp_ownthreads_relatives(x) ? "other processes" : "other programs";
}

/* The cost of the threads, as the end of a finding's words. is_large: it is not known to be small. */
static const char *cost_text(struct kp_finding *f, struct kp_costrules *x, double *length, bool *is_large)
{
    double *const ops = kp_kineto_zeros(x->chosen->step_count + 1, sizeof *ops), most = 0;
    *length = cost_set(f, x, 0, ops);
    const int kind = cost_of_wait(f, x, ops, &most);
    free(ops);
    *is_large = kind != COST_UP_TO || most >= LARGE_SHARE * x->out->step_ns;
    if (kind == COST_UP_TO && most > 0)
        return KP_TEXT("; %s use the cores as well, so that costs at most about %.1f ms per step", others_of(x),
                       most / 1e6);
    if (!(f->step_ns > 0)) return "";
    return kind == COST_ABOUT ? "; that costs about" : "; without other programs that costs at least";
}

/* More threads than cores. */
static void fight_tell(struct kp_costrules *x, long wanted)
{
    const struct kp_threads threads = kp_threads_of(x->tree->trace);
    const long cores = threads.cores, busy = threads.busy, omp = threads.omp, ranks = threads.ranks;
    const char *of_ranks = ranks > 1 ? KP_TEXT(" of each of %ld ranks", ranks) : "";
    const char *plural = cores == 1 ? "" : "s";
    struct kp_finding f = {.id = KP_FINDING_THREADS, .steps = x->chosen->step_count};
    f.what = busy >= omp ? KP_TEXT("%ld busy threads%s compete for %ld core%s", busy, of_ranks, cores, plural)
                         : KP_TEXT("OMP_NUM_THREADS=%ld%s on %ld core%s%s: the threads compete for the cores", omp,
                                   of_ranks, cores, plural, busy > 0 ? KP_TEXT(" (%ld busy threads)", busy) : "");
    double length;
    bool is_large;
    f.what = KP_TEXT("%s%s", f.what, cost_text(&f, x, &length, &is_large));
    f.change = change_of(x, wanted, length);
    f.is_critical = is_large && (busy > omp ? busy : omp) >= THREADS_CRITICAL * wanted;
    kp_costrules_tell(x, &f);
}

/* No more threads than cores, and other programs have these: one thread waits for no other. */
static void slowest_tell(struct kp_costrules *x)
{
    const struct kp_threads threads = kp_threads_of(x->tree->trace);
    const long cores = threads.cores, omp = threads.omp;
    const long sharing = threads.torch > 0 && threads.torch < threads.busy ? threads.torch : threads.busy;
    const double waited = kp_summary_core_waited(x->tree->trace);
    struct kp_finding f = {.id = KP_FINDING_THREADS, .steps = x->chosen->step_count};
    cost_set(&f, x, (double)(sharing < cores ? sharing : cores) / (1 - waited), NULL);
    if (!(f.step_ns > 0) && waited < KP_CORE_WAITED_HALF) return;
    f.what = KP_TEXT("torch uses %ld threads%s, but %s use the %ld cores as well. Each operator waits for its slowest "
                     "thread",
                     sharing, omp > cores ? KP_TEXT(" (OMP_NUM_THREADS=%ld)", omp) : "", others_of(x), cores);
    f.change = KP_TEXT("%s OMP_NUM_THREADS=1, or torch.set_num_threads(1): one thread never waits for "
                       "another. More threads (up to %ld) are faster only if each has its own core.%s",
                       f.step_ns > 0 ? "Set" : "Try", cores, f.step_ns > 0 ? " The real cost may be higher." : "");
    f.is_critical = f.share >= KP_SHARE_CRITICAL;
    kp_costrules_tell(x, &f);
}

void kp_rules_threads(struct kp_costrules *x)
{
    const long wanted = kp_rules_threads_wanted(x);
    if (wanted) fight_tell(x, wanted);
    else if (kp_summary_wait_for_slowest(x->tree->trace, x->out->step_ns * (double)x->out->steps, x->out->has_gpu))
        slowest_tell(x);
}

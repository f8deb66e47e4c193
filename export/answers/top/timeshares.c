// SPDX-License-Identifier: Apache-2.0
/*
 * timeshares.c - divides the wall time of what was chosen, and measures its steps
 *
 * At each moment the host loads data, else runs an op on some thread, else is in a collective, else none of these. Ops
 * that communicate (_c10d_functional::wait_tensor) are collectives, also inside of other ops.
 * That last part is Python, or a thread that sleeps. The range that torch's DataLoader marks loads data.
 */
#include "export/answers/top/timeshares.h"

#include <math.h>
#include <stdlib.h>

#include "export/read/facts/comm/commops.h"
#include "export/read/facts/hostwaits.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/facts/namefacts.h"
#include "export/read/facts/steps/nocore.h"
#include "export/read/store/qsort.h"
#include "export/read/facts/valuereads.h"

/* A first step longer than all others, and so many percent of their median, may carry a warm-up. */
enum { SLOW_PERCENT = 125, SLOW_STEPS_LEAST = 3 };
#define LONG_QUANTILE 0.9 /* of the steps, and so many medians: a tenth of them is long */
#define LONG_TIMES 1.5
#define UNEVEN_TIMES 1.1  /* the mean step is so much longer than the median one */
enum { START_STEPS = 3 }; /* numbers of steps up to which a start may go on: lazy parts of torch, a compiler */

struct shares { /* as in struct kp_summary_times */
    struct kp_spans data, busy, calls, comm, waits, gpu;
};

/* Files of torch before 1.11, and of other devices, call ranges ops. */
static bool is_op(const struct kp_tree *tree, size_t node)
{
    const struct kp_kineto_event *const e = kp_tree_event(tree, node);
    return e->kind == KP_KINETO_OP && !(kp_namefacts(tree->trace, e->name) & KP_NAME_RANGE);
}

static bool is_in_op(const struct kp_tree *tree, int32_t node)
{
    while ((node = tree->nodes[node].parent) >= 0)
        if (is_op(tree, (size_t)node)) return true;
    return false;
}

static void shares_add(struct shares *s, const struct kp_tree *tree, const struct kp_commops *comm,
                       const struct kp_hostwaits *waits, size_t i)
{
    const struct kp_node *const node = &tree->nodes[i];
    const struct kp_kineto_event *e = &tree->trace->events[node->event];
    const uint32_t is = kp_namefacts(tree->trace, e->name);
    const int64_t from = node->start_ns, to = node->end_ns;
    const bool is_host = e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_OP;
    if (is_host && (is & KP_NAME_COLLECTIVE || (comm->of && comm->of[i] == KP_COMMOP_IS))) {
        kp_spans_add(&s->comm, from, to);
        return;
    }
    if (node->is_async) return;
    if (e->kind == KP_KINETO_GPU) kp_spans_add(&s->gpu, from, to);
    if (is_op(tree, i)) kp_commops_add(&s->busy, tree, comm, i);
    if (e->kind == KP_KINETO_RUNTIME) {
        kp_spans_add(&s->busy, from, to);
        if (!is_in_op(tree, (int32_t)i)) kp_spans_add(&s->calls, from, to);
    }
    if (kp_hostwaits_is(waits, i)) kp_spans_add(&s->waits, from, to);
    if ((is_host || e->kind == KP_KINETO_PYTHON) && is & KP_NAME_LOADER) {
        kp_spans_add(&s->data, from, to);
        kp_spans_add(&s->busy, from, to);
    }
}

/* A GPU may be idle while its host waits for it: for delays around its work, or for work that is not recorded. */
static void waits_add(struct kp_summary_times *into, const struct shares *s, const struct kp_spans *within)
{
    struct kp_spans waits = {0};
    kp_spans_add_all(&waits, &s->waits);
    kp_spans_settle(&waits);
    kp_spans_cut(&waits, within);
    for (size_t i = 0; i < waits.count; i++) {
        const struct kp_time_span *const w = &waits.of[i];
        const int64_t ns = w->end_ns - w->start_ns, busy_ns = kp_spans_between(&s->gpu, w->start_ns, w->end_ns);
        into->wait_ns += ns;
        into->wait_idle_ns += ns - busy_ns;
        into->wait_alone_ns += busy_ns ? 0 : ns;
    }
    kp_spans_fini(&waits);
}

static void times_add(struct kp_summary_times *into, const struct shares *s, const struct kp_spans *within)
{
    into->length_ns += kp_spans_length(within, NULL);
    into->data_ns += kp_spans_length(&s->data, within);
    into->busy_ns += kp_spans_length(&s->busy, within);
    into->call_ns += kp_spans_length(&s->calls, within);
    into->comm_ns += kp_spans_length(&s->comm, within);
    waits_add(into, s, within);
    into->gpu_ns += kp_spans_length(&s->gpu, within);
}

static int64_t gpu_asked(const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    int64_t ns = 0;
    for (size_t i = 0; i < tree->count; i++)
        if (kp_tree_event(tree, i)->kind == KP_KINETO_GPU &&
            kp_spans_has(&chosen->in_steps, kp_chosen_asked_ns(chosen, tree, i)))
            ns += tree->nodes[i].end_ns - tree->nodes[i].start_ns;
    return ns;
}

void kp_summary_add(struct kp_summary_parts *into, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct shares s = {0};
    struct kp_spans *const all[] = {&s.data, &s.busy, &s.calls, &s.comm, &s.waits, &s.gpu};
    struct kp_commops comm;
    struct kp_hostwaits waits;
    kp_commops_find(&comm, tree);
    kp_hostwaits_find(&waits, tree);
    for (size_t i = 0; i < tree->count; i++) shares_add(&s, tree, &comm, &waits, i);
    kp_commops_fini(&comm);
    kp_hostwaits_fini(&waits);
    kp_spans_settle(&s.busy);
    kp_spans_add_all(&s.comm, &s.busy);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kp_spans_settle(all[i]);
    times_add(&into->all, &s, &chosen->spans);
    times_add(&into->in_steps, &s, &chosen->in_steps);
    into->has_gpu |= kp_chosen_has_gpu(chosen, tree);
    into->has_any_gpu |= s.gpu.count != 0;
    for (size_t i = 0; i < tree->count && !into->has_ops; i++)
        into->has_ops = kp_tree_event(tree, i)->kind == KP_KINETO_OP;
    kp_unanswered_add(&into->unanswered, tree);
    into->reads += kp_valuereads_count(tree, chosen);
    into->gpu_asked_ns += gpu_asked(tree, chosen);
    if (!into->has_when && chosen->spans.count) {
        into->has_when = true;
        into->when_ns = chosen->spans.of[0].start_ns;
        into->since_ns = chosen->since_ns;
    }
    if (chosen->spans.count) into->end_ns = chosen->spans.of[chosen->spans.count - 1].end_ns;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kp_spans_fini(all[i]);
}

/* A phase is what was asked for: its shares are of all of it. */
static void shares_set(struct kp_summary *out, const struct kp_summary_parts *parts, bool is_phase)
{
    out->wall_ns = parts->all.length_ns;
    out->is_of_steps = !is_phase && kp_chosen_are_steps_a_part(parts->in_steps.length_ns, out->wall_ns);
    out->outside_ns = is_phase ? out->wall_ns - parts->in_steps.length_ns : 0;
    const struct kp_summary_times *t = out->is_of_steps ? &parts->in_steps : &parts->all;
    out->shared_ns = t->length_ns;
    out->data_ns = t->data_ns;
    out->op_ns = t->busy_ns - t->data_ns;
    out->call_ns = t->call_ns;
    out->comm_ns = t->comm_ns - t->busy_ns;
    out->rest_ns = t->length_ns - t->comm_ns;
    out->gpu_wait_ns = t->wait_ns;
    out->gpu_wait_idle_ns = t->wait_idle_ns;
    out->gpu_wait_alone_ns = t->wait_alone_ns;
    out->gpu_ns = t->gpu_ns;
    out->has_gpu = parts->has_gpu;
    out->has_gpu_outside = parts->has_any_gpu && !parts->has_gpu;
}

/* ---- steps ---- */

static bool is_slow(int64_t ns, int64_t median_ns) { return ns / SLOW_PERCENT > median_ns / 100; }

/*
 * The first step of what was chosen is one of the program's first, and much longer than all others. A step in the
 * middle of a run is long by what it does: an evaluation, a checkpoint. So is one that another one equals.
 */
static bool may_carry_start(long first_step, int64_t first_ns, int64_t median_ns, int64_t longest_other_ns)
{
    const bool has_equal = is_slow(longest_other_ns, median_ns) && first_ns / 2 < longest_other_ns;
    return first_step <= START_STEPS && is_slow(first_ns, median_ns) && first_ns > longest_other_ns && !has_equal;
}

/* Some steps are much longer than the others, not by chance. */
static bool are_uneven(double *lengths, size_t count)
{
    double all_ns = 0;
    for (size_t i = 0; i < count; i++) all_ns += lengths[i];
    return count && all_ns / (double)count > UNEVEN_TIMES * kp_quantile(lengths, count, 0.5);
}

/* `waits`: of each step, ns; NULL: not known. */
static bool are_steps_uneven(const struct kp_chosen *chosen, const double *waits)
{
    double *const lengths = kp_kineto_room(chosen->step_count + 1, sizeof *lengths);
    for (size_t i = 0; i < chosen->step_count; i++)
        lengths[i] = (double)chosen->steps[i].inside_ns - (waits ? waits[i] : 0);
    const bool are = are_uneven(lengths, chosen->step_count);
    free(lengths);
    return are;
}

/* Many a step is long still without its waits, as if batches grow: the mean may be near the median then. */
static bool has_long_ones(const struct kp_chosen *chosen, const double *waits)
{
    double *const lengths = kp_kineto_room(chosen->step_count + 1, sizeof *lengths);
    for (size_t i = 0; i < chosen->step_count; i++) lengths[i] = (double)chosen->steps[i].inside_ns - waits[i];
    const double high = kp_quantile(lengths, chosen->step_count, LONG_QUANTILE);
    const bool has = high > LONG_TIMES * kp_quantile(lengths, chosen->step_count, 0.5);
    free(lengths);
    return has;
}

/* `waits`: of each step, ns. Not the program's start makes the first step longer then. */
static void no_core_set(struct kp_summary *out, const struct kp_chosen *chosen, const double *waits)
{
    out->no_core_ns = 0;
    out->is_uneven_by_cores = out->is_uneven && !are_steps_uneven(chosen, waits) && !has_long_ones(chosen, waits);
    for (size_t i = 0; i < chosen->step_count; i++) {
        out->no_core_ns += llround(waits[i]);
        if (chosen->steps[i].number == out->slowest_step) out->slowest_no_core_ns = llround(waits[i]);
    }
    if (chosen->step_count && is_slow(out->first_ns - llround(waits[0]), out->rest_median_ns)) return;
    out->is_first_slow = false;
}

static void no_core_measure(struct kp_summary *out, const struct kp_kineto *trace, const struct kp_chosen *chosen)
{
    double *const waits = kp_kineto_room(chosen->step_count + 1, sizeof *waits);
    out->is_uneven = are_steps_uneven(chosen, NULL);
    if (kp_nocore_of(waits, trace, chosen->steps, chosen->step_count)) no_core_set(out, chosen, waits);
    free(waits);
}

/* Steps that did not wait are not those of a busy machine, whatever all of the recording was. */
static void core_waited_set(struct kp_summary *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_nocore_times times;
    kp_nocore_times_of_some(&times, tree, chosen->steps, chosen->step_count);
    out->is_core_of_all = times.is_of_all && out->steps;
    if (times.is_of_all || !(times.waited_ns + times.had_ns > 0)) return;
    out->core_waited = times.waited_ns / (times.waited_ns + times.had_ns);
    out->core_waited_ns = llround(times.waited_ns);
    out->is_crowded &= out->core_waited >= KP_CORE_WAITED_MUCH;
    out->waits_for_slowest &= out->is_crowded;
}

void kp_summary_no_core(struct kp_summary *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    double *const waits = kp_kineto_room(chosen->step_count + 1, sizeof *waits);
    if (kp_nocore_of_some(waits, tree, chosen->steps, chosen->step_count)) no_core_set(out, chosen, waits);
    free(waits);
    core_waited_set(out, tree, chosen);
}

static void steps_measure(struct kp_summary *out, const struct kp_chosen *chosen)
{
    const size_t count = out->steps = chosen->step_count;
    if (!count) return;
    double *lengths = kp_kineto_room(count, sizeof *lengths), all_ns = 0;
    out->first_step = out->last_step = chosen->steps[0].number;
    for (size_t i = 0; i < count; i++) {
        const struct kp_step *s = &chosen->steps[i];
        all_ns += lengths[i] = (double)s->inside_ns;
        if (s->inside_ns > out->step_most_ns) {
            out->step_most_ns = s->inside_ns;
            out->slowest_step = s->number;
        }
        if (s->number < out->first_step) out->first_step = s->number;
        if (s->number > out->last_step) out->last_step = s->number;
    }
    out->step_mean_ns = (int64_t)(all_ns / (double)count);
    out->first_ns = chosen->steps[0].inside_ns;
    if (count >= SLOW_STEPS_LEAST) {
        out->rest_median_ns = (int64_t)kp_quantile(lengths + 1, count - 1, 0.5);
        out->is_first_slow =
            may_carry_start(out->first_step, out->first_ns, out->rest_median_ns, (int64_t)lengths[count - 1]);
    }
    out->step_median_ns = (int64_t)kp_quantile(lengths, count, 0.5);
    out->step_least_ns = (int64_t)lengths[0];
    free(lengths);
}

/* One rank's share of the machine's cores: one at least, as it cannot run on less. */
static long cores_share(long cores, long ranks)
{
    const long of = ranks > 1 ? ranks : 1;
    return cores > of ? cores / of : 1;
}

/* OMP_NUM_THREADS asks for no more than there are cores. */
static bool is_omp_small(const struct kp_threads *t) { return t->omp > 0 && t->omp <= cores_share(t->cores, t->ranks); }

/* Autograd, gloo and loaders have a few threads, so these are a pool. `own`: how many there are without it. */
static bool is_a_pool(long busy, long own, long share) { return busy - own > 4 && busy > 2 * share; }

struct kp_threads kp_threads_of(const struct kp_kineto *trace)
{
    return (struct kp_threads){.cores = kp_kineto_number(trace, "kprof.cores"),
                               .busy = kp_kineto_number(trace, "kprof.busy_threads"),
                               .omp = kp_kineto_number(trace, "kprof.omp_num_threads"),
                               .ranks = kp_kineto_number(trace, "kprof.local_world_size"),
                               .torch = kp_kineto_number(trace, "kprof.torch_threads")};
}

/* torch shares ops among threads; without their number that is so unless OMP_NUM_THREADS is 1. */
static bool share_ops(const struct kp_threads *t) { return t->torch > 0 ? t->torch > 1 : t->omp != 1; }

bool kp_threads_are_set(const struct kp_threads *t)
{
    if (t->torch > 0) return t->torch > cores_share(t->cores, t->ranks) && t->torch != t->omp;
    return is_omp_small(t) || (t->omp <= 0 && t->cores > 0 && is_a_pool(t->busy, t->cores, t->cores));
}

bool kp_threads_are_of_others(const struct kp_threads *t)
{
    return t->torch > 0 && t->torch <= cores_share(t->cores, t->ranks);
}

/*
 * With a GPU threads of its libraries run, too, so a few more than cores say nothing. The same holds where
 * OMP_NUM_THREADS is small: autograd, gloo and loaders have a few threads. Many of them are a pool that the program
 * made larger itself. A large OMP_NUM_THREADS says nothing where threads were counted: torch takes no more than cores.
 */
static long wanted_by_guess(const struct kp_threads *t, long spare)
{
    const long of = t->ranks > 1 ? t->ranks : 1, share = cores_share(t->cores, t->ranks),
               ran = t->busy > 0 ? t->busy : t->omp;
    const long hardly_ran = of > 1 && t->omp > share ? 0 : 1;
    if (is_omp_small(t)) return is_a_pool(t->busy, t->omp, share) ? share : 0;
    return ran > cores_share(t->cores + spare, t->ranks) + hardly_ran ? share : 0;
}

/* If the number of torch's own is known, others are its pool no more than they are many. With OMP_NUM_THREADS set so
 * low libraries have no pool either: they are gloo's, Ray's or a loader's, and setting it again changes nothing. */
long kp_threads_wanted(const struct kp_threads *t, bool has_gpu)
{
    const long share = cores_share(t->cores, t->ranks), spare = has_gpu ? t->cores / 2 + 1 : 0;
    const long ran = t->busy > 0 && t->busy < t->torch ? t->busy : t->torch;
    if (t->cores <= 0) return 0;
    if (t->torch <= 0) return wanted_by_guess(t, spare);
    const bool has_pool = !is_omp_small(t) && is_a_pool(t->busy, t->torch, share);
    return ran > cores_share(t->cores + spare, t->ranks) || has_pool ? share : 0;
}

double kp_summary_core_waited(const struct kp_kineto *trace)
{
    const double had = (double)kp_kineto_number(trace, "kprof.core_had_us"),
                 waited = (double)kp_kineto_number(trace, "kprof.core_waited_us");
    return had > 0 && waited > 0 ? waited / (had + waited) : 0;
}

#define POOL_LEAST 0.5   /* of what the thread of the steps had: a pool that computes has more */
#define FIGHT_LEAST 0.03 /* threads that are more than the cores wait for them, the one of the steps, too */

long kp_summary_threads_of(const struct kp_kineto *trace, bool has_gpu)
{
    const double had = (double)kp_kineto_number(trace, "kprof.core_had_us"), waited = kp_summary_core_waited(trace);
    if (had > 0 && waited < FIGHT_LEAST) return 0;
    const struct kp_threads threads = kp_threads_of(trace);
    const double others = (double)kp_kineto_number(trace, "kprof.core_others_us");
    /* Threads of gloo and of a loader run often, and for next to nothing. */
    if (had > 0 && others > 0 && others < POOL_LEAST * had && kp_threads_are_of_others(&threads)) return 0;
    return kp_threads_wanted(&threads, has_gpu);
}

#define WAITED_OF_STEPS 0.05

bool kp_summary_is_crowded(const struct kp_kineto *trace, double steps_ns)
{
    const double waited_ns = 1e3 * (double)kp_kineto_number(trace, "kprof.core_waited_us");
    return kp_summary_core_waited(trace) >= KP_CORE_WAITED_MUCH && waited_ns >= WAITED_OF_STEPS * steps_ns;
}

bool kp_summary_wait_for_slowest(const struct kp_kineto *trace, double steps_ns, bool has_gpu)
{
    const struct kp_threads t = kp_threads_of(trace);
    return !has_gpu && t.cores > 1 && t.busy > 1 && share_ops(&t) && kp_summary_is_crowded(trace, steps_ns) &&
           !kp_summary_threads_of(trace, has_gpu);
}

#define OWN_LEAST 0.25 /* of what the thread of the steps had: more than the recorder's threads take */

/* A thread of torch's pool computes while the thread of the steps does, and wants a core no longer. */
static double own_threads_us(const struct kp_kineto *trace, const struct kp_threads *t)
{
    const double had = (double)kp_kineto_number(trace, "kprof.core_had_us"),
                 waited = (double)kp_kineto_number(trace, "kprof.core_waited_us"),
                 others = (double)kp_kineto_number(trace, "kprof.core_others_us");
    if (t->torch <= 0) return t->busy <= 1 || !share_ops(t) ? others : 0;
    return others - (double)(t->torch - 1) * (had + waited);
}

int64_t kp_summary_others_ns(const struct kp_kineto *trace)
{
    const struct kp_threads threads = kp_threads_of(trace);
    const double own = own_threads_us(trace, &threads);
    return own <= 0 || kp_summary_threads_of(trace, false) ? 0 : (int64_t)(1000 * own);
}

int64_t kp_summary_own_threads_ns(const struct kp_kineto *trace)
{
    const double had = (double)kp_kineto_number(trace, "kprof.core_had_us");
    const int64_t own = kp_summary_others_ns(trace);
    return had <= 0 || (double)own < 1e3 * OWN_LEAST * had ? 0 : own;
}

int64_t kp_summary_bare_ns(const struct kp_kineto *trace, long *steps)
{
    *steps = kp_kineto_number(trace, "kprof.bare_steps");
    return *steps > 0 ? 1000 * (int64_t)kp_kineto_number(trace, "kprof.bare_step_us") : 0;
}

void kp_summary_end(struct kp_summary *out, const struct kp_summary_parts *parts, const struct kp_kineto *trace,
                    const struct kp_chosen *chosen)
{
    *out = (struct kp_summary){.lost = (uint64_t)kp_kineto_number(trace, "kprof.lost") +
                                       (uint64_t)kp_kineto_number(trace, "kprof.skipped"),
                               .is_lost_least = kp_kineto_fact(trace, "kprof.lost_at_least") != NULL,
                               .cores = kp_kineto_number(trace, "kprof.cores"),
                               .busy_threads = kp_kineto_number(trace, "kprof.busy_threads"),
                               .core_waited = kp_summary_core_waited(trace),
                               .core_waited_ns = 1000 * (int64_t)kp_kineto_number(trace, "kprof.core_waited_us"),
                               .own_threads_ns = parts->has_gpu ? 0 : kp_summary_own_threads_ns(trace),
                               .omp_threads = kp_kineto_number(trace, "kprof.omp_num_threads")};
    out->bare_ns = kp_summary_bare_ns(trace, &out->bare_steps);
    if (trace->base_ns) out->when_ns = parts->since_ns;
    shares_set(out, parts, trace->windows != NULL);
    out->reads = parts->reads;
    out->has_ops = parts->has_ops;
    out->unanswered = parts->unanswered;
    steps_measure(out, chosen);
    no_core_measure(out, trace, chosen);
    const double steps_ns = (double)out->step_mean_ns * (double)out->steps;
    out->is_crowded = kp_summary_is_crowded(trace, out->steps ? steps_ns : (double)out->wall_ns);
    if (out->steps) {
        out->gpu_step_ns = parts->gpu_asked_ns / (int64_t)out->steps;
        const int64_t before_ns = chosen->steps[0].start_ns - parts->when_ns;
        const int64_t after_ns = parts->end_ns - chosen->steps[out->steps - 1].end_ns;
        out->before_ns = before_ns > 0 ? before_ns : 0;
        out->after_ns = after_ns > 0 ? after_ns : 0;
    }
    const struct kp_threads threads = kp_threads_of(trace);
    out->threads_are_set = kp_threads_are_set(&threads);
    out->waits_for_slowest = out->steps && out->core_waited >= KP_CORE_WAITED_HALF &&
                             kp_summary_wait_for_slowest(trace, steps_ns, out->has_gpu);
    out->threads_wanted = kp_summary_threads_of(trace, out->has_gpu);
}

void kp_summary_make(struct kp_summary *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_summary_parts parts = {0};
    kp_summary_add(&parts, tree, chosen);
    kp_summary_end(out, &parts, tree->trace, chosen);
}

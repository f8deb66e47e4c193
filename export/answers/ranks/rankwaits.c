// SPDX-License-Identifier: Apache-2.0
/* rankwaits.c - which rank of a job the others wait for, from the traces of all */
#include "export/answers/ranks/rankwaits.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/plain.h"
#include "export/show/units.h"
#include "export/read/store/qsort.h"
#include "export/answers/top/timeshares.h"
#include "export/answers/top/toprows.h"
#include "export/read/facts/comm/commstarts.h"
#include "export/read/facts/namefacts.h"
#include "export/read/facts/steps/nocore.h"

enum { PLACE_BYTES = 200, INPUTS_BYTES = 512 };
#define CAUSE_LEAST_MS 0.1
#define LATE_SHARE 0.8     /* of what ranks wait */
#define PLACE_LEAST 0.001  /* of the steps */
#define CORE_OF_STEPS 0.05 /* what a rank waits less for a core, or computes more, explains no collective */
#define PLACE_OF_CAUSE 0.2 /* of what a rank has more: a line that has less of it explains nothing */
#define PLACE_OF_REST 0.5  /* the same of time outside ops */

/* ---- one trace ---- */

bool kp_collective_is(const struct kp_tree *tree, size_t node, bool on_device)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    if (tree->nodes[node].removed) return false;
    if (on_device) return e->kind == KP_KINETO_GPU && kp_node_is(tree, node, KP_NAME_COMM);
    return (e->kind == KP_KINETO_ANNOTATION || e->kind == KP_KINETO_OP) && kp_node_is(tree, node, KP_NAME_COLLECTIVE);
}

/* Kernels of a GPU where it has some, else torch's ranges on the host: "gloo:all_reduce". */
static bool are_on_gpu(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (kp_collective_is(tree, i, true)) return true;
    return false;
}

/* The rank's row; a new one is added. */
static struct kp_rankwait *rank_get(struct kp_rankwaits *w, long rank)
{
    for (size_t i = 0; i < w->rank_count; i++)
        if (w->ranks[i].rank == rank) return &w->ranks[i];
    w->ranks = kp_kineto_grow(w->ranks, &w->rank_capacity, w->rank_count + 1, sizeof *w->ranks);
    w->ranks[w->rank_count] = (struct kp_rankwait){.rank = rank};
    return &w->ranks[w->rank_count++];
}

/* The number of the step that a time is in; -1: none. */
static long step_at(const struct kp_chosen *chosen, int64_t ns)
{
    const size_t at = kp_step_at(chosen->steps, chosen->step_count, ns);
    return at < chosen->step_count ? chosen->steps[at].number : -1;
}

/* Is it one that no rank leaves before all have entered? A broadcast's root may. */
static bool do_all_meet(const char *name)
{
    static const char *const words[] = {"all_reduce",     "allreduce",  "all_gather", "allgather",
                                        "reduce_scatter", "all_to_all", "alltoall",   "barrier"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return true;
    return false;
}

/* Its identity on every rank: by its group if the file has one, else by its name and size. */
static uint32_t kind_of(struct kp_rankwaits *w, const struct kp_kineto *t, const struct kp_kineto_event *e,
                        const struct kp_kineto_work *work)
{
    const bool has_group = work && work->group;
    char text[1024], group[32] = "";
    if (has_group) snprintf(group, sizeof group, "%" PRIu32, work->group);
    if (has_group && work->sequence >= 0) snprintf(text, sizeof text, "%s %s", group, kp_kineto_text(t, work->members));
    else
        snprintf(text, sizeof text, "%s %s %s %s %" PRId64, group, work ? kp_kineto_text(t, work->members) : "",
                 kp_kineto_text(t, e->name), e->shapes ? kp_kineto_text(t, e->shapes) : "", work ? work->bus_bytes : 0);
    return kp_strings_put(w->texts, text, strlen(text));
}

static uint32_t text_kept(struct kp_rankwaits *w, const char *text)
{
    return text && *text ? kp_strings_put(w->texts, text, strlen(text)) : 0;
}

static void collective_add(struct kp_rankwaits *w, const struct kp_tree *tree, const struct kp_chosen *chosen, size_t i,
                           const struct kp_rankwait *row, int32_t start)
{
    const struct kp_node *const n = &tree->nodes[i];
    const struct kp_kineto_event *const e = kp_tree_event(tree, i);
    const uint32_t line = kp_tree_line(tree, start >= 0 ? &tree->nodes[start] : n);
    const struct kp_kineto_work *const work = kp_kineto_work_of(tree->trace, n->event);
    struct kp_collective one = {.trace = (uint32_t)(w->trace_count - 1),
                                .kind = kind_of(w, tree->trace, e, work),
                                .name = text_kept(w, kp_kineto_text(tree->trace, e->name)),
                                .line = line ? text_kept(w, kp_kineto_text(tree->trace, line)) : 0,
                                .meets = do_all_meet(kp_kineto_text(tree->trace, e->name)),
                                .step = step_at(chosen, n->start_ns),
                                .start_ns = n->start_ns,
                                .ns = n->end_ns - n->start_ns,
                                .bus_bytes = work ? work->bus_bytes : 0};
    one.at = one.step >= 0 ? one.step : -1 - (long)row->traces;
    if (work && work->group) {
        one.members = text_kept(w, kp_kineto_text(tree->trace, work->members));
        one.group_size = work->group_size;
        if (work->sequence >= 0) one.at = work->sequence;
    }
    *KP_KINETO_NEXT(w->of, w->count, w->capacity) = one;
}

/* The parts of its steps' time, to compare them with those of the others. */
static void parts_add(struct kp_rankwait *row, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_summary s;
    kp_summary_make(&s, tree, chosen);
    row->steps += s.steps;
    row->steps_ns += s.step_mean_ns * (int64_t)s.steps;
    row->part_ns[KP_RANK_OPS] += s.op_ns;
    row->part_ns[KP_RANK_DATA] += s.data_ns;
    row->part_ns[KP_RANK_REST] += s.rest_ns;
}

static bool is_place(const struct kp_rankplace *a, const struct kp_rankplace *b)
{
    return a->is_backward == b->is_backward && strcmp(a->name, b->name) == 0;
}

static void place_add(struct kp_rankwait *row, struct kp_rankplace place)
{
    for (size_t i = 0; i < row->place_count; i++)
        if (is_place(&row->places[i], &place)) {
            row->places[i].ns += place.ns;
            return;
        }
    place.name = strdup(place.name);
    if (place.name) *KP_KINETO_NEXT(row->places, row->place_count, row->place_capacity) = place;
}

/* The time of collectives is the wait for other ranks. */
static void places_add(struct kp_rankwait *row, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const double least_ns = PLACE_LEAST * (double)kp_spans_length(&chosen->in_steps, NULL);
    struct kp_top top;
    kp_top_build(&top, tree, chosen, tree->trace->has_stacks ? KP_TOP_BY_LINE : KP_TOP_BY_OP);
    for (size_t i = 0; i < top.count; i++) {
        const struct kp_top_row *const r = &top.rows[i];
        const char *const text = kp_kineto_text(tree->trace, r->name);
        char shown[PLACE_BYTES];
        const double ns = r->steps.self_ns - r->begun_ns;
        if (!r->name || ns < least_ns || kp_namefacts(tree->trace, r->name) & KP_NAME_COLLECTIVE) continue;
        kp_plain_text(shown, sizeof shown, text, strlen(text));
        place_add(row, (struct kp_rankplace){shown, ns, r->is_backward, tree->trace->has_stacks});
    }
    kp_top_fini(&top);
}

long kp_rankwaits_rank(const struct kp_kineto *trace)
{
    const char *rank = kp_kineto_fact(trace, "distributedInfo.rank");
    return rank && kp_kineto_number(trace, "distributedInfo.world_size") >= 2 ? strtol(rank, NULL, 10) : -1;
}

static void trace_begin(struct kp_rankwaits *w, const struct kp_kineto *trace, long rank, const struct kp_spans *within)
{
    const long world = kp_kineto_number(trace, "distributedInfo.world_size");
    struct kp_ranktrace *const t = KP_KINETO_NEXT(w->traces, w->trace_count, w->trace_capacity);
    if (!w->texts) w->texts = kp_strings_open();
    if (world > w->world) w->world = world;
    *t = (struct kp_ranktrace){.rank = rank};
    kp_spans_add_all(&t->within, within);
    kp_spans_settle(&t->within);
}

static void job_note(struct kp_rankwaits *w, const struct kp_kineto *trace)
{
    const uint32_t job = text_kept(w, kp_kineto_fact(trace, "kprof.job"));
    w->has_jobs |= job && w->job && job != w->job;
    if (job) w->job = job;
}

/* For what their ranks ask of one another (ranklonger.c). */
static void steps_add(struct kp_rankwait *row, uint32_t trace, const struct kp_tree *tree,
                      const struct kp_chosen *chosen)
{
    double *const no_core = kp_kineto_zeros(chosen->step_count + 1, sizeof *no_core);
    kp_nocore_of_some(no_core, tree, chosen->steps, chosen->step_count);
    for (size_t i = 0; i < chosen->step_count; i++) {
        const struct kp_step *const s = &chosen->steps[i];
        *KP_KINETO_NEXT(row->each, row->each_count, row->each_capacity) =
            (struct kp_rankstep){s->number, s->start_ns, s->end_ns, no_core[i], trace};
    }
    free(no_core);
}

/* The kernel counts from the first step to the last. */
static void cores_note(struct kp_rankwait *row, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const struct kp_kineto *const trace = tree->trace;
    const struct kp_threads threads = kp_threads_of(trace);
    const size_t steps = chosen->step_count;
    row->core_had_ns += 1000 * (int64_t)kp_kineto_number(trace, "kprof.core_had_us");
    row->core_waited_ns += 1000 * (int64_t)kp_kineto_number(trace, "kprof.core_waited_us");
    row->core_others_ns += 1000 * (int64_t)kp_kineto_number(trace, "kprof.core_others_us");
    if (steps) row->core_of_ns += chosen->steps[steps - 1].end_ns - chosen->steps[0].start_ns;
    if (threads.cores > row->cores) row->cores = threads.cores;
    if (threads.busy > row->busy_threads) row->busy_threads = threads.busy;
    row->has_workers |= kp_namefacts_has_workers(trace);
}

void kp_rankwaits_add(struct kp_rankwaits *w, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const struct kp_spans *within = chosen->step_count ? &chosen->in_steps : &chosen->spans;
    const long rank = kp_rankwaits_rank(tree->trace);
    if (rank < 0) return;
    const bool on_device = are_on_gpu(tree);
    trace_begin(w, tree->trace, rank, within);
    job_note(w, tree->trace);
    struct kp_rankwait *row = rank_get(w, rank);
    row->host = text_kept(w, kp_kineto_fact(tree->trace, "host_name"));
    cores_note(row, tree, chosen);
    kp_commkinds_add(&w->kinds, tree, within);
    parts_add(row, tree, chosen);
    if (chosen->step_count) places_add(row, tree, chosen);
    kp_rankinputs_add(w, row, tree, chosen);
    steps_add(row, (uint32_t)(w->trace_count - 1), tree, chosen);
    int32_t *const starts = on_device ? NULL : kp_commstarts_find(tree);
    for (size_t i = 0; i < tree->count; i++)
        if (kp_collective_is(tree, i, on_device) && kp_spans_has(within, tree->nodes[i].start_ns))
            collective_add(w, tree, chosen, i, row, starts ? starts[i] : -1);
    free(starts);
    row->traces++;
}

/* ---- all ranks ---- */

KP_ORDER(rank_order, struct kp_rankwait, rank)
KP_ORDER(set_order, struct kp_rankset, start_ns)

/* The reason that a rank was late: the set in which it waited longest in its step, and for whom. */
struct delay {
    const struct kp_rankset *set;
    long step;
    int64_t ns;
    uint32_t culprit;
};

/* The last rank of a set, and the wait of each of the others. */
static void set_count(struct kp_rankwaits *w, struct kp_rankset *set)
{
    for (size_t i = set->from; i < set->to; i++)
        if (w->of[i].ns < w->of[set->last].ns) set->last = i;
    const struct kp_collective *const last = &w->of[set->last];
    w->matched++;
    w->bus_bytes += last->bus_bytes;
    w->transfer_ns += last->bus_bytes ? last->ns : 0;
    w->ranks[last->row].last++;
    w->traces[last->trace].last++;
    for (size_t i = set->from; i < set->to; i++) {
        const struct kp_collective *const one = &w->of[i];
        struct kp_ranktrace *const t = &w->traces[one->trace];
        w->ranks[one->row].matched++;
        kp_spans_add(&t->waits, one->start_ns, one->start_ns + one->ns - last->ns);
        kp_spans_add(&t->spent, one->start_ns, one->start_ns + one->ns);
        if (one->start_ns < set->start_ns) set->start_ns = one->start_ns;
    }
}

/* Blames the rank that came last, or for whom that one waited in another group of this step before. */
static void set_blame(struct kp_rankwaits *w, const struct kp_rankset *set, struct delay *delays)
{
    const struct kp_collective *const last = &w->of[set->last], *waiter = last;
    const struct delay *const before = &delays[last->row];
    for (size_t i = set->from; i < set->to; i++)
        if (w->of[i].ns > waiter->ns) waiter = &w->of[i];
    const int64_t wait = waiter->ns - last->ns;
    const bool inherits =
        before->set && last->step >= 0 && before->step == last->step && !kp_rankset_has(w, before->set, waiter->row);
    const int64_t inherited = !inherits ? 0 : before->ns < wait ? before->ns : wait;
    const uint32_t culprit = 2 * inherited > wait ? before->culprit : last->row;
    if (inherited) w->ranks[before->culprit].held_ns += inherited;
    w->ranks[last->row].held_ns += wait - inherited;
    for (size_t i = set->from; i < set->to; i++) {
        const struct kp_collective *const one = &w->of[i];
        struct delay *const d = &delays[one->row];
        const int64_t ns = one->ns - last->ns;
        if (i != set->last && (!d->set || d->step != one->step || ns > d->ns))
            *d = (struct delay){set, one->step, ns, culprit};
    }
}

/* Collectives may overlap: what a rank waits is no sum, and lies in its steps. */
static void traces_settle(struct kp_rankwaits *w)
{
    for (size_t i = 0; i < w->trace_count; i++) {
        struct kp_ranktrace *const t = &w->traces[i];
        struct kp_rankwait *const row = rank_get(w, t->rank);
        kp_spans_settle(&t->waits);
        kp_spans_settle(&t->spent);
        row->waited_ns += t->waited_ns = kp_spans_length(&t->waits, &t->within);
        row->spent_ns += t->spent_ns = kp_spans_length(&t->spent, &t->within);
    }
}

static void hosts_look(struct kp_rankwaits *w)
{
    for (size_t i = 0; i < w->rank_count; i++)
        w->has_hosts |= !w->ranks[i].host || w->ranks[i].host != w->ranks[0].host;
}

void kp_rankwaits_settle(struct kp_rankwaits *w)
{
    if (!w->rank_count) return;
    if (w->has_jobs) w->count = 0;
    kp_qsort(w->ranks, w->rank_count, sizeof *w->ranks, rank_order);
    for (size_t i = 0; i < w->count; i++)
        w->of[i].row = (uint32_t)(kp_rankmatch_row(w, w->traces[w->of[i].trace].rank) - w->ranks);
    hosts_look(w);
    kp_rankmatch_sets(w);
    struct delay *const delays = kp_kineto_zeros(w->rank_count, sizeof *delays);
    for (size_t i = 0; i < w->set_count; i++) set_count(w, &w->sets[i]);
    if (w->set_count) kp_qsort(w->sets, w->set_count, sizeof *w->sets, set_order);
    for (size_t i = 0; i < w->set_count; i++) set_blame(w, &w->sets[i], delays);
    free(delays);
    kp_rankturns_find(w);
    traces_settle(w);
}

static double part_ms(const struct kp_rankwait *row, int part)
{
    return row->steps ? (double)row->part_ns[part] / 1e6 / (double)row->steps : 0;
}

static double place_ms(const struct kp_rankwait *row, const struct kp_rankplace *place)
{
    for (size_t i = 0; i < row->place_count && row->steps; i++)
        if (is_place(&row->places[i], place)) return row->places[i].ns / 1e6 / (double)row->steps;
    return 0;
}

struct more { /* what a rank has more of than the others, in ms a step: a part, or a place */
    int at;   /* -1: nothing */
    double own, others;
};

/* The part of its steps that is longer than the others' by most. */
static struct more part_most(const struct kp_rankwaits *w, const struct kp_rankwait *late)
{
    struct more most = {-1, CAUSE_LEAST_MS, 0};
    for (int part = 0; part < KP_RANK_PARTS && late->steps; part++) {
        double others = 0;
        for (size_t i = 0; i < w->rank_count; i++)
            if (&w->ranks[i] != late) others += part_ms(&w->ranks[i], part) / (double)(w->rank_count - 1);
        const double own = part_ms(late, part);
        if (own - others > most.own - most.others) most = (struct more){part, own, others};
    }
    return most;
}

/* The line or op that a rank has more of than the others, if it is a part of what the rank has more. */
static struct more place_most(const struct kp_rankwaits *w, const struct kp_rankwait *late, const struct more *part)
{
    const double least = part->at == KP_RANK_REST ? PLACE_OF_REST : PLACE_OF_CAUSE; /* most lines are those of ops */
    struct more most = {-1, least * (part->own - part->others), 0};
    if (kp_commkinds_most(&w->kinds) == KP_COMM_STAGES) return most; /* stages run lines of their own */
    for (size_t p = 0; part->at >= 0 && p < late->place_count; p++) {
        double others = 0;
        for (size_t i = 0; i < w->rank_count; i++)
            if (&w->ranks[i] != late) others += place_ms(&w->ranks[i], &late->places[p]) / (double)(w->rank_count - 1);
        const double own = late->places[p].ns / 1e6 / (double)late->steps;
        if (own - others > most.own - most.others) most = (struct more){(int)p, own, others};
    }
    return most;
}

const struct kp_rankplace *kp_rankwaits_place(const struct kp_rankwaits *w, const struct kp_rankwait *late)
{
    const struct more part = part_most(w, late), place = place_most(w, late, &part);
    return place.at >= 0 ? &late->places[place.at] : NULL;
}

/* The part of its steps, and the line or op. Returns the length. */
static int more_tell(char *out, size_t bytes, const struct kp_rankwaits *w, const struct kp_rankwait *late,
                     const struct more *part)
{
    static const char *const names[] = {
        [KP_RANK_OPS] = "ops", [KP_RANK_DATA] = "data loading", [KP_RANK_REST] = "work outside ops"};
    const char *const s = w->rank_count > 2 ? "s" : "";
    const struct more place = place_most(w, late, part);
    const int used = snprintf(out, bytes, "rank %d spends %.1f ms of each step on %s, the other rank%s %.1f ms",
                              (int)late->rank, part->own, names[part->at], s, part->others);
    if (place.at < 0 || (size_t)used >= bytes) return used;
    const struct kp_rankplace *const best = &late->places[place.at];
    return used + snprintf(out + used, bytes - (size_t)used,
                           "; %s%s takes %.1f ms per step there, %.1f ms on the other%s",
                           best->is_backward ? KP_TOP_BACKWARD_OF : "", best->name, place.own, place.others, s);
}

/* The work that it has more of: in ops, or on a GPU, where the host's time tells little. */
static void inputs_tell(char *out, size_t bytes, const struct kp_rankwaits *w, const struct kp_rankwait *late,
                        const struct more *part)
{
    *out = 0;
    if (kp_commkinds_most(&w->kinds) == KP_COMM_STAGES) return;
    if (late->has_device) kp_rankinputs_tell(out, bytes, w, late, kp_rankwaits_kept_ns(w, late->rank));
    else if (part->at == KP_RANK_OPS) kp_rankinputs_tell(out, bytes, w, late, 1e6 * (part->own - part->others));
}

bool kp_rankwaits_cause(char *out, size_t bytes, const struct kp_rankwaits *w, const struct kp_rankwait *late)
{
    char inputs[INPUTS_BYTES];
    const struct more part = part_most(w, late);
    if (late != kp_rankwaits_late(w)) return false;
    inputs_tell(inputs, sizeof inputs, w, late, &part);
    const int used = part.at >= 0 ? more_tell(out, bytes, w, late, &part) : 0;
    if (!used) inputs[0] = (char)tolower(inputs[0]);
    if (*inputs && (size_t)used < bytes) snprintf(out + used, bytes - (size_t)used, "%s%s", used ? ". " : "", inputs);
    return used || *inputs;
}

const struct kp_rankwait *kp_rankwaits_most(const struct kp_rankwaits *w)
{
    const struct kp_rankwait *late = w->ranks;
    for (size_t i = 0; i < w->rank_count; i++) {
        const struct kp_rankwait *const r = &w->ranks[i];
        if (r->held_ns > late->held_ns || (r->held_ns == late->held_ns && r->last > late->last)) late = r;
    }
    return w->matched ? late : NULL;
}

bool kp_rankwaits_lack(const struct kp_rankwaits *w) { return w->lacking > 0; }

/* Its own work and waits, on a core or asleep; at least the time it computed. */
static int64_t own_ns(const struct kp_rankwait *row)
{
    const int64_t ns = row->steps_ns - row->spent_ns - row->core_waited_ns;
    return ns > row->core_had_ns ? ns : row->core_had_ns;
}

/*
 * Had it no core for half of what others waited for it, and neither computed more than they nor was otherwise busy or
 * asleep for half of that? A rank that has not more of its own is late by chance: the next time another one is.
 */
static bool is_late_for_core(const struct kp_rankwaits *w, const struct kp_rankwait *late)
{
    int64_t most_ns = 0, most_own_ns = 0;
    for (size_t i = 0; i < w->rank_count; i++) {
        const struct kp_rankwait *const r = &w->ranks[i];
        if (r != late && r->core_had_ns > most_ns) most_ns = r->core_had_ns;
        if (r != late && own_ns(r) > most_own_ns) most_own_ns = own_ns(r);
    }
    return most_ns > 0 && 2 * late->core_waited_ns >= late->held_ns &&
           (double)(late->core_had_ns - most_ns) < CORE_OF_STEPS * (double)late->steps_ns &&
           2 * (own_ns(late) - most_own_ns) < late->held_ns;
}

const struct kp_rankwait *kp_rankwaits_late(const struct kp_rankwaits *w)
{
    int64_t held_ns = 0;
    if (w->rank_count < 2 || !w->matched || kp_rankwaits_lack(w)) return NULL;
    const struct kp_rankwait *const late = kp_rankwaits_most(w);
    for (size_t i = 0; i < w->rank_count; i++) held_ns += w->ranks[i].held_ns;
    const bool is_late = held_ns && (double)late->held_ns >= LATE_SHARE * (double)held_ns;
    return is_late && !is_late_for_core(w, late) ? late : NULL;
}

const struct kp_rankwait *kp_rankwaits_row(const struct kp_rankwaits *w, long rank)
{
    return w->rank_count > 1 && !kp_rankwaits_lack(w) ? kp_rankmatch_row(w, rank) : NULL;
}

const struct kp_rankwait *kp_rankwaits_awaited(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = kp_rankwaits_row(w, rank), *const late = kp_rankwaits_late(w);
    return row && row != late && row->spent_ns && 2 * row->waited_ns >= row->spent_ns ? late : NULL;
}

double kp_rankwait_a_step(const struct kp_rankwait *row) { return (double)row->waited_ns / (double)row->steps; }

/* The rank that waits most for that late one; NULL: it is not late. */
static const struct kp_rankwait *waiter_of(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const late = kp_rankwaits_late(w), *most = NULL;
    for (size_t i = 0; late && late->rank == rank && i < w->rank_count; i++) {
        const struct kp_rankwait *const row = &w->ranks[i];
        if (!row->steps || kp_rankwaits_awaited(w, row->rank) != late) continue;
        if (!most || kp_rankwait_a_step(row) > kp_rankwait_a_step(most)) most = row;
    }
    return most;
}

double kp_rankwaits_kept_ns(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = waiter_of(w, rank);
    return row ? kp_rankwait_a_step(row) : 0;
}

struct kp_rankkept kp_rankwaits_kept_steps(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = waiter_of(w, rank);
    struct kp_rankkept out = {0, row ? row->each_count : 0, -1};
    double most = -1;
    for (size_t i = 0; i < out.of; i++) {
        const struct kp_rankstep *const step = &row->each[i];
        const double ns = (double)kp_spans_between(&w->traces[step->trace].waits, step->start_ns, step->end_ns);
        out.steps += 2 * ns >= kp_rankwait_a_step(row);
        if (ns > most) most = ns, out.longest = step->number;
    }
    return out;
}

double kp_rankwaits_share(const struct kp_rankwaits *w, long rank)
{
    const struct kp_rankwait *const row = kp_rankwaits_row(w, rank);
    return row && row->spent_ns ? (double)row->waited_ns / (double)row->spent_ns : 0;
}

double kp_rankwait_no_core(const struct kp_rankwait *row)
{
    const double had = (double)row->core_had_ns, waited = (double)row->core_waited_ns;
    return had > 0 && waited > 0 ? waited / (had + waited) : 0;
}

const struct kp_rankwait *kp_rankwaits_without_core(const struct kp_rankwaits *w)
{
    const struct kp_rankwait *most = w->ranks;
    for (size_t i = 0; i < w->rank_count; i++)
        if (kp_rankwait_no_core(&w->ranks[i]) > kp_rankwait_no_core(most)) most = &w->ranks[i];
    return most;
}

const struct kp_rankwait *kp_rankwaits_crowded(const struct kp_rankwaits *w)
{
    const struct kp_rankwait *const most = kp_rankwaits_without_core(w);
    const bool is_much = most && kp_rankwait_no_core(most) >= KP_CORE_WAITED_MUCH &&
                         (double)most->core_waited_ns >= CORE_OF_STEPS * (double)most->steps_ns;
    return is_much ? most : NULL;
}

void kp_rankwaits_fini(struct kp_rankwaits *w)
{
    for (size_t i = 0; i < w->rank_count; i++) {
        for (size_t p = 0; p < w->ranks[i].place_count; p++) free(w->ranks[i].places[p].name);
        free(w->ranks[i].places);
        free(w->ranks[i].each);
        kp_keyindex_fini(&w->ranks[i].calls);
    }
    for (size_t i = 0; i < w->trace_count; i++) {
        kp_spans_fini(&w->traces[i].within);
        kp_spans_fini(&w->traces[i].waits);
        kp_spans_fini(&w->traces[i].spent);
    }
    if (w->texts) kp_strings_close(w->texts);
    free(w->asked);
    free(w->of);
    free(w->sets);
    free(w->traces);
    free(w->ranks);
    *w = (struct kp_rankwaits){0};
}

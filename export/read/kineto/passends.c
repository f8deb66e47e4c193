// SPDX-License-Identifier: Apache-2.0
/*
 * passends.c - finds the backward passes that end the steps of a program without an optimizer object
 *
 * A pass is a run of ranges of autograd's engine without an op of the calling thread between them. Its kind is the set
 * of their names: the number of ranges grows where a graph is kept. See decisions/190.
 */
#include "export/read/kineto/passends.h"

#include <stdlib.h>

#include "collector/base/kp_fnv.h"
#include "collector/base/kp_order.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/stepends.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"

enum { PERIOD_MOST = 16, REPEATS_LEAST = 3 };

/* The events from the begin of a pass to that of the next. */
struct pass {
    uint64_t kind;       /* the sum of what its names hash to, each once */
    size_t last;         /* its last range */
    size_t accumulated;  /* parameters that got their gradients */
    size_t written;      /* ops behind it that write in place */
    bool is_one_for_all; /* one of these is for all parameters */
};
struct threads { /* by number */
    struct kp_keyindex index;
    struct counts {
        size_t ranges, ops, forward;
    } * of;
    size_t capacity;
};

void kp_passends_see(struct kp_passends *p, const struct kp_kineto_event *e, size_t index)
{
    if (e->kind != KP_KINETO_OP || e->phase != 'X') return;
    *KP_KINETO_NEXT(p->ops, p->count, p->capacity) =
        (struct kp_pass_op){.start_ns = e->start_ns,
                            .end_ns = e->start_ns + e->dur_ns,
                            .pid = e->pid,
                            .tid = e->tid,
                            .thread = kp_tree_thread(e),
                            .name = e->name,
                            .index = (uint32_t)index,
                            .has_seq = e->flags & KP_KINETO_HAS_SEQ,
                            .has_names = e->flags & (KP_KINETO_TEXT_PID | KP_KINETO_TEXT_TID)};
}

void kp_passends_fini(struct kp_passends *p)
{
    free(p->ops);
    *p = (struct kp_passends){0};
}

static const char *name_of(const struct kp_kineto *t, const struct kp_pass_op *op)
{
    return kp_kineto_text(t, op->name);
}

static bool is_range(const struct kp_kineto *t, const struct kp_pass_op *op)
{
    return kp_kineto_is_engine(name_of(t, op));
}

/* ---- the threads ---- */

KP_ORDERED(nested_order, struct kp_pass_op, KP_UP(thread) KP_UP(start_ns) KP_DOWN(end_ns))

/* Leaves out what runs inside of a range, and counts the rest. */
static void outermost_keep(struct kp_passends *p, const struct kp_kineto *t, struct threads *threads)
{
    size_t kept = 0;
    int64_t until_ns = INT64_MIN, outer_ns = INT64_MIN;
    kp_qsort(p->ops, p->count, sizeof *p->ops, nested_order);
    for (size_t i = 0; i < p->count; i++) {
        struct kp_pass_op op = p->ops[i];
        const size_t had = threads->index.count, at = kp_keyindex_get(&threads->index, op.thread);
        threads->of = kp_kineto_grow(threads->of, &threads->capacity, threads->index.count, sizeof *threads->of);
        if (at == had) threads->of[at] = (struct counts){0}, until_ns = outer_ns = INT64_MIN;
        if (op.start_ns < until_ns) continue;
        const bool is_engine = is_range(t, &op);
        op.is_outer = op.start_ns >= outer_ns;
        if (op.is_outer) outer_ns = op.end_ns;
        if (is_engine) until_ns = op.end_ns;
        threads->of[at].ranges += is_engine;
        threads->of[at].ops += !is_engine;
        threads->of[at].forward += !is_engine && op.has_seq;
        p->ops[kept++] = op;
    }
    p->count = kept;
}

/* The engine runs the nodes of a CPU in the thread that calls it, and those of a device in one of its own. */
static void threads_choose(const struct threads *threads, uint64_t *engine, uint64_t *caller)
{
    size_t most = 0, e = 0, c = 0;
    for (size_t i = 0; i < threads->index.count; i++) {
        const struct counts *const of = &threads->of[i];
        if (of->ranges > threads->of[e].ranges) e = i;
        if (of->forward > most) most = of->forward, c = i;
    }
    if (2 * threads->of[e].forward > most) c = e;
    *engine = threads->index.keys[e];
    *caller = threads->index.keys[c];
}

KP_ORDER2(time_order, struct kp_pass_op, start_ns, end_ns)

static void threads_keep(struct kp_passends *p, const struct kp_kineto *t)
{
    struct threads threads = {0};
    uint64_t engine = 0, caller = 0;
    size_t kept = 0;
    outermost_keep(p, t, &threads);
    threads_choose(&threads, &engine, &caller);
    for (size_t i = 0; i < p->count; i++) {
        if (p->ops[i].thread == caller) p->pid = p->ops[i].pid, p->tid = p->ops[i].tid;
        if (p->ops[i].thread == (is_range(t, &p->ops[i]) ? engine : caller)) p->ops[kept++] = p->ops[i];
    }
    p->count = kept;
    kp_qsort(p->ops, p->count, sizeof *p->ops, time_order);
    kp_keyindex_fini(&threads.index);
    free(threads.of);
}

/* ---- the passes ---- */

/* Does an op of that name write what an update by hand, or by an optimizer of C++, writes? */
static bool is_written(const char *name)
{
    static const char *const in_place[] = {"add_",  "sub_",  "mul_",  "addcdiv_", "addcmul_",
                                           "copy_", "lerp_", "zero_", NULL};
    const char *const op = strncmp(name, "aten::", 6) == 0 ? name + 6 : "";
    size_t i = 0;
    while (in_place[i] && strcmp(op, in_place[i]) != 0) i++;
    return in_place[i];
}

static bool is_one_for_all(const char *name)
{
    const size_t bytes = strlen(name);
    return bytes && name[bytes - 1] == '_' &&
           (strncmp(name, "aten::_foreach_", 15) == 0 || strncmp(name, "aten::_fused_", 13) == 0);
}

static void range_add(struct pass *pass, const char *name, uint32_t *seen, uint32_t number)
{
    if (*seen != number) pass->kind += kp_fnv64(KP_FNV64, name, strlen(name));
    *seen = number;
    pass->accumulated += strcmp(name + strlen(KP_ENGINE_RANGE), KP_ACCUMULATE_GRAD) == 0;
}

static struct pass *passes_make(const struct kp_passends *p, const struct kp_kineto *t, size_t *count)
{
    struct pass *of = NULL;
    size_t capacity = 0;
    bool is_open = false;
    uint32_t *const seen = kp_kineto_zeros(kp_strings_count(t->strings), sizeof *seen);
    *count = 0;
    for (size_t i = 0; i < p->count; i++) {
        const char *const name = name_of(t, &p->ops[i]);
        const bool is_engine = is_range(t, &p->ops[i]);
        if (is_engine && !is_open) *KP_KINETO_NEXT(of, *count, capacity) = (struct pass){.last = i};
        is_open = is_engine;
        if (!*count) continue;
        struct pass *const pass = &of[*count - 1];
        if (is_engine) range_add(pass, name, &seen[p->ops[i].name], (uint32_t)*count);
        if (is_engine && p->ops[i].end_ns >= p->ops[pass->last].end_ns) pass->last = i;
        pass->written += !is_engine && p->ops[i].is_outer && is_written(name);
        pass->is_one_for_all |= !is_engine && is_one_for_all(name);
    }
    free(seen);
    return of;
}

/* ---- the steps ---- */

/* Joins passes up to each behind which the parameters are written: gradients that are added up, and autograd.grad()
 * inside of a forward. Returns how many there are. */
static size_t updates_join(struct pass *of, size_t count)
{
    size_t least = SIZE_MAX, updates = 0, kept = 0;
    for (size_t i = 0; i < count; i++)
        if (of[i].accumulated && of[i].accumulated < least) least = of[i].accumulated;
    for (size_t i = 0; i < count; i++) {
        of[i].is_one_for_all |= least != SIZE_MAX && 2 * of[i].written >= least;
        updates += of[i].is_one_for_all;
    }
    if (updates < REPEATS_LEAST) return count;
    uint64_t kind = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        if (of[i].kind != last) kind += of[i].kind, last = of[i].kind;
        if (!of[i].is_one_for_all) continue;
        of[kept] = of[i];
        of[kept++].kind = kind;
        kind = last = 0;
    }
    return kept;
}

/* After how many passes their kinds come again, 0: they do not. The first pass may be of another kind: what the later
 * ones carry on is not there. */
static size_t period_of(const struct pass *of, size_t count)
{
    for (size_t period = 1; period <= PERIOD_MOST && period * REPEATS_LEAST <= count; period++) {
        size_t i = 1;
        while (i + period < count && of[i].kind == of[i + period].kind) i++;
        if (i + period >= count) return period;
    }
    return 0;
}

void kp_passends_settle(struct kp_passends *p, const struct kp_kineto *t)
{
    size_t count = 0, kept = 0;
    if (!p->count) return;
    threads_keep(p, t);
    struct pass *const of = passes_make(p, t, &count);
    count = updates_join(of, count);
    const size_t period = period_of(of, count);
    for (size_t i = period; period && i <= count; i += period) p->ops[kept++] = p->ops[of[i - 1].last];
    p->count = kept;
    free(of);
}

/* ---- a whole trace ---- */

bool kp_passends_may(const struct kp_kineto *t)
{
    bool has_range = false;
    if (kp_kineto_fact(t, "kprof.step_source")) return false;
    for (size_t i = 0; i < kp_strings_count(t->strings); i++) {
        const char *const name = kp_strings_get(t->strings, (uint32_t)i);
        if (kp_kineto_is_step(name) || kp_stepends_is_optimizer(name)) return false;
        has_range |= kp_kineto_is_engine(name);
    }
    return has_range;
}

void kp_passends_mark(struct kp_kineto *t)
{
    struct kp_passends p = {0};
    if (!kp_passends_may(t)) return;
    for (size_t i = 0; i < t->count; i++) {
        if (kp_stepends_may(t, &t->events[i])) {
            p.count = 0;
            break;
        }
        kp_passends_see(&p, &t->events[i], i);
    }
    kp_passends_settle(&p, t);
    t->has_pass_ends = p.count;
    t->pass_pid = p.pid;
    t->pass_tid = p.tid;
    for (size_t i = 0; i < t->count && p.count; i++)
        if (kp_kineto_is_engine(kp_kineto_text(t, t->events[i].name)))
            t->events[i].flags &= (uint8_t)~KP_KINETO_ENDS_PASS;
    for (size_t i = 0; i < p.count; i++) t->events[p.ops[i].index].flags |= KP_KINETO_ENDS_PASS;
    kp_passends_fini(&p);
}

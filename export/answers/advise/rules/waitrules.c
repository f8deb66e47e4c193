// SPDX-License-Identifier: Apache-2.0
/*
 * waitrules.c - the thread of the steps sleeps: in which call it waits, and for what, or that it waits for the GIL
 *
 * The kernel tells how long that thread slept in the window. If Python's calls were recorded, names show the thing it
 * waited for (pywait.def). The sleep beside these is a wait for the GIL, if other threads of the program have a core
 * meanwhile: 5 ms each time, wherever an op or a function in C ends. If they were not, the gaps between its ops decide:
 * one wait is one gap of the step, and waits for the GIL lie in many.
 */
#include "export/answers/advise/rules/waits.h"

#include <stdlib.h>

#include "export/answers/advise/rules/load/loadwaits.h"
#include "export/answers/advise/rules/rules.h"
#include "export/answers/top/timeshares.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/units.h"

#define WAIT_SHARE 0.10 /* of a step */
#define WAIT_NS 200000.0
#define COMM_LITTLE 0.01 /* of a step: else its thread sleeps in collectives, too, beside ops */
#define ONE_SHARE 0.5    /* of what it sleeps: in one gap of a step */
#define PART_SHARE 0.3   /* of a gap: the thread sleeps for so much of it, and the rest is of the same cause */
#define WHOLE_SHARE 0.8  /* of a gap: it sleeps for nearly all of it */
#define ACK_SHARE 0.8    /* of a wait for the network: in waits as long as TCP delays an acknowledgement */
#define OTHERS_SHARE 0.5 /* of what it sleeps: other threads have a core for so long */

static bool has_comm(const struct kp_costrules *x)
{
    return x->out->mean_ns[KP_SPLIT_COMM] > COMM_LITTLE * x->out->step_ns;
}

/* The sleep of the thread of the steps, a step, outside of data loading. Negative: not known. */
static double asleep_of(const struct kp_costrules *x)
{
    const double asleep = kp_loadcore_asleep_ns(x) / (double)x->out->steps - x->out->mean_ns[KP_SPLIT_LOADING];
    return has_comm(x) || x->out->has_gpu ? -1 : asleep;
}

static bool is_much(const struct kp_costrules *x, double ns)
{
    return ns >= WAIT_NS && ns >= WAIT_SHARE * x->out->step_ns;
}

/* Steps that are calls of a model have the time between these, in which a server waits for a request. */
static bool may_be_idle(const struct kp_costrules *x, const struct kp_finding *f)
{
    const char *const source = kp_kineto_fact(x->tree->trace, "kprof.step_source");
    return KP_NAME_IS(f->id, "waits-in-step", "queue-wait", "network-wait") && source && strcmp(source, "module") == 0;
}

/*
 * Adds a finding of what each step has of it, and explains the time without an op, and slow steps, by it. A wait that
 * few steps have makes these slow: it is named with them.
 */
static struct kp_finding *wait_tell(struct kp_costrules *x, struct kp_finding *f, const double *of)
{
    const size_t steps = x->out->steps;
    f->share = x->out->step_ns > 0 ? f->step_ns / x->out->step_ns : 0;
    for (size_t i = 0; i < steps; i++) f->steps += !of || of[i] >= WAIT_SHARE * (double)x->splits[i].step_ns;
    if (2 * f->steps < steps) return NULL;
    const bool is_idle = may_be_idle(x, f);
    f->is_critical = !is_idle && kp_advise_is_critical(f, steps);
    if (is_idle) f->change = KP_TEXT("A server that waits for requests is idle then. Else: %s", f->change);
    if (2 * f->step_ns >= x->out->mean_ns[KP_SPLIT_IDLE]) x->explained |= 1u << KP_SPLIT_IDLE;
    if (of) kp_costrules_told(x, of);
    return kp_costrules_tell(x, f);
}

/*
 * Steps that are calls of a function: between two calls its caller waits for what the next one is to do, as a server
 * does for a request. That is no cost of a step.
 */
static void between_tell(struct kp_costrules *x, double ns, const char *where)
{
    if (!is_much(x, ns)) return;
    x->out->no_op = KP_TEXT("its thread sleeps %s %s for %s per step. A server waits so for requests; in "
                            "another program that wait is a cost: kprof run without --step has its line. "
                            "The calls alone: kprof report --within %s",
                            where, kp_waits_function(x), kp_units_ms(ns), kp_waits_function(x));
    const double waited = 1e3 * kp_costrules_fact(x, "kprof.core_waited_us") / (double)x->out->steps;
    if (2 * ns >= x->out->mean_ns[KP_SPLIT_IDLE] - waited) x->explained |= 1u << KP_SPLIT_IDLE;
}

/* ---- the GIL ---- */

static bool is_scattered(const struct kp_costrules *x, double asleep)
{
    return kp_waitgaps_scattered(x) >= ONE_SHARE * asleep;
}

/*
 * How long other threads have a core, a step. Beside torch's pool that is known at least, or else its threads are taken
 * to have one as long as the thread of the steps. Sleep must lie scattered between ops then, as the GIL is waited for
 * wherever one ends: a wait for the pool lies in ops, and one for anything else at its place.
 */
static double others_of(const struct kp_costrules *x, double asleep)
{
    const double steps = (double)x->out->steps, own = (double)kp_summary_others_ns(x->tree->trace) / steps;
    const long torch = kp_threads_of(x->tree->trace).torch;
    const double pool = (double)(torch - 1) * kp_costrules_fact(x, "kprof.core_had_us");
    const double rest = 1e3 * (kp_costrules_fact(x, "kprof.core_others_us") - pool) / steps;
    if (torch <= 1 || kp_rules_threads_wanted(x)) return own;
    const double others = own > 0 ? own : rest;
    return others >= OTHERS_SHARE * asleep && is_scattered(x, asleep) ? others : 0;
}

/* False: no other thread has a core for long enough. */
static bool gil_tell(struct kp_costrules *x, double asleep)
{
    const double others = is_much(x, asleep) ? others_of(x, asleep) : 0;
    if (!(others > 0) || others < OTHERS_SHARE * asleep) return false;
    struct kp_finding f = {.id = KP_FINDING_GIL, .step_ns = asleep, .line = kp_ownthreads_line(x)};
    f.what = KP_TEXT("%s waits for Python's lock (the GIL): other threads of this program hold "
                     "it and compute for %.1f ms per step",
                     x->out->step_thread, others / 1e6);
    const char *const where = kp_ownthreads_where(x);
    f.change = KP_TEXT("Run what that thread does as a process, do less in it, or let it wait where it polls: "
                       "the lock comes back 5 ms after each time that it is asked for. %c%s.",
                       where[0] - 'a' + 'A', where + 1);
    (void)wait_tell(x, &f, NULL);
    return true;
}

/* ---- calls that wait ---- */

static const char lock_change[] = "Hold the lock for less time, or give each thread its own data. `kprof stacks "
                                  "--threads` shows what each does meanwhile.";
static const char batch_change[] = "If the result that fills it waits for is of this step, both wait until a time "
                                   "limit ends: shorten the limit, or end "
                                   "a batch when no other request is on its way.";
#define WAITS_ELSEWHERE                                                                        \
    {                                                                                          \
        "waits-in-step", " waits in a call for work that runs elsewhere",                      \
            "Start that work earlier and fetch the result one step later, or make it cheaper." \
    }
static const struct wait_words {
    const char *id, *what, *change; /* what: behind the thread's name, where it begins with a blank */
} words[KP_PYWAIT_OWN + 1] = {
    [KP_PYWAIT_NONE] = WAITS_ELSEWHERE,
    [KP_PYWAIT_COMM] = WAITS_ELSEWHERE,
    [KP_PYWAIT_SLEEP] = {"sleeps-in-step", "the step sleeps",
                         "Take the sleep out of the step, or let another thread sleep."},
    [KP_PYWAIT_QUEUE] = {"queue-wait", "the step waits for a queue",
                         "The other side of the queue is too slow: fill it from several threads or processes, or "
                         "further ahead."},
    [KP_PYWAIT_LOCK] = {"lock-wait", "the step waits for another thread: a lock, an event or its end", lock_change},
    [KP_PYWAIT_OWN] = {"lock-wait", " waits in a function's own code, for a lock (acquire, or with lock:)",
                       lock_change},
    [KP_PYWAIT_NETWORK] = {"network-wait", "the step waits for a network or for another program's answer",
                           "Send requests ahead in another thread, and ask for more at once."},
    [KP_PYWAIT_PROCESS] = {"process-wait", "the step waits for the result of another process or a pool",
                           "Start it earlier and fetch its result one step later, or make it cheaper there."},
    [KP_PYWAIT_FILE] =
        {"file-io", "the step reads or writes files",
         "Let a thread or a DataLoader's workers read ahead, keep what was read in memory, or write less "
         "often, or in a thread."},
};

#define PICKLES                                                                                             \
    "pickles what each call sends to its workers. Give large data that stays the same to each worker once " \
    "(initializer=), or share it."

/* A pool of processes waits for its pickles, too. */
static const char *pool_change(const struct kp_costrules *x, const struct kp_finding *f)
{
    if (!f->where || !strstr(f->where, "multiprocessing/pool.py")) return f->change;
    return KP_TEXT("The pool " PICKLES " %s", f->change);
}

/* Linux delays an acknowledgement by 40 ms, and the next small segment of the request waits for it (Nagle). */
static const char *network_change(const struct kp_costrules *x, const struct kp_waitplace *most, const char *change)
{
    if (!most || most->kind != KP_PYWAIT_NETWORK || most->ack_ns < ACK_SHARE * most->ns) return change;
    return KP_TEXT(
        "Nearly all of these waits last 40 to 50 ms. TCP delays an acknowledgement so long, and a request that "
        "is sent in several small pieces waits for it: send it in one call (sendall(head + body)), or set "
        "TCP_NODELAY on both sides. %s",
        change);
}

/* Each of several threads waits so, while the others end steps, too. */
static const char *at_once_text(const struct kp_costrules *x, double ns)
{
    const double threads = (double)x->out->step_threads;
    if (threads < 2) return "";
    return KP_TEXT(" (%s of the %s that each of %zu threads takes for a step of its own)", kp_units_ms(ns * threads),
                   kp_units_ms(x->out->step_ns * threads), x->out->step_threads);
}

/* Tells one kind of wait, of a step's `ns`, at its lines. */
static void kind_tell(struct kp_costrules *x, const struct kp_waitcalls *calls, enum kp_pywait kind, double ns)
{
    char lines[600];
    struct kp_finding f = {.id = words[kind].id, .change = words[kind].change, .step_ns = ns};
    const struct kp_waitplace *const most = kp_waitcalls_lines(calls, x->tree->trace, kind, lines, sizeof lines);
    bool is_for_this = false;
    const char *const feeder = kind == KP_PYWAIT_QUEUE ? kp_waitcalls_feeder(x, &is_for_this) : NULL;
    if (is_for_this) f.change = batch_change;
    f.what = KP_TEXT("%s%s%s%s%s%s%s", *words[kind].what == ' ' ? x->out->step_thread : "", words[kind].what,
                     *lines ? ": " : "", lines, feeder ? "; " : "", feeder ? feeder : "", at_once_text(x, ns));
    f.line = most ? kp_kineto_text(x->tree->trace, most->line) : NULL;
    f.where = most ? kp_kineto_text(x->tree->trace, most->call) : NULL;
    f.change = network_change(x, most, pool_change(x, &f));
    double *const of = kp_kineto_zeros(x->out->steps + 1, sizeof *of);
    kp_waitcalls_steps(calls, kind, of);
    (void)wait_tell(x, &f, of);
    free(of);
}

/* `with lock:` calls nothing that is recorded. If other waits for locks are named, it is one with them. */
static void own_tell(struct kp_costrules *x, const struct kp_waitcalls *calls, double ns)
{
    struct kp_finding *const told = kp_costrules_find(x, words[KP_PYWAIT_OWN].id);
    if (!told) {
        kind_tell(x, calls, KP_PYWAIT_OWN, ns);
        return;
    }
    told->step_ns += ns;
    told->share = told->step_ns / x->out->step_ns;
    told->steps = x->out->steps;
    told->is_critical = kp_advise_is_critical(told, x->out->steps);
    x->explained |= 2 * told->step_ns >= x->out->mean_ns[KP_SPLIT_IDLE] ? 1u << KP_SPLIT_IDLE : 0;
}

/* The sleep that no named call explains: one function in C that waits; the GIL; or a lock of a statement, which is no
 * call. */
static void rest_judge(struct kp_costrules *x, const struct kp_waitcalls *calls, double rest)
{
    const double unknown = kp_waitcalls_ns(calls, KP_PYWAIT_NONE), own = kp_waitcalls_ns(calls, KP_PYWAIT_OWN);
    if (!is_much(x, rest)) return;
    if (unknown >= ONE_SHARE * rest) kind_tell(x, calls, KP_PYWAIT_NONE, unknown < rest ? unknown : rest);
    else if (!gil_tell(x, rest) && own >= ONE_SHARE * rest) own_tell(x, calls, own < rest ? own : rest);
}

static void calls_judge(struct kp_costrules *x, double asleep)
{
    struct kp_waitcalls calls;
    kp_waitcalls_find(&calls, x);
    const double between = calls.between_ns / (double)x->out->steps;
    double rest = asleep - between;
    between_tell(x, between < asleep ? between : asleep, "between calls of");
    for (int kind = KP_PYWAIT_SLEEP; kind < KP_PYWAIT_KINDS; kind++) {
        const double ns = kp_waitcalls_ns(&calls, (enum kp_pywait)kind);
        const bool is_told = kind == KP_PYWAIT_COMM && has_comm(x); /* as communication */
        if (is_much(x, ns) && !is_told) kind_tell(x, &calls, (enum kp_pywait)kind, ns);
        if (kind != KP_PYWAIT_FILE || is_much(x, ns)) rest -= ns; /* the GIL may be waited for in short reads, too */
    }
    rest_judge(x, &calls, rest);
    kp_waitcalls_fini(&calls);
}

/* ---- without calls: gaps ---- */

static const char gap_change[] = "To see the call, and the cause of the wait: kprof run --with-stack 1 --schedule "
                                 "10-30 -- ..., then kprof advise. A pool of processes " PICKLES;

/*
 * How long the thread waits, a step: what the place has, and no more than the thread sleeps. If it sleeps for a good
 * part of that place, as while it reads files, its other work there is of the same cause.
 */
static double gap_cost(const struct kp_waitgaps *gaps, double asleep)
{
    const bool is_part = asleep >= PART_SHARE * gaps->most_ns && asleep < WHOLE_SHARE * gaps->most_ns;
    return is_part || gaps->most_ns < asleep ? gaps->most_ns : asleep;
}

static void gap_tell(struct kp_costrules *x, struct kp_waitgaps *gaps, double asleep)
{
    if (!is_much(x, gaps->most_ns)) return;
    struct kp_finding f = {.id = words[KP_PYWAIT_NONE].id, .change = gap_change};
    f.step_ns = gap_cost(gaps, asleep);
    f.what = KP_TEXT("%s sleeps or waits for a lock, a queue, a file or another process%s", x->out->step_thread,
                     f.step_ns > asleep ? KP_TEXT(" (asleep for %s of it)", kp_units_ms(asleep)) : "");
    kp_costplaces_tell(&gaps->places, x->tree->trace, &f);
    f.is_gap = f.where != NULL;
    (void)wait_tell(x, &f, gaps->of);
}

static void gaps_judge(struct kp_costrules *x, double asleep)
{
    struct kp_waitgaps gaps;
    if (!is_much(x, asleep)) return;
    kp_waitgaps_find(&gaps, x, ONE_SHARE * asleep);
    const bool is_input = gaps.node >= 0 && kp_rules_is_input(x, (size_t)gaps.node); /* that has a finding of its own */
    const bool is_one = 2 * gaps.large_steps >= x->out->steps, is_most = gaps.most_ns >= ONE_SHARE * asleep;
    const bool is_between = kp_waits_function(x) && is_one && 2 * gaps.begin_steps >= gaps.large_steps;
    if (is_between) between_tell(x, gaps.most_ns < asleep ? gaps.most_ns : asleep, "before the first op of");
    else if (!is_input && ((is_one && !is_scattered(x, asleep)) || (!gil_tell(x, asleep) && (is_one || is_most))))
        gap_tell(x, &gaps, asleep);
    kp_waitgaps_fini(&gaps);
}

void kp_rules_waits(struct kp_costrules *x)
{
    const double asleep = asleep_of(x);
    if (x->out->has_gpu || x->tree->trace->has_heap) return; /* that was traced, and makes all else longer */
    if (kp_costrules_has_calls(x)) {
        calls_judge(x, asleep);
        return;
    }
    x->asleep_ns = asleep;
    gaps_judge(x, asleep);
}

void kp_rules_waits_grow(const struct kp_costrules *x)
{
    for (size_t i = 0; i < x->out->count; i++)
        for (int kind = 0; kind <= KP_PYWAIT_OWN; kind++)
            if (strcmp(x->out->findings[i].id, words[kind].id) == 0) {
                x->out->findings[i].what = KP_TEXT("%s, longer and longer", x->out->findings[i].what);
                return;
            }
}

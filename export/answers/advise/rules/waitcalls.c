// SPDX-License-Identifier: Apache-2.0
/* waitcalls.c - in which calls of Python the thread of the steps waits; what the thread does that fills its queue */
#include "export/answers/advise/rules/waits.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/rules/rules.h"
#include "export/read/frames/framename.h"
#include "export/read/facts/selftime.h"
#include "export/read/kineto/kineto_facts.h"

enum { LINES_SHOWN = 3, ACK_FROM_NS = 38000000, ACK_TO_NS = 52000000 };
#define LINE_SHARE 0.1 /* of the kind: what has less is not listed */
#define NEARLY_ALL 0.9

struct waitcall_walk {
    struct kp_waitcalls *out;
    bool *has_ops;  /* by node: ops run under it */
    bool *is_input; /* by node: it prepares input, or lies in what does; that has a finding of its own */
    bool *is_step;  /* by node: it lies in a call that is a step; NULL: steps are no calls */
};

static const char *name_of(const struct kp_costrules *x, int32_t node)
{
    return kp_kineto_text(x->tree->trace, kp_tree_call_name(x->tree, &x->tree->nodes[node]));
}

const char *kp_waits_function(const struct kp_costrules *x)
{
    const char *const source = kp_kineto_fact(x->tree->trace, "kprof.step_source"), *const rule = kp_kineto_fact(
                                                                                        x->tree->trace, "kprof.step");
    if (!source || !rule || strcmp(source, "call") != 0 || strncmp(rule, "call:", 5) != 0) return NULL;
    const char *name = strrchr(rule, ':') + 1, *const last = strrchr(name, '.');
    return last ? last + 1 : name;
}

/* By node: it lies in a call of the function whose calls are the steps. NULL: steps are no calls. Parents first. */
static bool *steps_mark(const struct kp_costrules *x)
{
    const char *const function = kp_waits_function(x);
    bool *const is = function ? kp_kineto_zeros(x->tree->count + 1, sizeof *is) : NULL;
    for (size_t i = 0; is && i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        const char *const colon = node->is_python ? strstr(name_of(x, (int32_t)i), "): ") : NULL;
        is[i] = (node->parent >= 0 && is[node->parent]) ||
                (colon && fnmatch(function, kp_framename_bare(colon + 3), 0) == 0);
    }
    return is;
}

/* Parents come first. */
static bool *ops_mark(const struct kp_costrules *x)
{
    const struct kp_tree *const tree = x->tree;
    bool *const has = kp_kineto_zeros(tree->count + 1, sizeof *has);
    for (size_t i = 0; i < tree->count; i++) {
        if (!kp_costrules_is_op(x, i)) continue;
        for (int32_t at = tree->nodes[i].parent; at >= 0 && !has[at]; at = tree->nodes[at].parent) has[at] = true;
    }
    return has;
}

static bool *input_mark(const struct kp_costrules *x)
{
    bool *const is = kp_kineto_zeros(x->tree->count + 1, sizeof *is);
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        is[i] = node->is_python && ((node->parent >= 0 && is[node->parent]) || kp_rules_is_input(x, i));
    }
    return is;
}

/*
 * The wait of a piece of the innermost call: decided by the outermost call below the program's own that a table names.
 * A file that reads a socket (makefile()) waits for the socket.
 */
static bool place_find(struct waitcall_walk *w, const struct kp_costrules *x, int32_t node, struct kp_waitplace *out)
{
    struct kp_kineto *const trace = x->tree->trace;
    const bool is_c = name_of(x, node)[0] == '<' && !w->has_ops[node];
    int32_t named = is_c ? node : -1;
    *out = (struct kp_waitplace){0};
    for (int32_t at = node; at >= 0 && x->tree->nodes[at].is_python; at = x->tree->nodes[at].parent) {
        const uint32_t own = kp_ownline_function(trace, kp_tree_call_name(x->tree, &x->tree->nodes[at]));
        if (own && at == node) *out = (struct kp_waitplace){own, own, KP_PYWAIT_OWN, 0, 0};
        if (own) break;
        const enum kp_pywait kind = kp_namefacts_pywait(trace, kp_tree_event(x->tree, (size_t)at)->name);
        if (kind == KP_PYWAIT_NONE || (kind == KP_PYWAIT_FILE && out->kind == KP_PYWAIT_NETWORK)) continue;
        out->kind = kind;
        named = at;
    }
    if (named < 0) return out->kind == KP_PYWAIT_OWN;
    out->call = kp_tree_call_name(x->tree, &x->tree->nodes[named]);
    out->line = kp_ownline_of(trace, kp_tree_event(x->tree, (size_t)named)->stack);
    return true;
}

static void piece_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct waitcall_walk *const w = context;
    const struct kp_costrules *const x = w->out->x;
    const struct kp_step *const steps = x->chosen->steps;
    const size_t first = kp_step_after(steps, x->chosen->step_count, from_ns);
    struct kp_waitplace place;
    if (kp_tree_event(x->tree, node)->kind != KP_KINETO_PYTHON || !kp_costrules_is_of_thread(x, node)) return;
    if (first == x->chosen->step_count || steps[first].start_ns >= to_ns) return;
    if (x->loaders[node] >= 0 || w->is_input[node] || !place_find(w, x, (int32_t)node, &place)) return;
    if (w->is_step && !w->is_step[node]) {
        w->out->between_ns += (double)kp_spans_between(&x->chosen->in_steps, from_ns, to_ns);
        return;
    }
    double all = 0;
    for (size_t i = first; i < x->chosen->step_count && steps[i].start_ns < to_ns; i++) {
        const struct kp_step *const s = &steps[i];
        const int64_t from = from_ns > s->start_ns ? from_ns : s->start_ns, to = to_ns < s->end_ns ? to_ns : s->end_ns;
        *kp_keyindex_sum(&w->out->steps, (uint64_t)i << 8 | (uint64_t)place.kind) += (double)(to - from);
        all += (double)(to - from);
    }
    struct kp_waitplace *const row =
        kp_keyindex_row(&w->out->places, (uint64_t)place.line << 32 | place.call, &place, sizeof place);
    row->ns += all;
    if (to_ns - from_ns >= ACK_FROM_NS && to_ns - from_ns <= ACK_TO_NS) row->ack_ns += all;
}

void kp_waitcalls_find(struct kp_waitcalls *out, const struct kp_costrules *x)
{
    struct waitcall_walk w = {.out = out};
    *out = (struct kp_waitcalls){.x = x};
    if (!x->has_thread) return;
    w.has_ops = ops_mark(x);
    w.is_input = input_mark(x);
    w.is_step = steps_mark(x);
    kp_selftime_each_call(x->tree, piece_take, &w);
    free(w.has_ops);
    free(w.is_input);
    free(w.is_step);
}

void kp_waitcalls_fini(struct kp_waitcalls *c)
{
    kp_keyindex_fini(&c->places);
    kp_keyindex_fini(&c->steps);
}

/* Among functions that no table names, only the one with most waits: the others compute. */
static const struct kp_waitplace *most_of(const struct kp_waitcalls *c, int kind)
{
    const struct kp_waitplace *const of = c->places.rows, *most = NULL;
    for (size_t i = 0; i < c->places.count; i++)
        if (of[i].kind == kind && (!most || of[i].ns > most->ns)) most = &of[i];
    return most;
}

double kp_waitcalls_ns(const struct kp_waitcalls *c, int kind)
{
    const struct kp_waitplace *const of = c->places.rows, *const most = most_of(c, kind);
    const bool is_sum = kind != KP_PYWAIT_NONE && kind != KP_PYWAIT_OWN;
    double ns = is_sum || !most ? 0 : most->ns;
    for (size_t i = 0; is_sum && i < c->places.count; i++) ns += of[i].kind == kind ? of[i].ns : 0;
    return ns / (double)c->x->out->steps;
}

void kp_waitcalls_steps(const struct kp_waitcalls *c, int kind, double *of)
{
    const double *const ns = c->steps.rows;
    for (size_t i = 0; i < c->steps.count; i++)
        if ((c->steps.keys[i] & 255) == (uint64_t)kind) of[c->steps.keys[i] >> 8] += ns[i];
}

KP_ORDER_DOWN(most_first, struct kp_waitplace, ns)

const struct kp_waitplace *kp_waitcalls_lines(const struct kp_waitcalls *c, const struct kp_kineto *trace, int kind,
                                              char *out, size_t bytes)
{
    const struct kp_waitplace *const most = most_of(c, kind);
    const double steps = (double)c->x->out->steps, all = kp_waitcalls_ns(c, kind) * steps;
    struct kp_frametext shown = {0};
    struct kp_waitplace *const of = kp_kineto_room(c->places.count + 1, sizeof *of);
    size_t count = 0, used = 0;
    for (size_t i = 0; i < c->places.count; i++) {
        const struct kp_waitplace *const place = (const struct kp_waitplace *)c->places.rows + i;
        if (place->kind == kind) of[count++] = *place;
    }
    if (count) qsort(of, count, sizeof *of, most_first);
    out[0] = 0;
    if (most && most->ns >= NEARLY_ALL * all) count = 0;
    for (size_t i = 0; i < count && i < LINES_SHOWN && used < bytes && of[i].ns >= LINE_SHARE * of[0].ns; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%.3g ms per step in %s%s%s", i ? ", " : "",
                                 of[i].ns / 1e6 / steps, kp_framename_shown(&shown, kp_kineto_text(trace, of[i].call)),
                                 of[i].line ? " at " : "", kp_kineto_text(trace, of[i].line));
    kp_frametext_fini(&shown);
    free(of);
    return most;
}

/* ---- who fills the queue ---- */

struct waitcall_feeding {
    const struct kp_costrules *x;
    int64_t tid;             /* of a thread that puts into a queue */
    const char *put_line;    /* its own line that does */
    struct kp_keyindex keys; /* line << 8 | kind; rows: ns */
    double ns, queue_ns;     /* of that thread, in steps; of it in queues */
};

/* Finds the next thread beside the one of the steps that puts into a queue, from event `*at` on. */
static bool feeder_find(struct waitcall_feeding *f, struct kp_keyindex *known, size_t *at)
{
    struct kp_kineto *const trace = f->x->tree->trace;
    for (; *at < f->x->tree->count; ++*at) {
        const struct kp_kineto_event *const e = kp_tree_event(f->x->tree, *at);
        if (e->kind != KP_KINETO_PYTHON || e->tid == f->x->thread.tid || e->pid != f->x->thread.pid) continue;
        const char *const name = name_of(f->x, (int32_t)*at);
        const size_t length = strlen(name), threads = known->count;
        const bool puts = (length > 5 && strcmp(name + length - 5, ": put") == 0) || strstr(name, "method put of ");
        if (!puts || (*name != '<' && kp_pywait_of(name) != KP_PYWAIT_QUEUE)) continue;
        const uint32_t line = kp_ownline_of(trace, e->stack);
        if (!line || kp_keyindex_get(known, (uint64_t)e->tid) < threads) continue;
        f->tid = e->tid;
        f->put_line = kp_kineto_text(trace, line);
        return true;
    }
    return false;
}

static void feeder_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct waitcall_feeding *const f = context;
    struct kp_kineto *const trace = f->x->tree->trace;
    const struct kp_kineto_event *const e = kp_tree_event(f->x->tree, node);
    if (e->tid != f->tid || e->pid != f->x->thread.pid) return;
    const double ns = (double)kp_spans_between(&f->x->chosen->in_steps, from_ns, to_ns);
    enum kp_pywait kind = KP_PYWAIT_NONE;
    uint32_t line = 0;
    for (int32_t at = (int32_t)node; at >= 0; at = f->x->tree->nodes[at].parent) {
        const enum kp_pywait of = kp_namefacts_pywait(trace, kp_tree_event(f->x->tree, (size_t)at)->name);
        const uint32_t own = kp_ownline_function(trace, kp_tree_call_name(f->x->tree, &f->x->tree->nodes[at]));
        if (!line) line = own ? own : kp_ownline_of(trace, kp_tree_event(f->x->tree, (size_t)at)->stack);
        if (own) break;
        if (of != KP_PYWAIT_NONE) kind = of; /* a queue's lock is the queue */
    }
    f->ns += ns;
    if (kind == KP_PYWAIT_QUEUE) f->queue_ns += ns;
    if (!line || kind == KP_PYWAIT_QUEUE) return;
    *kp_keyindex_sum(&f->keys, (uint64_t)line << 8 | (uint64_t)kind) += ns;
}

#define FOR_THIS 0.8 /* of its time */

/* The place at which that thread spends most of its other time; NULL: it has none. */
static const char *feeder_text(const struct waitcall_feeding *f, bool *is_for_this)
{
    static const char *const does[KP_PYWAIT_KINDS] = {"runs",
                                                      "sleeps at",
                                                      "waits for a queue at",
                                                      "waits for another thread at",
                                                      "waits for a network at",
                                                      "waits for a result at",
                                                      "reads or writes files at",
                                                      "waits for other ranks at"};
    const double *const ns = f->keys.rows;
    const size_t most = kp_keyindex_most(&f->keys);
    if (!f->keys.count || f->ns <= 0) return NULL;
    const unsigned kind = f->keys.keys[most] & 255;
    *is_for_this = kind == KP_PYWAIT_PROCESS && ns[most] > FOR_THIS * f->ns;
    return kp_costrules_text(f->x, "a thread fills it at %s, and %s %s for %.0f %% of its time", f->put_line,
                             does[kind], kp_kineto_text(f->x->tree->trace, (uint32_t)(f->keys.keys[most] >> 8)),
                             100 * ns[most] / f->ns);
}

/* Among threads that fill one another's queues, the one that waits least for them keeps the others. */
const char *kp_waitcalls_feeder(const struct kp_costrules *x, bool *is_for_this)
{
    struct waitcall_feeding f = {.x = x};
    struct kp_keyindex known = {0};
    const char *text = NULL;
    double most = 0;
    *is_for_this = false;
    for (size_t at = 0; x->has_thread && feeder_find(&f, &known, &at);) {
        f.ns = f.queue_ns = 0;
        kp_selftime_each(x->tree, feeder_take, &f);
        if (f.ns - f.queue_ns > most) text = feeder_text(&f, is_for_this), most = f.ns - f.queue_ns;
        kp_keyindex_fini(&f.keys);
        f.keys = (struct kp_keyindex){0};
    }
    kp_keyindex_fini(&known);
    return text;
}

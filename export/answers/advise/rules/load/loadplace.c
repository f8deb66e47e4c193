// SPDX-License-Identifier: Apache-2.0
/*
 * loadplace.c - which line of the program the loading of data spends its time in, and what to change
 *
 * If Python's calls were recorded, that is the line that ran. With stacks of ops alone no line is known of the time in
 * no op: it is told by the ops before and behind it. In most loaders these are of the item before and of this one.
 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include <stdlib.h>

#include "export/answers/advise/rules/load/loadsavings.h"
#include "export/answers/top/timeshares.h"
#include "export/read/facts/selftime.h"

struct loadplace {
    const struct kp_tree *tree;
    const struct kp_chosen *chosen;
    const int32_t *loaders;
    struct kp_keyindex keys; /* a line; or IN_NO_OP, and the lines before and behind; rows: ns */
    int32_t last_loader;
    uint32_t loader_line, last_line;         /* of what asks the loader; of the last op in it */
    int64_t gap_ns;                          /* in no op since */
    int64_t in_calls_ns, waits_ns, reads_ns; /* of Python's calls: all, those that wait, those that read files */
    struct kp_spans times;                   /* in the loader */
};

#define IN_NO_OP (UINT64_C(1) << 63)

static uint32_t line_of(struct loadplace *p, size_t i) { return kp_tree_line(p->tree, &p->tree->nodes[i]); }

static void key_charge(struct loadplace *p, uint64_t key, int64_t ns)
{
    if (key && ns > 0) *kp_keyindex_sum(&p->keys, key) += (double)ns;
}

static void call_charge(struct loadplace *p, size_t node, int64_t ns)
{
    const char *const name = kp_kineto_text(p->tree->trace, p->tree->nodes[node].name);
    p->in_calls_ns += ns;
    if (kp_namefacts(p->tree->trace, p->tree->nodes[node].name) & KP_NAME_IDLE) p->waits_ns += ns;
    else if (kp_name_begins(name, "<built-in method read") || kp_name_begins(name, "<method 'read")) p->reads_ns += ns;
}

/* The caller of the loader is around all of it, and adds nothing. */
static void gap_end(struct loadplace *p, uint32_t behind)
{
    const uint64_t before = p->last_line == p->loader_line ? 0 : p->last_line;
    if (behind == p->loader_line) behind = 0;
    if (before || behind) key_charge(p, IN_NO_OP | before << 32 | behind, p->gap_ns);
    p->gap_ns = 0;
}

static void loader_begin(struct loadplace *p, int32_t loader)
{
    gap_end(p, 0);
    p->last_loader = loader;
    p->last_line = 0;
    p->loader_line = line_of(p, (size_t)loader);
}

static void time_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct loadplace *p = context;
    const int32_t loader = p->loaders[node];
    if (loader < 0) return;
    if (loader != p->last_loader) loader_begin(p, loader);
    kp_spans_add(&p->times, from_ns, to_ns);
    const uint32_t line = loader == (int32_t)node ? 0 : line_of(p, node);
    const int64_t ns = kp_spans_between(&p->chosen->in_steps, from_ns, to_ns);
    if (loader == (int32_t)node) p->gap_ns += ns;
    if (line) {
        gap_end(p, line);
        p->last_line = line;
        key_charge(p, line, ns);
    }
    if (p->tree->nodes[node].is_python && ns > 0) call_charge(p, node, ns);
}

/* No line is known of it, but those around. */
static bool is_between(const struct kp_finding *f) { return f->after || f->until; }

/* ---- what to change ---- */

#define COMPUTES_SHARE 0.05 /* of loading that waits, at most: its items compute */
#define NOTHING_SHARE 0.05  /* of a step: workers save no more */
#define RECORD_CALLS "kprof run --with-stack 1 --schedule 10-30, then kprof advise."

/* Python's calls tell what of the loading waits. If they lack it is no more than the time that the thread of the steps
 * slept. */
static void waits_set(struct kp_loading *l, const struct kp_costrules *x, const struct loadplace *p, bool has_calls,
                      double taken_ns)
{
    const double asleep = kp_loadcore_asleep_ns(x);
    const double loading = (double)kp_spans_length(&p->times, &x->chosen->in_steps) - taken_ns;
    l->waits = 1;
    l->waits_known = has_calls;
    if (has_calls) l->waits = (double)(p->waits_ns + p->reads_ns) / (double)p->in_calls_ns;
    else if (asleep >= 0 && asleep < loading) l->waits = asleep / loading;
    l->waits_known |= l->waits < COMPUTES_SHARE;
}

/* The time of a step that loads: some may have nothing to load. It has no wait for a core in it, as far as such waits
 * are known. */
static struct kp_loading loading_of(const struct kp_costrules *x, const struct loadplace *p,
                                    const struct kp_loadcore *taken, const struct kp_finding *f)
{
    const double loads = taken->loading_steps ? (double)x->out->steps / (double)taken->loading_steps : 1;
    const bool has_calls = p->in_calls_ns && !is_between(f);
    struct kp_loading l = {.load_ns = f->step_ns * loads,
                           .step_ns = (f->share > 0 ? f->step_ns / f->share : 0) + f->step_ns * (loads - 1),
                           .core_waited = taken->load_ns > 0 ? 0 : kp_summary_core_waited(x->tree->trace),
                           .cores = (long)kp_costrules_fact(x, "kprof.cores"),
                           .has_gpu = x->out->has_gpu};
    waits_set(&l, x, p, has_calls, taken->load_ns * (double)x->out->steps);
    return l;
}

/* The facts about the items, and how to learn the rest. */
static const char *items_text(const struct kp_costrules *x, const struct loadplace *p, const struct kp_loading *l,
                              const struct kp_finding *f)
{
    const bool has_calls = p->in_calls_ns && !is_between(f), computes = l->waits < COMPUTES_SHARE;
    if (!has_calls && computes)
        return f->line && !is_between(f)
                   ? " Loading is computation: the main thread hardly sleeps."
                   : " Loading is computation: the main thread hardly sleeps. To see the line: " RECORD_CALLS;
    if (!has_calls)
        return is_between(f) ? " To see the line, and whether it waits or computes: " RECORD_CALLS
                             : " To see whether the items wait (disk, network, sleep) or compute: " RECORD_CALLS;
    if (computes) return " Loading is computation: calls that wait or read files take less than 5 % of it.";
    return KP_TEXT(" Loading waits for %.0f %% (sleep, network, lock) and reads files for %.0f %%; the rest computes.",
                   100 * (double)p->waits_ns / (double)p->in_calls_ns,
                   100 * (double)p->reads_ns / (double)p->in_calls_ns);
}

/* The cores were not this program's alone. */
static const char *busy_text(const struct kp_costrules *x, const struct kp_loading *l)
{
    if (!kp_costrules_is_crowded(x) || (l->waits_known && l->waits >= 1 - COMPUTES_SHARE)) return "";
    if (!(l->core_waited > 0))
        return " The cores were busy (see the note). These times do not include waits for a core, and workers that "
               "compute need a core as well.";
    return KP_TEXT(" The cores were busy (see the note). On a free core loading would take about %.1f ms, "
                   "and workers that compute need a core as well.",
                   l->load_ns * (l->waits + (1 - l->waits) * (1 - l->core_waited)) / 1e6);
}

/* "; most of it is LINE"; "": no line is known. */
static const char *most_text(const struct kp_costrules *x, const struct kp_finding *f)
{
    return f->line && !is_between(f) ? KP_TEXT("; most of it is %s", f->line) : "";
}

static const char *cheaper_text(const struct kp_costrules *x, const struct kp_loading *l, const struct kp_finding *f)
{
    return KP_TEXT("cache them, vectorize their work, or read fewer, larger files%s. That saves up to %.1f ms a step",
                   most_text(x, f), l->load_ns / 1e6);
}

/* A worker would cost about what it saves, or has no core. */
static const char *change_of_cheaper(const struct kp_costrules *x, const struct kp_loading *l, const char *items,
                                     const struct kp_finding *f)
{
    const double saves_ms = f->saves_ns / 1e6;
    const char *const cheaper = cheaper_text(x, l, f);
    if (kp_loading_size_of(l) == KP_LOADING_SHORT)
        return KP_TEXT("Make items cheaper first: %s. Workers would save at most %.1f ms. Taking a batch from "
                       "a worker costs 1 to 3 ms.%s%s",
                       cheaper, saves_ms, items, busy_text(x, l));
    if (kp_loading_size_of(l) == KP_LOADING_MIDDLE)
        return KP_TEXT(
            "Make items cheaper first: %s. One worker (num_workers=1, persistent_workers=True) saves at most %.1f ms. "
            "Taking a batch from it costs 1 to 3 ms. Keep it only if steps are measurably shorter.%s%s",
            cheaper, saves_ms, items, busy_text(x, l));
    return KP_TEXT(
        "Make items cheaper: %s. Workers save at most %.1f ms: the items and the training already fill the %s.%s",
        cheaper, saves_ms, l->cores == 1 ? "core" : "cores", items);
}

/* torch itself warns of more workers than cores. */
static const char *start_text(const struct kp_costrules *x, const struct kp_loading *l, long workers)
{
    if (workers <= l->cores) return "";
    return KP_TEXT(" More workers than the %ld core%s help because the items wait, despite torch's warning. "
                   "Each takes 0.1 s to start, or seconds if it imports torch (spawn, forkserver).",
                   l->cores, l->cores == 1 ? "" : "s");
}

static const char *change_of(const struct kp_costrules *x, const struct kp_loading *l, const char *items,
                             struct kp_finding *f)
{
    const enum kp_loading_size size = kp_loading_size_of(l);
    const long workers = kp_loading_workers(l);
    const double saves_ns = kp_loading_saves_ns(l, workers);
    const bool is_cheaper = size != KP_LOADING_LONG || saves_ns < NOTHING_SHARE * l->step_ns;
    f->saves_ns = is_cheaper ? kp_loading_saves_ns(l, 0) : saves_ns;
    f->workers = !is_cheaper ? workers : size == KP_LOADING_MIDDLE;
    if (is_cheaper) return change_of_cheaper(x, l, items, f);
    return KP_TEXT("Let workers load: DataLoader(..., num_workers=%s, persistent_workers=True). That saves "
                   "at most %.1f ms a step%s.%s Cheaper items (__getitem__) save up to %.1f ms%s.%s%s",
                   workers ? KP_TEXT("%ld", workers) : "N", saves_ns / 1e6,
                   kp_loading_saves_ns(l, 0) < 0.9 * l->load_ns ? KP_TEXT(", on %ld cores", l->cores) : "",
                   start_text(x, l, workers), l->load_ns / 1e6, most_text(x, f), items, busy_text(x, l));
}

/* The place of most of the loading. */
static void place_tell(const struct loadplace *p, struct kp_finding *out)
{
    const struct kp_kineto *const trace = p->tree->trace;
    if (!p->keys.count) return;
    const uint64_t key = p->keys.keys[kp_keyindex_most(&p->keys)];
    const uint32_t before = (uint32_t)((key & ~IN_NO_OP) >> 32), line = (uint32_t)key;
    const char *const text = line ? kp_kineto_text(trace, line) : NULL;
    out->also_line = NULL;
    out->after = before ? kp_kineto_text(trace, before) : NULL;
    if (key & IN_NO_OP) out->until = text;
    else out->line = text;
}

void kp_loadplace_tell(const struct kp_costrules *x, const struct kp_loadcore *taken, struct kp_finding *out)
{
    struct loadplace p = {.tree = x->tree, .chosen = x->chosen, .loaders = x->loaders, .last_loader = -1};
    kp_selftime_each(x->tree, time_take, &p);
    gap_end(&p, 0);
    kp_spans_settle(&p.times);
    place_tell(&p, out);
    const struct kp_loading l = loading_of(x, &p, taken, out);
    if (kp_loading_size_of(&l) == KP_LOADING_SHORT) out->is_critical = false;
    out->change = KP_TEXT("%s%s", kp_loadunpack_text(x), change_of(x, &l, items_text(x, &p, &l, out), out));
    kp_spans_fini(&p.times);
    kp_keyindex_fini(&p.keys);
}

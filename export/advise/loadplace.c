// SPDX-License-Identifier: Apache-2.0
/*
 * loadplace.c - which line of the program the loading of data spends its time in
 *
 * Where Python's calls were recorded, that is the line that ran. With stacks of ops alone no line is known of the time
 * in no op: it is told as after the op before it, as other idle time is.
 */
#include "export/advise/loadwaits.h"

#include <stdlib.h>

#include "export/report/ownline.h"
#include "export/report/selftime.h"
#include "export/report/toprows.h"

struct loadplace {
    const struct kp_tree *tree;
    const struct kp_chosen *chosen;
    const int32_t *loaders;
    struct kp_ownlines lines;
    struct kp_keyindex keys; /* line << 1, and 1: after it */
    int64_t *ns;             /* by number in `keys` */
    size_t capacity;
    uint64_t *key_of;
    size_t key_capacity;
    uint32_t last_line; /* of the last op in the loader */
    int32_t last_loader;
    int64_t in_calls_ns, waits_ns, reads_ns; /* of Python's calls: all, those that wait, those that read files */
};

static uint32_t line_of(struct loadplace *p, size_t i)
{
    struct kp_kineto *trace = p->tree->trace;
    const struct kp_node *node = &p->tree->nodes[i];
    const uint32_t function = node->is_python ? kp_ownline_function(&p->lines, trace, node->name) : 0;
    return function ? function : kp_ownline_of(&p->lines, trace, kp_tree_event(p->tree, i)->stack);
}

static void line_charge(struct loadplace *p, uint32_t line, bool is_after, int64_t ns)
{
    const uint64_t key = (uint64_t)line << 1 | is_after;
    const size_t had = p->keys.count, at = kp_keyindex_get(&p->keys, key);
    if (at == had) {
        p->ns = kp_kineto_grow(p->ns, &p->capacity, had + 1, sizeof *p->ns);
        p->key_of = kp_kineto_grow(p->key_of, &p->key_capacity, had + 1, sizeof *p->key_of);
        p->ns[at] = 0;
        p->key_of[at] = key;
    }
    p->ns[at] += ns;
}

static bool is_read(const char *name)
{
    return strncmp(name, "<built-in method read", 21) == 0 || strncmp(name, "<method 'read", 13) == 0;
}

static void call_charge(struct loadplace *p, size_t node, int64_t ns)
{
    const char *const name = kp_kineto_text(p->tree->trace, p->tree->nodes[node].name);
    p->in_calls_ns += ns;
    if (kp_top_is_wait(name)) p->waits_ns += ns;
    else if (is_read(name)) p->reads_ns += ns;
}

static void time_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct loadplace *p = context;
    const int32_t loader = p->loaders[node];
    if (loader < 0) return;
    if (loader != p->last_loader) p->last_line = 0;
    p->last_loader = loader;
    const bool is_loader = loader == (int32_t)node;
    const uint32_t line = is_loader ? p->last_line : line_of(p, node);
    const int64_t ns = kp_spans_between(&p->chosen->in_steps, from_ns, to_ns);
    if (!is_loader && line) p->last_line = line;
    if (line && ns > 0) line_charge(p, line, is_loader, ns);
    if (p->tree->nodes[node].is_python && ns > 0) call_charge(p, node, ns);
}

#define LET_LOAD "Let workers load: DataLoader(..., num_workers=N, persistent_workers=True). "
#define MAKE_CHEAPER                                                                                                   \
    "Make items cheaper first: cache them, vectorize their work, or read fewer, larger files. To take a batch from a " \
    "worker costs about 1 to 3 ms, as much as it would save here."

static const char *change_of_short(const struct kp_costrules *x, const struct loadplace *p, const char *after)
{
    const double all = (double)p->in_calls_ns / 100;
    if (after || !p->in_calls_ns)
        return MAKE_CHEAPER " The line that takes it: kprof run --with-stack 1 --schedule 10-30, then kprof advise.";
    if (p->waits_ns + p->reads_ns < p->in_calls_ns / 20) return MAKE_CHEAPER;
    return kp_costrules_text(x,
                             MAKE_CHEAPER " Of the loading %.0f %% waits (sleep, network, lock), %.0f %% reads files, "
                                          "and the rest computes.",
                             (double)p->waits_ns / all, (double)p->reads_ns / all);
}

/* Items that wait leave the cores to more workers than there are cores. */
static const char *change_of(const struct kp_costrules *x, const struct loadplace *p, const char *after)
{
    const double all = (double)p->in_calls_ns / 100;
    if (after)
        return LET_LOAD "The line that takes it, and whether that waits or computes: kprof run --with-stack 1 "
                        "--schedule 10-30, then "
                        "kprof advise.";
    if (!p->in_calls_ns)
        return LET_LOAD
            "Whether its items wait (disk, network, sleep) or compute: kprof run --with-stack 1 --schedule 10-30, then "
            "kprof advise.";
    if (p->waits_ns + p->reads_ns < p->in_calls_ns / 20)
        return LET_LOAD "The items compute: calls that wait or read files take less than 5 % of it. So more workers "
                        "than cores do not help, a cheaper item does.";
    return kp_costrules_text(x,
                             LET_LOAD "Of the loading %.0f %% waits (sleep, network, lock), %.0f %% reads files, and "
                                      "the rest computes: what waits leaves its core to further workers.",
                             (double)p->waits_ns / all, (double)p->reads_ns / all);
}

void kp_loadplace_tell(const struct kp_costrules *x, struct kp_finding *out)
{
    struct loadplace p = {.tree = x->tree, .chosen = x->chosen, .loaders = x->loaders, .last_loader = -1};
    size_t best = 0;
    kp_selftime_each(x->tree, time_take, &p);
    for (size_t i = 1; i < p.keys.count; i++)
        if (p.ns[i] > p.ns[best]) best = i;
    if (p.keys.count) {
        const char *line = kp_kineto_text(x->tree->trace, (uint32_t)(p.key_of[best] >> 1));
        out->after = p.key_of[best] & 1 ? line : NULL;
        if (!out->after) out->line = line;
    }
    const bool is_short = kp_loadwaits_is_short(x, out); /* a worker would cost about what it saves */
    if (is_short) out->is_critical = false;
    out->change = is_short ? change_of_short(x, &p, out->after) : change_of(x, &p, out->after);
    kp_ownlines_fini(&p.lines);
    kp_keyindex_fini(&p.keys);
    free(p.ns);
    free(p.key_of);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * hostrules.c - what the host does in a step beside the model: compiling, collecting garbage, preparing its input
 *
 * With a GPU the first two cost the idle time that they cause (idlecause.c). If none do, they cost their own time: ops
 * inside of them are theirs. kp_rules_each_step asks the rules over ops, too (opsrules).
 */

#include <stdlib.h>

#include "export/answers/advise/opsrules/opsrules.h"
#include "export/answers/advise/rules/rules.h"
#include "export/read/facts/valuereads.h"
#include "export/show/units.h"

static const struct kp_cost_rule collecting = {0.05, 1u << KP_SPLIT_IDLE, KP_FINDING_GC,
                                               "the step waits for Python's garbage collector", KP_COLLECTING_CHANGE};
static const struct kp_cost_rule input = {
    0.10, 1u << KP_SPLIT_IDLE | 1u << KP_CAUSE(KP_IDLE_PYTHON) | 1u << KP_CAUSE(KP_IDLE_LAUNCH), KP_FINDING_INPUT,
    "the main thread prepares its input itself",
    "Let workers prepare it: move it into a Dataset, and DataLoader(dataset, num_workers=N, persistent_workers=True)."};

typedef bool (*node_is_fn)(const struct kp_costrules *x, size_t node);

/* ---- union of what a function accepts ---- */

static bool is_host(const struct kp_costrules *x, size_t i)
{
    return !x->tree->nodes[i].on_device && !x->tree->nodes[i].is_async;
}

/* How much of a time has no call of a DataLoader in that thread. No node before `first` begins in that time. */
static double beside_loaders(const struct kp_costrules *x, size_t first, int64_t tid, int64_t from_ns, int64_t to_ns)
{
    const struct kp_node *const nodes = x->tree->nodes;
    int64_t loading_ns = 0, until_ns = from_ns;
    for (size_t i = first; i < x->tree->count && nodes[i].start_ns < to_ns; i++) {
        const int64_t end_ns = nodes[i].end_ns < to_ns ? nodes[i].end_ns : to_ns;
        if (x->loaders[i] != (int32_t)i || end_ns <= until_ns || kp_tree_event(x->tree, i)->tid != tid) continue;
        loading_ns += end_ns - (nodes[i].start_ns > until_ns ? nodes[i].start_ns : until_ns);
        until_ns = end_ns;
    }
    return to_ns > from_ns ? 1 - (double)loading_ns / (double)(to_ns - from_ns) : 1;
}

/* Charges each step with the time in which some accepted node lasts, loaders in it left out. Nodes are by start. */
static void union_charge(struct kp_cost *cost, const struct kp_costrules *x, node_is_fn is)
{
    int64_t until = INT64_MIN;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (!is_host(x, i) || node->end_ns <= until || !is(x, i)) continue;
        const int64_t from = node->start_ns > until ? node->start_ns : until;
        kp_cost_add(cost, (int32_t)i, from, node->end_ns,
                    beside_loaders(x, i, kp_tree_event(x->tree, i)->tid, from, node->end_ns));
        until = node->end_ns;
    }
}

static bool is_collecting(const struct kp_costrules *x, size_t i)
{
    return kp_tree_event(x->tree, i)->kind == KP_KINETO_PYTHON && kp_node_is(x->tree, i, KP_NAME_COLLECTS);
}

/*
 * Tells what a GPU's idle time has of this cause, or without a GPU what `cost` was charged with. If that has no line it
 * is at the op that ends the idle time.
 */
static struct kp_finding *cause_tell(struct kp_cost *cost, struct kp_costrules *x, const struct kp_cost_rule *rule,
                                     enum kp_idle_cause cause)
{
    for (size_t i = 0; x->out->has_gpu && i < x->chosen->step_count; i++)
        if (cost->of[i] > 0) cost->of[i] = (double)x->splits[i].cause_ns[cause];
    struct kp_finding *told = kp_cost_tell(cost, rule);
    if (told && !told->line) kp_costplaces_tell(&x->places->causes[cause], x->tree->trace, told);
    return told;
}

void kp_rules_collecting(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    union_charge(&cost, x, is_collecting);
    kp_rules_collecting_explicit(cause_tell(&cost, x, &collecting, KP_IDLE_GC));
}

void kp_rules_collecting_explicit(struct kp_finding *told)
{
    if (told && told->where && strcmp(told->where, KP_NAME_GC_CALL) == 0)
        told->change = "The program calls gc.collect() there. Call it less often, or call gc.freeze() after start-up "
                       "to make each cheaper.";
}

void kp_rules_collecting_places(const struct kp_costrules *x, const double *of, struct kp_costplaces *places)
{
    for (size_t i = 0; i < x->tree->count; i++) {
        const size_t step = kp_costrules_step(x, i);
        if (step < x->chosen->step_count && of[step] > 0 && is_host(x, i) && is_collecting(x, i))
            kp_costplaces_add(places, x->tree, (int32_t)i, -1, kp_costrules_ns(x, i));
    }
}

static void collecting_unjudged(struct kp_costrules *x)
{
    bool has = kp_costrules_fact(x, "kprof.python_gc") != 0;
    for (size_t i = 0; i < x->tree->count && !has; i++) has = is_host(x, i) && is_collecting(x, i);
    if (!has) kp_costrules_unjudged(x, "garbage collection (kprof run --python-gc)");
}

/* ---- input ---- */

/* Does a function wait for a queue or a lock for half of its time or more? No worker makes that shorter. */
static bool is_waiting(const struct kp_tree *tree, size_t function)
{
    const struct kp_node *const nodes = tree->nodes, *const n = &nodes[function];
    int64_t waited = 0, until = INT64_MIN;
    for (size_t i = function + 1; i < tree->count && nodes[i].start_ns < n->end_ns; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        if (nodes[i].start_ns < until || e->tid != kp_tree_event(tree, function)->tid) continue;
        const enum kp_pywait kind = kp_namefacts_pywait(tree->trace, e->name);
        if (e->kind != KP_KINETO_PYTHON || (kind != KP_PYWAIT_QUEUE && kind != KP_PYWAIT_LOCK)) continue;
        waited += nodes[i].end_ns - nodes[i].start_ns;
        until = nodes[i].end_ns;
    }
    return 2 * waited >= n->end_ns - n->start_ns;
}

/* An op by its stack, a Python function by its own name. Input that another thread prepares is a worker's. */
bool kp_rules_is_input(const struct kp_costrules *x, size_t i)
{
    const struct kp_kineto_event *e = kp_tree_event(x->tree, i);
    if (x->loaders[i] >= 0 || kp_costrules_is_beside(x, i)) return false;
    if (e->kind == KP_KINETO_PYTHON) return kp_node_is(x->tree, i, KP_NAME_INPUT) && !is_waiting(x->tree, i);
    if (e->kind != KP_KINETO_OP || kp_node_is(x->tree, i, KP_NAME_RANGE) || x->tree->nodes[i].forward >= 0)
        return false;
    return kp_costrules_stack_facts(x, i) & KP_NAME_INPUT;
}

/* If stacks are those of ops alone, the time between two ops of the input is the input's as well, but for a
 * loader's. */
static void between_charge(struct kp_cost *cost, const struct kp_costrules *x)
{
    int64_t until = INT64_MIN, tid = 0;
    size_t last = 0;
    bool was_input = false;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(x->tree, i);
        const struct kp_node *node = &x->tree->nodes[i];
        if (e->kind == KP_KINETO_PYTHON && kp_rules_is_input(x, i)) return; /* the function itself was charged */
        if (e->kind != KP_KINETO_OP || !is_host(x, i) || node->end_ns <= until) continue;
        const bool is = kp_rules_is_input(x, i);
        if (is && was_input && e->tid == tid && node->start_ns > until)
            kp_cost_add(cost, (int32_t)i, until, node->start_ns, beside_loaders(x, last, tid, until, node->start_ns));
        was_input = is;
        last = i;
        until = node->end_ns;
        tid = e->tid;
    }
}

/* ---- input by what is done with it ---- */

enum launched_kind { LAUNCHED_NOTHING, LAUNCHED_INPUT, LAUNCHED_OTHER };

/* By node: what its thread launches next, from its begin on. A copy to the GPU is of input. The caller frees it. */
static char *next_launched(const struct kp_costrules *x)
{
    struct kp_keyindex threads = {0}; /* rows: what the thread launches next */
    char *next = kp_kineto_room(x->tree->count + 1, sizeof *next);
    memset(next, LAUNCHED_NOTHING, x->tree->count + 1);
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        const bool is_input = w->part == KP_SPLIT_COPIES && strstr(kp_costrules_name(x, w->node), "HtoD");
        if (w->call >= 0) next[w->call] = is_input ? LAUNCHED_INPUT : LAUNCHED_OTHER;
    }
    for (size_t i = x->tree->count; i-- > 0;) {
        if (!is_host(x, i)) continue;
        char *const last =
            kp_keyindex_row(&threads, (uint64_t)kp_tree_event(x->tree, i)->tid, &(char){LAUNCHED_NOTHING}, 1);
        if (next[i] != LAUNCHED_NOTHING) *last = next[i];
        next[i] = *last;
    }
    kp_keyindex_fini(&threads);
    return next;
}

/* A long op of the host, the outermost, that calls nothing of CUDA. */
static bool is_computing(const struct kp_costrules *x, size_t i)
{
    const struct kp_tree *tree = x->tree;
    const struct kp_node *node = &tree->nodes[i];
    if (!is_host(x, i) || node->end_ns - node->start_ns < KP_OP_COMPUTES_NS || !kp_costrules_is_op(x, i)) return false;
    if (kp_costplace_op(tree, (int32_t)i) != (int32_t)i || x->loaders[i] >= 0 || node->forward >= 0) return false;
    for (size_t k = i + 1; k < tree->count && tree->nodes[k].start_ns < node->end_ns; k++)
        if (kp_tree_event(tree, k)->kind == KP_KINETO_RUNTIME &&
            kp_tree_event(tree, k)->tid == kp_tree_event(tree, i)->tid)
            return false;
    return true;
}

/* Work of the host that is then copied to the GPU costs the time in which the GPU computes nothing. */
static void prepared_charge(struct kp_cost *cost, const struct kp_costrules *x)
{
    if (!x->out->has_gpu) return;
    char *next = next_launched(x);
    for (size_t i = 0; i < x->tree->count; i++) {
        const int64_t from = x->tree->nodes[i].start_ns, to = x->tree->nodes[i].end_ns;
        if (next[i] != LAUNCHED_INPUT || !is_computing(x, i) || kp_rules_is_input(x, i)) continue;
        kp_cost_add(cost, (int32_t)i, from, to, kp_cost_exposed(x, from, to));
    }
    free(next);
}

static void input_judge(struct kp_costrules *x)
{
    if (x->tree->trace->has_heap) return; /* tracing made it longer */
    struct kp_cost cost = kp_cost_open(x);
    const struct kp_kineto *trace = x->tree->trace;
    if (!trace->has_stacks && !trace->with_stack)
        kp_costrules_unjudged(x, "input prepared in the step's own thread (kprof run --with-stack ops)");
    union_charge(&cost, x, kp_rules_is_input);
    between_charge(&cost, x);
    prepared_charge(&cost, x);
    kp_cost_tell(&cost, &input);
}

/* ---- values that Python reads ---- */

/*
 * A read costs its own span. Ops behind a read belong to the loop of reads only if the next read follows after few,
 * short ops: very soon, or in most turns soon on the same line. Then a late turn waited for a core, and counts whole.
 */
#define READS_SHARE 0.5 /* of its time, before a function does little else than read */
#define REST_LEAST 1.1  /* times what the reads cost, before it is told */
#define SEEN_LEAST 0.5  /* reads a step: what are fewer would be told as 0.0 ms */
enum { NEAR_NS = 20000, LOOP_NS = 150000, LOOP_OPS = 6, LOOP_OP_NS = 50000, LATE_NS = 10000000 };

struct read_place {
    size_t turns, soon; /* to a next read on the same line; within LOOP_NS */
};
struct reads {
    const struct kp_costrules *x;
    struct kp_keyindex keys; /* kp_costplace_key; rows: struct read_place */
};

static struct read_place *place_of(struct reads *r, size_t node)
{
    const uint64_t key = kp_costplace_key(r->x->tree, (int32_t)node);
    return kp_keyindex_row(&r->keys, key, &(struct read_place){0}, sizeof(struct read_place));
}

static bool is_same_line(const struct kp_costrules *x, size_t a, size_t b)
{
    const struct kp_tree *tree = x->tree;
    return tree->nodes[a].stack && kp_costplace_key(tree, (int32_t)a) == kp_costplace_key(tree, (int32_t)b);
}

/* Texts of tensors, which read their values, have a finding of their own. */
static bool is_read(const struct kp_costrules *x, size_t node)
{
    const bool is_text =
        kp_costrules_find(x, KP_FINDING_TEXTS) && (kp_costrules_stack_facts(x, node) & KP_NAME_FORMATS);
    return !is_text && kp_valueread_is_own(x->tree, x->chosen, node);
}

/* Takes an element out of a tensor. */
static bool is_indexing(const char *op)
{
    return KP_NAME_IS(op, "aten::select", "aten::index", "aten::slice", "aten::unbind", "aten::narrow");
}

/* Computes nothing that a read of many values at once would have to compute, too. */
static bool is_looking(const char *op)
{
    return KP_NAME_IS(op, "aten::detach", "aten::alias", "aten::view", "aten::reshape", "aten::to", "aten::squeeze",
                      "aten::_to_copy", "aten::clone");
}

/*
 * The next read of the same thread and step, behind few and short ops; SIZE_MAX: none follows. Ops on an element (`if
 * y[i] > 5`) go with the loop. Ops on tensors of their own (the norm of each gradient) are to be computed all the same,
 * whether they are read one by one or at once.
 */
static size_t next_read(const struct kp_costrules *x, size_t i)
{
    const struct kp_node *nodes = x->tree->nodes;
    const int64_t tid = kp_tree_event(x->tree, i)->tid, most = nodes[i].end_ns + LATE_NS;
    int64_t until = nodes[i].end_ns;
    bool indexes = false, computes = false;
    int ops = 0;
    for (size_t k = i + 1; k < x->tree->count && nodes[k].start_ns < most; k++) {
        if (kp_tree_event(x->tree, k)->kind != KP_KINETO_OP || kp_tree_event(x->tree, k)->tid != tid) continue;
        if (!is_host(x, k) || nodes[k].start_ns < until) continue; /* inside of the last one */
        if (kp_valueread_is(x->tree, k))
            return kp_costrules_step(x, i) == kp_costrules_step(x, k) && (indexes || !computes) ? k : SIZE_MAX;
        const char *const name = kp_costrules_name(x, (int32_t)k);
        if (++ops > LOOP_OPS || kp_node_is(x->tree, k, KP_NAME_RANGE)) break;
        indexes |= is_indexing(name);
        computes |= !is_indexing(name) && !is_looking(name);
        if (nodes[k].end_ns - nodes[k].start_ns > LOOP_OP_NS && !is_same_line(x, i, k)) break;
        until = nodes[k].end_ns;
    }
    return SIZE_MAX;
}

/* The end of what a read costs: its own, or the begin of its loop's next turn. */
static int64_t read_until(struct reads *r, size_t i)
{
    const struct kp_node *nodes = r->x->tree->nodes;
    const size_t next = next_read(r->x, i);
    if (next == SIZE_MAX) return nodes[i].end_ns;
    const int64_t after = nodes[next].start_ns - nodes[i].end_ns;
    const struct read_place *const place = place_of(r, i);
    const bool is_loop = is_same_line(r->x, i, next) && 2 * place->soon >= place->turns;
    return after <= NEAR_NS || is_loop ? nodes[next].start_ns : nodes[i].end_ns;
}

static void turns_count(struct reads *r)
{
    const struct kp_node *nodes = r->x->tree->nodes;
    for (size_t i = 0; i < r->x->tree->count; i++) {
        if (!is_read(r->x, i)) continue;
        const size_t next = next_read(r->x, i);
        if (next == SIZE_MAX || !is_same_line(r->x, i, next)) continue;
        struct read_place *place = place_of(r, i);
        place->turns++;
        place->soon += nodes[next].start_ns - nodes[i].end_ns <= LOOP_NS;
    }
}

/* Charges each read with its op and the loop around it, and adds these times. Returns how many there are. */
static size_t reads_charge(struct kp_cost *cost, const struct kp_costrules *x, struct kp_spans *times)
{
    struct reads r = {.x = x};
    size_t count = 0;
    turns_count(&r);
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!is_read(x, i)) continue;
        const int64_t until = read_until(&r, i);
        kp_cost_add(cost, (int32_t)i, x->tree->nodes[i].start_ns, until, 1);
        kp_spans_add(times, x->tree->nodes[i].start_ns, until);
        count++;
    }
    kp_spans_settle(times);
    kp_keyindex_fini(&r.keys);
    return count;
}

/* On a GPU the wait is the cost, which idle by KP_IDLE_SYNC tells: here is which lines read. */
static void gpu_reads_see(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    struct kp_spans times = {0};
    const size_t steps = x->chosen->step_count, count = reads_charge(&cost, x, &times);
    kp_spans_fini(&times);
    if (count && count >= KP_VALUEREADS_LEAST * steps) {
        const char *const lines = kp_costplaces_lines(&cost.places, x->tree->trace, steps);
        x->out->seen = KP_TEXT(
            "%.0f calls of .item() and the like per step%s%s (on the GPU each waits until its tensor is computed)",
            (double)count / (double)steps, *lines ? ", with the loop around them at " : "", lines);
    }
    kp_cost_drop(&cost);
}

/*
 * If the function of most reads does little else, all of it is charged: a function that reads all at once has no loop.
 * Adds its time to those of the reads. Returns its line, or NULL.
 */
static const char *function_charge(struct kp_cost *cost, const struct kp_costrules *x, struct kp_spans *times)
{
    struct kp_finding most = {0};
    struct kp_spans function = {0};
    kp_costplaces_tell(&cost->places, x->tree->trace, &most);
    if (most.line) kp_readtimes_find(&function, x, most.line);
    const int64_t reads = kp_spans_length(times, &function), all = kp_spans_length(&function, &x->chosen->in_steps);
    const bool is_of_reads = function.count && (double)reads >= READS_SHARE * (double)all;
    if (is_of_reads) kp_spans_add_all(times, &function);
    kp_spans_settle(times);
    for (size_t i = 0; i < x->chosen->step_count && is_of_reads; i++)
        cost->of[i] = (double)kp_spans_between(times, x->chosen->steps[i].start_ns, x->chosen->steps[i].end_ns);
    kp_spans_fini(&function);
    return is_of_reads ? most.line : NULL;
}

/* The rest of the function, where it has a tenth of the reads at least. */
static const char *rest_text(const struct kp_costrules *x, const char *line, double reads_ns, double all_ns)
{
    const char *const name = line ? strchr(line, ' ') : NULL;
    if (!name || all_ns < REST_LEAST * reads_ns) return "";
    return KP_TEXT("; with all of%s, which does little else", name);
}

/* `line`: of the function that is charged as a whole, or NULL. False: it is no finding. */
static bool reads_tell(struct kp_costrules *x, struct kp_cost *cost, double each, double reads_ns, const char *line)
{
    const size_t steps = x->chosen->step_count;
    const char *const lines = kp_costplaces_lines(&cost->places, x->tree->trace, steps);
    const struct kp_cost_rule rule = {
        0.02, 1u << KP_SPLIT_IDLE, KP_FINDING_READS,
        KP_TEXT("Python reads %.0f values per step one by one (.item(), float(), if, print() of tensors); "
                "the cost includes the loop around them%s%s%s",
                each, *lines ? ", at " : "", lines, rest_text(x, line, reads_ns, kp_cost_mean(cost))),
        "Keep them as tensors and read all at once: torch.stack(values).tolist(). Log every N steps."};
    return kp_cost_tell_if(cost, &rule, each >= KP_VALUEREADS_LEAST);
}

/*
 * On a CPU .item() waits for nothing, but each call leaves and enters Python. Many in a step are told with their cost,
 * where they have one.
 */
static void reads_judge(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    struct kp_spans times = {0};
    const size_t steps = x->chosen->step_count, count = reads_charge(&cost, x, &times);
    const double each = (double)count / (double)steps, ns = kp_cost_mean(&cost);
    const char *const counts = kp_costplaces_counts(&cost.places, x->tree->trace, steps);
    const char *const function = each < KP_VALUEREADS_LEAST ? NULL : function_charge(&cost, x, &times);
    if (reads_tell(x, &cost, each, ns, function)) kp_readtimes_idle(&x->read_idle, x, &times);
    else if (each >= SEEN_LEAST)
        x->out->seen =
            KP_TEXT("%.3g call%s of .item() and the like per step, %s%s%s. On a GPU each would wait for the device",
                    each, each == 1 ? "" : "s", kp_units_ms(ns), *counts ? ": " : "", counts);
    kp_spans_fini(&times);
}

void kp_rules_host(struct kp_costrules *x)
{
    collecting_unjudged(x);
    kp_rules_threads(x);
}

void kp_rules_each_step(struct kp_costrules *x)
{
    kp_rules_anomaly(x);
    if (x->out->has_gpu) gpu_reads_see(x);
    else reads_judge(x);
    kp_rules_optimizer(x);
    input_judge(x);
    kp_rules_one_by_one(x);
    kp_rules_tensor_by_tensor(x);
    kp_rules_one_hot(x);
    kp_rules_functions(x);
    kp_rules_parametrized(x);
    kp_rules_small_ops(x);
    kp_rules_hooks(x);
}

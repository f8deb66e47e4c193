// SPDX-License-Identifier: Apache-2.0
/* costrules.c - adds up what a rule charges each step with, and tells it as a finding where the steps pass its bound */
#include "export/answers/advise/parts/costrules.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/top/timeshares.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/facts/steps/everynth.h"

const char *kp_costrules_name(const struct kp_costrules *x, int32_t node)
{
    return kp_kineto_text(x->tree->trace, kp_tree_event(x->tree, (size_t)node)->name);
}

bool kp_costrules_is_op(const struct kp_costrules *x, size_t node)
{
    const struct kp_node *const n = &x->tree->nodes[node];
    return kp_tree_event(x->tree, node)->kind == KP_KINETO_OP && !n->is_async && !n->on_device && !n->removed &&
           !kp_node_is(x->tree, node, KP_NAME_RANGE);
}

bool kp_costrules_is_outer(const struct kp_costrules *x, size_t node)
{
    return kp_costrules_is_op(x, node) && kp_costplace_op(x->tree, (int32_t)node) == (int32_t)node;
}

uint32_t kp_costrules_stack_facts(const struct kp_costrules *x, size_t node)
{
    return kp_namefacts(x->tree->trace, kp_tree_stack(x->tree, &x->tree->nodes[node]));
}

bool kp_costrules_is_of_thread(const struct kp_costrules *x, size_t node)
{
    const struct kp_kineto_event *const e = kp_tree_event(x->tree, node);
    return x->has_thread && e->tid == x->thread.tid && e->pid == x->thread.pid;
}

bool kp_costrules_is_beside(const struct kp_costrules *x, size_t node)
{
    return x->has_thread && !x->tree->nodes[node].on_device && !kp_costrules_is_of_thread(x, node);
}

bool kp_costrules_in_steps(const struct kp_costrules *x, size_t node)
{
    return kp_spans_has(&x->chosen->in_steps, x->tree->nodes[node].start_ns);
}

size_t kp_costrules_step(const struct kp_costrules *x, size_t node)
{
    return kp_step_at(x->chosen->steps, x->chosen->step_count, x->tree->nodes[node].start_ns);
}

int64_t kp_costrules_ns(const struct kp_costrules *x, size_t node)
{
    return x->tree->nodes[node].end_ns - x->tree->nodes[node].start_ns;
}

int32_t kp_costrules_place(const struct kp_device_work *work) { return work->call < 0 ? work->node : work->call; }

bool kp_costrules_is_launch(const struct kp_costrules *x, const struct kp_device_work *work)
{
    return work->call >= 0 && !strstr(kp_costrules_name(x, work->call), "GraphLaunch");
}

/* Parents come first. */
static void nodes_look(struct kp_costrules *x)
{
    x->loaders = kp_kineto_room(x->tree->count + 1, sizeof *x->loaders);
    x->has_backward = kp_kineto_zeros(x->tree->count + 1, sizeof *x->has_backward);
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t parent = x->tree->nodes[i].parent, forward = x->tree->nodes[i].forward;
        if (forward >= 0) x->has_backward[forward] = true;
        const bool is_loader = kp_node_is(x->tree, i, KP_NAME_LOADER);
        x->loaders[i] = is_loader ? (int32_t)i : parent < 0 ? -1 : x->loaders[parent];
    }
}

static void thread_look(struct kp_costrules *x)
{
    bool has_others = false;
    x->has_thread = kp_chosen_thread(&x->thread, x->tree);
    for (size_t i = 0; i < x->tree->count && !has_others; i++)
        has_others = kp_costrules_is_op(x, i) && kp_costrules_is_beside(x, i);
    for (size_t i = 0; i < x->tree->count && has_others; i++)
        if (kp_costrules_is_op(x, i) && !kp_costrules_is_beside(x, i))
            kp_spans_add(&x->thread_ops, x->tree->nodes[i].start_ns, x->tree->nodes[i].end_ns);
    kp_spans_settle(&x->thread_ops);
}

void kp_costrules_open(struct kp_costrules *x)
{
    const struct kp_tree *tree = x->tree;
    nodes_look(x);
    thread_look(x);
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (e->kind != KP_KINETO_GPU) continue;
        const enum kp_split_part part = kp_split_part_of_device(tree->trace, e);
        if (part == KP_SPLIT_IDLE) continue;
        *KP_KINETO_NEXT(x->works, x->work_count, x->work_capacity) = (struct kp_device_work){
            .start_ns = tree->nodes[i].start_ns,
            .end_ns = tree->nodes[i].end_ns,
            .said = kp_kineto_work_of(tree->trace, tree->nodes[i].event),
            .node = (int32_t)i,
            .call = tree->nodes[i].call,
            .part = part,
        };
    }
}

void kp_costrules_fini(struct kp_costrules *x)
{
    free(x->works);
    free(x->loaders);
    free(x->has_backward);
    free(x->trained);
    free(x->is_long);
    free(x->told);
    kp_spans_fini(&x->evaluated);
    kp_spans_fini(&x->read_idle);
    kp_spans_fini(&x->thread_ops);
}

const char *kp_costrules_text(const struct kp_costrules *x, const char *format, ...)
{
    char text[1536];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct kp_strings *strings = x->tree->trace->strings;
    return kp_strings_keep(strings, text);
}

const char *kp_costrules_share_of(const struct kp_costrules *x, const struct kp_finding_steps *of)
{
    const char *const step = of->is_steady ? "of an ordinary step" : "of a step";
    const char *const waits = of->has_waits ? " with waits for a CPU core" : "";
    const char *const others = x->out && x->out->evaluated_as ? x->out->evaluated_as : "evaluations";
    const char *const trained = of->is_trained ? KP_TEXT("%s and ", others) : "";
    if (of->core_ns > 0 && of->is_steady && of->mean_ns > 0) /* one listing has findings with waits and without */
        return kp_costrules_text(x, "%s's %.3g ms without %swaits for a CPU core (%.3g ms with them)", step,
                                 of->core_ns / 1e6, trained, of->mean_ns / 1e6);
    if (of->core_ns > 0)
        return kp_costrules_text(x, "%s of %.3g ms without %swaits for a CPU core", step, of->core_ns / 1e6, trained);
    if (!of->is_steady && !of->is_trained && !of->has_waits) return NULL;
    if (of->is_steady && of->mean_ns > 0 && !of->is_trained)
        return kp_costrules_text(x, "%s of %.3g ms%s", step, of->mean_ns / 1e6, waits);
    return kp_costrules_text(x, "%s%s%s%s%s", step, of->is_trained ? " without " : "", of->is_trained ? others : "",
                             of->is_trained && of->has_waits ? "," : "", waits);
}

long kp_costrules_each_nth(const struct kp_costrules *x, const size_t *at, size_t count)
{
    const struct kp_step *const steps = x->chosen->steps;
    long *const numbers = kp_kineto_room(count + 1, sizeof *numbers);
    for (size_t i = 0; i < count; i++) numbers[i] = steps[at[i]].number;
    const long nth =
        count ? kp_everynth_of(numbers, count, steps[0].number, steps[x->chosen->step_count - 1].number) : 0;
    free(numbers);
    return nth;
}

const char *kp_costrules_numbers(const struct kp_costrules *x, const size_t *at, size_t count, size_t most,
                                 const char *after)
{
    char text[KP_STEPS_TEXT_BYTES], each[40];
    long *const numbers = kp_kineto_room(count + 1, sizeof *numbers);
    for (size_t i = 0; i < count; i++) numbers[i] = x->chosen->steps[at[i]].number;
    kp_finding_steps_text(text, sizeof text, numbers, count, most);
    free(numbers);
    kp_everynth_text(each, sizeof each, kp_costrules_each_nth(x, at, count));
    return kp_costrules_text(x, "%s%s%s", text, each, *each ? after : "");
}

KP_ORDER_BY(longest_first, double)

struct kp_waited_steps kp_costrules_waited(const struct kp_costrules *x, size_t *at, size_t count, const double *ns)
{
    struct kp_waited_steps of = {.count = count};
    qsort_r(at, count, sizeof *at, longest_first, (void *)ns);
    for (size_t i = 0; i < count; i++) of.some.all_ns += ns[at[i]];
    if (!count) return of;
    of.longest = x->chosen->steps[at[0]].number;
    of.some.most_ns = ns[at[0]];
    of.some.least_ns = ns[at[count - 1]];
    return of;
}

bool kp_costrules_is_crowded(const struct kp_costrules *x)
{
    return kp_summary_is_crowded(x->tree->trace, x->out->step_ns * (double)x->out->steps);
}

bool kp_costrules_has_calls(const struct kp_costrules *x)
{
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_tree_event(x->tree, i)->kind == KP_KINETO_PYTHON &&
            strcmp(kp_costrules_name(x, (int32_t)i), KP_NAME_GC_RANGE) != 0) /* recorded without calls, too */
            return true;
    return false;
}

double kp_costrules_fact(const struct kp_costrules *x, const char *path)
{
    const char *text = kp_kineto_fact(x->tree->trace, path);
    return text ? strtod(text, NULL) : 0;
}

void kp_costrules_unjudged(struct kp_costrules *x, const char *what)
{
    if (x->out->unjudged_count < KP_UNJUDGED_MAX) x->out->unjudged[x->out->unjudged_count++] = what;
    x->unrecorded = x->unrecorded ? kp_costrules_text(x, "%s, %s", x->unrecorded, what) : what;
}

struct kp_cost kp_cost_open(struct kp_costrules *x)
{
    return (struct kp_cost){.x = x, .of = kp_kineto_zeros(x->chosen->step_count + 1, sizeof(double))};
}

/* How long a time that is charged lasts: all of it, or what of another thread's work the steps may wait for. */
static int64_t charged_ns(const struct kp_costrules *x, int32_t node, int64_t from_ns, int64_t to_ns)
{
    const bool is_beside = node >= 0 && !x->out->has_gpu && kp_costrules_is_beside(x, (size_t)node);
    return to_ns - from_ns - (is_beside ? kp_spans_between(&x->thread_ops, from_ns, to_ns) : 0);
}

void kp_cost_add(struct kp_cost *cost, int32_t node, int64_t start_ns, int64_t end_ns, double weight)
{
    const struct kp_chosen *chosen = cost->x->chosen;
    double all = 0;
    const size_t first = kp_step_after(chosen->steps, chosen->step_count, start_ns);
    for (size_t i = first; i < chosen->step_count && chosen->steps[i].start_ns < end_ns; i++) {
        const struct kp_step *s = &chosen->steps[i];
        const int64_t from = s->start_ns > start_ns ? s->start_ns : start_ns;
        const int64_t to = s->end_ns < end_ns ? s->end_ns : end_ns;
        const double ns = (double)charged_ns(cost->x, node, from, to) * weight;
        cost->of[i] += ns;
        all += ns;
    }
    kp_costplaces_add(&cost->places, cost->x->tree, node, -1, (int64_t)all);
}

void kp_cost_add_node(struct kp_cost *cost, size_t node, double weight)
{
    const struct kp_node *const n = &cost->x->tree->nodes[node];
    kp_cost_add(cost, (int32_t)node, n->start_ns, n->end_ns, weight);
}

void kp_cost_add_work(struct kp_cost *cost, const struct kp_device_work *work, double weight)
{
    kp_cost_add(cost, kp_costrules_place(work), work->start_ns, work->end_ns, weight);
}

void kp_costrules_spans(const struct kp_costrules *x, uint32_t facts, struct kp_spans *out)
{
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_node_is(x->tree, i, facts)) kp_spans_add(out, x->tree->nodes[i].start_ns, x->tree->nodes[i].end_ns);
    kp_spans_settle(out);
}

double kp_cost_exposed(const struct kp_costrules *x, int64_t start_ns, int64_t end_ns)
{
    if (!x->out->has_gpu || end_ns <= start_ns) return 1;
    const int64_t busy = kp_spans_between(&x->places->computed, start_ns, end_ns);
    return (double)(end_ns - start_ns - busy) / (double)(end_ns - start_ns);
}

struct kp_finding *kp_costrules_tell(struct kp_costrules *x, const struct kp_finding *finding)
{
    if (x->out->count == KP_FINDINGS_MAX) return NULL;
    x->out->findings[x->out->count] = *finding;
    return &x->out->findings[x->out->count++];
}

void kp_costrules_core(const struct kp_costrules *x, struct kp_finding *f)
{
    const double all_ns = x->out->step_ns;
    if (!f || x->core_waited_ns < KP_CORE_WAITED_MUCH * all_ns) return;
    f->of.core_ns = all_ns - x->core_waited_ns;
    f->share = f->step_ns / f->of.core_ns;
}

struct kp_finding *kp_costrules_find(const struct kp_costrules *x, const char *id)
{
    for (size_t i = 0; i < x->out->count; i++)
        if (strcmp(x->out->findings[i].id, id) == 0) return &x->out->findings[i];
    return NULL;
}

void kp_costrules_told(struct kp_costrules *x, const double *of)
{
    const size_t steps = x->chosen->step_count;
    if (!x->told) x->told = kp_kineto_zeros(steps + 1, sizeof *x->told);
    for (size_t i = 0; i < steps; i++) x->told[i] += of[i];
}

bool kp_costrules_is_told(const struct kp_costrules *x, const double *weights, double ns)
{
    double told = 0;
    for (size_t i = 0; x->told && i < x->chosen->step_count; i++) told += weights[i] * x->told[i];
    return ns > 0 && 2 * told >= ns;
}

/* A part is explained by a finding that is at least half of it. */
static uint32_t explained_by(const struct kp_costrules *x, const struct kp_cost_rule *rule, double ns)
{
    uint32_t bits = 0;
    for (int m = 0; m < KP_CAUSE(KP_IDLE_CAUSES); m++) {
        const double mean = m < KP_SPLIT_PARTS ? x->out->mean_ns[m] : x->out->cause_ns[m - KP_SPLIT_PARTS];
        if (rule->explains >> m & 1 && mean <= 2 * ns) bits |= 1u << m;
    }
    return bits;
}

struct kp_finding *kp_cost_drop(struct kp_cost *cost)
{
    kp_costplaces_fini(&cost->places);
    free(cost->charged);
    free(cost->of);
    return NULL;
}

double kp_cost_mean(const struct kp_cost *cost)
{
    double ns = 0;
    const size_t steps = cost->x->chosen->step_count;
    for (size_t i = 0; i < steps; i++) ns += cost->of[i] / (double)steps;
    return ns;
}

/* Threads that wait make all that computes longer. They are charged with that, and no other finding is. */
static void waits_leave_out(struct kp_cost *cost)
{
    const struct kp_costrules *const x = cost->x;
    const size_t steps = x->chosen->step_count;
    struct kp_sample of = {0};
    for (size_t i = 0; i < steps; i++)
        if (cost->of[i] > 0) kp_sample_add(&of, cost->of[i]);
    const double most = x->usual_times * kp_sample_end(&of, x->usual_share);
    for (size_t i = 0; i < steps; i++)
        if (cost->of[i] > most) cost->of[i] = most;
}

/* Is a node marked, or one that is around it? */
static bool is_marked(const struct kp_tree *tree, const uint8_t *marks, uint8_t mark, int32_t node)
{
    while (node >= 0 && marks[node] != mark) node = tree->nodes[node].parent;
    return node >= 0;
}

struct kp_finding *kp_cost_tell_marked(struct kp_costrules *x, const struct kp_cost_rule *rule, const uint8_t *marks,
                                       uint8_t mark)
{
    struct kp_cost cost = kp_cost_open(x);
    for (size_t i = 0; !x->out->has_gpu && i < x->tree->count; i++)
        if (marks[i] == mark && !is_marked(x->tree, marks, mark, x->tree->nodes[i].parent))
            kp_cost_add_node(&cost, i, 1);
    for (size_t i = 0; x->out->has_gpu && i < x->work_count; i++)
        if (is_marked(x->tree, marks, mark, x->works[i].call)) kp_cost_add_work(&cost, &x->works[i], 1);
    return kp_cost_tell(&cost, rule);
}

static void charged_set(struct kp_cost *cost, size_t node)
{
    if (!cost->charged) cost->charged = kp_kineto_zeros(cost->x->tree->count, sizeof *cost->charged);
    cost->charged[kp_costplace_op(cost->x->tree, (int32_t)node)] = true;
}

void kp_cost_add_forward(struct kp_cost *cost, size_t node)
{
    kp_cost_add_node(cost, node, 1);
    charged_set(cost, node);
}

size_t kp_cost_add_run(struct kp_cost *cost, size_t first, int64_t end_ns)
{
    const struct kp_costrules *const x = cost->x;
    const struct kp_node *const nodes = x->tree->nodes;
    const int64_t tid = kp_tree_event(x->tree, first)->tid;
    int64_t until = nodes[first].start_ns;
    size_t ops = 0;
    for (size_t i = first; i < x->tree->count && nodes[i].start_ns < end_ns; i++) {
        if (!kp_costrules_is_outer(x, i) || kp_tree_event(x->tree, i)->tid != tid) continue;
        kp_cost_add(cost, (int32_t)i, until, nodes[i].end_ns, 1);
        until = nodes[i].end_ns;
        charged_set(cost, i);
        ops++;
    }
    return ops;
}

/* Between two nodes on one thread the engine does its own work, of the second. Longer pauses are waits, or Python. */
static int64_t backward_begin(const struct kp_node *node, int64_t before_ns)
{
    return node->start_ns - before_ns < KP_OP_COMPUTES_NS ? before_ns : node->start_ns;
}

void kp_cost_add_backward(struct kp_cost *cost)
{
    const struct kp_tree *const tree = cost->x->tree;
    int64_t before_ns = INT64_MIN / 2, tid = 0; /* of the engine's last node */
    for (size_t i = 0; cost->charged && i < tree->count; i++) {
        const int32_t parent = tree->nodes[i].parent, forward = tree->nodes[i].forward;
        const struct kp_node *const engine = parent < 0 ? NULL : &tree->nodes[parent];
        if (!engine || !kp_node_is(tree, (size_t)parent, KP_NAME_ENGINE)) continue;
        if (forward >= 0 && cost->charged[kp_costplace_op(tree, forward)])
            kp_cost_add(cost, (int32_t)i,
                        backward_begin(engine, tid == kp_tree_event(tree, i)->tid ? before_ns : INT64_MIN / 2),
                        engine->end_ns, 1);
        before_ns = engine->end_ns;
        tid = kp_tree_event(tree, i)->tid;
    }
}

struct kp_finding *kp_cost_tell(struct kp_cost *cost, const struct kp_cost_rule *rule)
{
    struct kp_costrules *const x = cost->x;
    struct kp_finding f = {.id = rule->id, .what = rule->what, .change = rule->change}, *told = NULL;
    const size_t steps = x->chosen->step_count;
    double most = 0;
    if (x->usual_times > 0) waits_leave_out(cost);
    for (size_t i = 0; i < steps; i++) {
        if (cost->of[i] > most) most = cost->of[i], f.has_most_step = true, f.most_step = x->chosen->steps[i].number;
        f.step_ns += cost->of[i] / (double)steps;
        f.steps += cost->of[i] > 0 && cost->of[i] >= rule->bound * (double)x->splits[i].step_ns;
    }
    f.share = x->out->step_ns > 0 ? f.step_ns / x->out->step_ns : 0;
    const double of_ns = cost->of_ns > 0 ? cost->of_ns : x->out->step_ns;
    if (f.steps >= (cost->least ? cost->least : KP_STEPS_LEAST) && f.step_ns >= rule->bound * of_ns) {
        f.is_critical = !(rule->explains & KP_RULE_MILD) && kp_advise_is_critical(&f, steps);
        kp_costplaces_tell(&cost->places, x->tree->trace, &f);
        told = kp_costrules_tell(x, &f);
        x->explained |= explained_by(x, rule, f.step_ns);
        if (rule->explains & KP_RULE_TELLS_STEPS) kp_costrules_told(x, cost->of);
    }
    kp_cost_drop(cost);
    return told;
}

struct kp_finding *kp_cost_tell_if(struct kp_cost *cost, const struct kp_cost_rule *rule, bool is)
{
    return is ? kp_cost_tell(cost, rule) : kp_cost_drop(cost);
}

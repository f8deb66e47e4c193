// SPDX-License-Identifier: Apache-2.0
/*
 * onebyone.c - a loop of Python that computes small things one by one, where one call would compute all
 *
 * A run of it has reads of values, or takes elements out of a tensor, again and again, and between them computes the
 * same op, all in one function of the program. Ops that autograd follows are left out: there each turn may need the
 * last. For a CPU alone: on a GPU the same time is that of launches, or of waits.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/read/facts/valuereads.h"

enum { TURNS_LEAST = 16, TURN_OPS = 12, TURN_NS = 1000000, WAIT_NS = 50000000 };

struct loop_run {
    const char *function; /* a line of it, "train.py:12 norms"; NULL: no run is open */
    int64_t start_ns, end_ns, tid;
    int32_t first;
    size_t reads, taken, since; /* since: ops behind the last of these */
    size_t waits;               /* longer than a turn, while the machine has no core */
    struct kp_keyindex names;   /* of what is computed; rows: how often */
};
struct loops {
    struct kp_costrules *x;
    struct kp_cost cost;
    struct kp_spans times;
    struct loop_run run;
    bool is_crowded;
    size_t reads, taken, computed;
    uint32_t op; /* that the first run computes most */
    const char *function;
};

static bool takes_element(const char *op)
{
    return KP_NAME_IS(op, "aten::select", "aten::slice", "aten::index", "aten::narrow");
}

static bool computes(const char *op)
{
    return kp_name_begins(op, "aten::") && !takes_element(op) &&
           !KP_NAME_IS(op, "aten::detach", "aten::alias", "aten::view", "aten::reshape", "aten::to", "aten::squeeze",
                       "aten::unsqueeze", "aten::unbind", "aten::empty");
}

static void run_end(struct loops *l)
{
    struct loop_run *const run = &l->run;
    const size_t most = kp_keyindex_most(&run->names);
    const double computed = run->names.count ? *kp_keyindex_sum(&run->names, run->names.keys[most]) : 0;
    if (computed >= TURNS_LEAST && run->reads + run->taken >= TURNS_LEAST * (1 + run->waits) &&
        (!l->function || kp_gapplace_is_function(l->function, run->function))) {
        kp_cost_add(&l->cost, run->first, run->start_ns, run->end_ns, 1);
        kp_spans_add(&l->times, run->start_ns, run->end_ns);
        if (!l->function) l->op = (uint32_t)run->names.keys[most];
        l->function = run->function;
        l->reads += run->reads;
        l->taken += run->taken;
        l->computed += (size_t)computed;
    }
    kp_keyindex_fini(&run->names);
    *run = (struct loop_run){0};
}

/* The machine may have no core for the loop: a turn that waits for one is a turn of it. */
static bool is_pause(const struct loops *l, int64_t ns) { return ns > (l->is_crowded ? WAIT_NS : TURN_NS); }

static void op_take(struct loops *l, size_t i, const char *line)
{
    const struct kp_node *const node = &l->x->tree->nodes[i];
    const struct kp_kineto_event *const e = kp_tree_event(l->x->tree, i);
    const char *const name = kp_costrules_name(l->x, (int32_t)i);
    const bool reads = kp_valueread_is(l->x->tree, i), is_mark = reads || takes_element(name);
    struct loop_run *const run = &l->run;
    const int64_t since_ns = node->start_ns - run->end_ns;
    if (run->function && (run->tid != e->tid || !kp_gapplace_is_within(line, run->function) || is_pause(l, since_ns) ||
                          run->since >= TURN_OPS))
        run_end(l);
    if (!run->function && !is_mark) return;
    if (!run->function)
        *run = (struct loop_run){.function = line, .start_ns = node->start_ns, .tid = e->tid, .first = (int32_t)i};
    else run->waits += is_mark && since_ns > TURN_NS;
    if (!is_mark && computes(name)) ++*kp_keyindex_sum(&run->names, e->name);
    run->since = is_mark ? 0 : run->since + 1;
    if (is_mark) run->end_ns = node->end_ns;
    run->reads += reads;
    run->taken += is_mark && !reads;
}

/* Its begin is known: a loader, an optimizer and autograd's own are none of the program's. Nor are texts of tensors. */
static bool is_torchs(const struct kp_costrules *x, int32_t node)
{
    return kp_costrules_stack_facts(x, (size_t)node) & (KP_NAME_FORMATS | KP_NAME_DEEPCOPY) || x->loaders[node] >= 0 ||
           x->tree->nodes[node].forward >= 0 || kp_node_is_in(x->tree, node, KP_NAME_OPTIMIZER);
}

static void loops_find(struct loops *l)
{
    const struct kp_costrules *const x = l->x;
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!kp_costrules_is_outer(x, i)) continue;
        const uint32_t line = kp_costplace_line(x->tree, (int32_t)i);
        if (!kp_costrules_in_steps(x, i) || x->has_backward[i] || is_torchs(x, (int32_t)i)) run_end(l);
        else if (line) op_take(l, i, kp_kineto_text(x->tree->trace, line));
    }
    run_end(l);
    kp_spans_settle(&l->times);
}

static const char *change_of(const struct loops *l)
{
    const char *const op = kp_kineto_text(l->x->tree->trace, l->op);
    if (l->reads < l->taken)
        return "if no iteration needs the one before, compute all at once: tensors broadcast ((batch - mean) / std), "
               "torch.where chooses by element, torch.vmap applies a function to a batch.";
    if (strstr(op, "norm"))
        return "compute all norms at once, and read once: torch.stack(torch._foreach_norm(tensors)).tolist(); that of "
               "all together is torch.nn.utils.get_total_norm(tensors), from torch 2.6 on.";
    return "compute all at once, of torch.stack(tensors) or with torch._foreach_ functions, and read once: .tolist().";
}

/* Told already by another rule of the host. The loop is the other thing to change for input; reads that are less than
 * half of the loop are named with it alone. */
static bool is_told(const struct loops *l)
{
    static const char *const ids[] = {KP_FINDING_READS, KP_FINDING_INPUT};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct kp_finding *const f = kp_costrules_find(l->x, ids[i]);
        if (!f || !f->line || !kp_gapplace_is_within(f->line, l->function)) continue;
        if (i == 1) f->change = kp_costrules_text(l->x, "%s Its loop goes one by one: %s", f->change, change_of(l));
        if (i == 1 || 2 * f->step_ns >= kp_cost_mean(&l->cost)) return true;
        *f = l->x->out->findings[--l->x->out->count];
        return false;
    }
    return false;
}

static void loops_tell(struct loops *l)
{
    struct kp_costrules *const x = l->x;
    struct kp_cost_rule rule = {0.05, 0, "one-by-one", "", ""};
    const double steps = (double)x->chosen->step_count;
    const char *const name = strchr(l->function, ' ');
    rule.what = KP_TEXT("a loop in%s computes one by one: %.0f times %s per step, and %.0f times %s",
                        name ? name : " Python", (double)l->computed / steps, kp_kineto_text(x->tree->trace, l->op),
                        (double)(l->reads < l->taken ? l->taken : l->reads) / steps,
                        l->reads < l->taken ? "it takes an element of a tensor" : "it reads a value");
    rule.change = KP_TEXT("Replace the loop: %s", change_of(l));
    if (kp_cost_tell(&l->cost, &rule)) kp_readtimes_idle(&x->read_idle, x, &l->times);
}

void kp_rules_one_by_one(struct kp_costrules *x)
{
    struct loops l = {.x = x, .cost = kp_cost_open(x), .is_crowded = kp_costrules_is_crowded(x)};
    if (!x->out->has_gpu) loops_find(&l);
    if (!l.function || is_told(&l)) kp_cost_drop(&l.cost);
    else loops_tell(&l);
    kp_spans_fini(&l.times);
}

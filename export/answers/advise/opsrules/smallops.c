// SPDX-License-Identifier: Apache-2.0
/*
 * smallops.c - a loop of Python that computes small ops one by one, with their backward pass if autograd follows them
 *
 * A recurrence over time steps, a loss by sample, an integrator. A run is ops of one function of the program and of
 * what it calls, in one step, in which one op runs again and again at one line. Ops that compute for long are no reason
 * for it. Loops that autograd does not follow (boxes that are compared in pairs) are looked for where it follows none:
 * only ops that a line of the program calls itself count, and loops that another rule found are left to it. On a GPU
 * the same time is that of launches.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/read/facts/valuereads.h"

#define SHARE_LEAST 0.20 /* of a step */
enum { TURNS_LEAST = 64, SMALL_NS = 20000, PAUSE_NS = 50000000 };

struct small_run {
    uint32_t line, caller; /* own lines, of the function and of what calls it; line 0: no run is open */
    int64_t start_ns, end_ns, tid, ns, large_ns; /* ns: in ops; large: in those that compute for long */
    size_t first, ops, turns;
    size_t step;
    uint64_t most; /* the op that runs most, and its line */
    struct kp_keyindex counts;
};
struct small_ops {
    struct kp_costrules *x;
    bool is_alone; /* true if ops without a backward pass are looked at, and others are not */
    struct kp_cost cost;
    struct kp_spans times;
    struct small_run run;
    size_t ops, turns; /* turns: of the op that the first run computes most */
    uint64_t most;
};

static bool is_one_function(const struct small_ops *s, uint32_t a, uint32_t b)
{
    const struct kp_kineto *const trace = s->x->tree->trace;
    return a && b && (a == b || kp_gapplace_is_within(kp_kineto_text(trace, a), kp_kineto_text(trace, b)));
}

/* Small ops and the Python that calls them are half of it or more. */
static bool is_loop(const struct small_run *run)
{
    const int64_t all_ns = run->end_ns - run->start_ns;
    return run->line && run->turns >= TURNS_LEAST && 2 * run->large_ns <= all_ns &&
           all_ns - run->ns <= (int64_t)run->ops * KP_OP_COMPUTES_NS;
}

static void run_end(struct small_ops *s)
{
    struct small_run *const run = &s->run;
    if (is_loop(run)) {
        s->ops += kp_cost_add_run(&s->cost, run->first, run->end_ns);
        kp_spans_add(&s->times, run->start_ns, run->end_ns);
        if (!s->most) s->most = run->most;
        if (s->most == run->most) s->turns += run->turns;
    }
    kp_keyindex_fini(&run->counts);
    *run = (struct small_run){0};
}

/* Is an op of this own line in the run's function, or in one that it calls? The run may have begun in such a one. */
static bool goes_on(struct small_ops *s, uint32_t line, uint32_t caller)
{
    struct small_run *const run = &s->run;
    if (is_one_function(s, line, run->line) || is_one_function(s, caller, run->line)) return true;
    if (!is_one_function(s, run->caller, line) && !is_one_function(s, run->caller, caller)) return false;
    run->line = run->caller;
    run->caller = 0;
    return true;
}

static void op_take(struct small_ops *s, size_t i, uint32_t line)
{
    const struct kp_tree *const tree = s->x->tree;
    const struct kp_node *const node = &tree->nodes[i];
    const struct kp_kineto_event *const e = kp_tree_event(tree, i);
    const uint32_t caller = kp_ownline_caller(tree->trace, kp_tree_stack(tree, node));
    struct small_run *const run = &s->run;
    const int64_t ns = node->end_ns - node->start_ns;
    const size_t step = kp_costrules_step(s->x, i);
    if (run->line && (run->tid != e->tid || run->step != step || node->start_ns > run->end_ns + PAUSE_NS ||
                      !goes_on(s, line, caller)))
        run_end(s);
    if (!run->line)
        *run = (struct small_run){
            .line = line, .caller = caller, .start_ns = node->start_ns, .tid = e->tid, .first = i, .step = step};
    run->end_ns = node->end_ns;
    run->ns += ns;
    run->large_ns += ns > SMALL_NS ? ns : 0;
    run->ops++;
    if (s->is_alone ? kp_valueread_is(tree, i) : !s->x->has_backward[i]) return;
    const uint64_t key = (uint64_t)e->name << 32 | line;
    size_t *const count = kp_keyindex_row(&run->counts, key, &(size_t){0}, sizeof *count);
    if (++*count > run->turns) run->turns = *count, run->most = key;
}

/* Is the innermost frame of its call stack the program's? */
static bool is_called_by_program(const struct kp_tree *tree, size_t i)
{
    const char *const stack = kp_kineto_text(tree->trace, kp_tree_stack(tree, &tree->nodes[i]));
    size_t bytes;
    return kp_ownline_frame(tree->trace, stack, &bytes) == stack;
}

static bool is_left_out(const struct small_ops *s, size_t i)
{
    const struct kp_costrules *const x = s->x;
    return !kp_costrules_in_steps(x, i) || x->loaders[i] >= 0 || x->tree->nodes[i].forward >= 0 ||
           kp_node_is_in(x->tree, (int32_t)i, KP_NAME_OPTIMIZER) ||
           (s->is_alone && (x->has_backward[i] || !is_called_by_program(x->tree, i)));
}

static void loops_find(struct small_ops *s)
{
    const struct kp_costrules *const x = s->x;
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!kp_costrules_is_outer(x, i)) continue;
        const uint32_t line = kp_costplace_line(x->tree, (int32_t)i);
        if (!line || is_left_out(s, i)) run_end(s);
        else op_take(s, i, line);
    }
    run_end(s);
}

/* Another rule has the loop: at least half of its cost is that finding, less gives way to this. */
static bool is_found(const struct small_ops *s)
{
    static const char *const ids[] = {KP_FINDING_READS, KP_FINDING_INPUT, "one-by-one", "tensor-by-tensor"};
    const char *const line = kp_kineto_text(s->x->tree->trace, (uint32_t)s->most);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct kp_finding *const f = kp_costrules_find(s->x, ids[i]);
        if (f && 2 * f->step_ns >= kp_cost_mean(&s->cost)) return true;
        if (f && f->line && kp_gapplace_is_function(f->line, line)) kp_finding_drop(s->x->out, f);
    }
    return false;
}

/* Each iteration may need the one before. */
static void loops_tell(struct small_ops *s)
{
    struct kp_costrules *const x = s->x;
    const double steps = (double)x->chosen->step_count;
    const char *const line = kp_kineto_text(x->tree->trace, (uint32_t)s->most), *const name = strchr(line, ' ');
    const struct kp_cost_rule rule = {
        SHARE_LEAST, KP_RULE_MILD, "small-ops-in-a-loop",
        KP_TEXT("a loop in%s computes small operators one by one: %.0f per step, %s %.0f times%s",
                name ? name : " Python", (double)s->ops / steps,
                kp_kineto_text(x->tree->trace, (uint32_t)(s->most >> 32)), (double)s->turns / steps,
                s->is_alone ? "" : ". The cost is with their backward pass"),
        KP_TEXT("To call so many operators takes longer than what they compute. If no iteration needs the one before, "
                "compute all at once: one more dimension, or torch.vmap. Else %s",
                s->is_alone ? "take the numbers out first (.tolist(), .numpy()), with which Python computes faster, or "
                              "compile the loop's body with torch.compile."
                            : "compile the loop's body with torch.compile, or use a layer whose loop is not Python "
                              "(nn.LSTM, nn.GRU). A larger batch costs little more.")};
    if (!s->is_alone) kp_cost_add_backward(&s->cost);
    kp_spans_settle(&s->times);
    if (kp_cost_tell(&s->cost, &rule)) kp_readtimes_idle(&x->read_idle, x, &s->times);
}

/* Returns true if there is such a loop, whatever it costs. */
static bool loops_judge(struct kp_costrules *x, bool is_alone)
{
    struct small_ops s = {.x = x, .is_alone = is_alone, .cost = kp_cost_open(x)};
    loops_find(&s);
    if (s.ops && (!is_alone || !is_found(&s))) loops_tell(&s);
    else kp_cost_drop(&s.cost);
    kp_spans_fini(&s.times);
    return s.ops;
}

void kp_rules_small_ops(struct kp_costrules *x)
{
    if (!x->out->has_gpu && !loops_judge(x, false)) loops_judge(x, true);
}

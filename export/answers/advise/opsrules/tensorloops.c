// SPDX-License-Identifier: Apache-2.0
/*
 * tensorloops.c - a loop over parameters, gradients or averages that computes small ops tensor by tensor
 *
 * Clipping by hand, an average of the weights, their decay, norms that are logged: torch has one call for a list of
 * tensors. A run is ops of one function of the program that such calls have, or that only look at a tensor, in which
 * one is computed again and again. Ops that autograd follows, and large ops, are left out. For a CPU alone: on a GPU
 * the same time is that of launches.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

#include "export/answers/advise/stepkinds/longsteps.h"

#define SHARE_LEAST 0.05 /* of a step */
#define SMALL_SHARE 0.8  /* of the ops: where more are large, what they move costs, and not their calls */
enum { TENSORS_LEAST = 16, PAUSE_NS = 50000000, SMALL_NS = 20000 };

enum tensor_op {
    SCALES = 1 << 0,
    ADDS = 1 << 1,
    NORMS = 1 << 2,
    BLENDS = 1 << 3,
    ZEROES = 1 << 4,
    COPIES = 1 << 5,
    OTHERS = 1 << 6,
    LOOKS = 1 << 7 /* or reads a value: it is in the loop, and no reason for it */
};
static const struct tensor_op_row {
    enum tensor_op kind;
    const char *name;
} table[] = {{SCALES, "aten::mul"},       {SCALES, "aten::mul_"},
             {SCALES, "aten::div"},       {SCALES, "aten::div_"},
             {ADDS, "aten::add"},         {ADDS, "aten::add_"},
             {ADDS, "aten::sub"},         {ADDS, "aten::sub_"},
             {ADDS, "aten::rsub"},        {NORMS, "aten::norm"},
             {NORMS, "aten::pow"},        {NORMS, "aten::linalg_vector_norm"},
             {NORMS, "aten::square"},     {BLENDS, "aten::lerp"},
             {BLENDS, "aten::lerp_"},     {ZEROES, "aten::zero_"},
             {COPIES, "aten::copy_"},     {COPIES, "aten::clone"},
             {OTHERS, "aten::sqrt"},      {OTHERS, "aten::sqrt_"},
             {OTHERS, "aten::addcmul_"},  {OTHERS, "aten::addcdiv_"},
             {OTHERS, "aten::abs"},       {OTHERS, "aten::neg"},
             {OTHERS, "aten::mean"},      {OTHERS, "aten::max"},
             {OTHERS, "aten::clamp"},     {OTHERS, "aten::clamp_"},
             {OTHERS, "aten::isnan"},     {OTHERS, "aten::isfinite"},
             {OTHERS, "aten::std"},       {LOOKS, "aten::sum"},
             {LOOKS, "aten::any"},        {LOOKS, "aten::all"},
             {LOOKS, "aten::item"},       {LOOKS, "aten::is_nonzero"},
             {LOOKS, "aten::detach"},     {LOOKS, "aten::alias"},
             {LOOKS, "aten::set_"},       {LOOKS, "aten::view"},
             {LOOKS, "aten::to"},         {LOOKS, "aten::empty_like"},
             {LOOKS, "aten::zeros_like"}, {LOOKS, "aten::_has_compatible_shallow_copy_type"}};
enum { TABLE_ROWS = sizeof table / sizeof *table };

struct tensor_run {
    uint32_t line; /* an own line of its function; 0: no run is open */
    int64_t start_ns, end_ns, tid;
    int32_t first;
    size_t small, counts[TABLE_ROWS];
};
struct tensor_loop { /* all runs of a function */
    uint32_t line;
    double ns;
    size_t counts[TABLE_ROWS];
};
struct tensor_loops {
    const struct kp_costrules *x;
    struct tensor_run run, *runs;
    size_t run_count, run_capacity;
    struct kp_keyindex functions; /* rows: struct tensor_loop */
};

static size_t row_of(const char *op)
{
    size_t i = 0;
    while (i < TABLE_ROWS && strcmp(table[i].name, op) != 0) i++;
    return i;
}

/* The row that is computed most often. */
static size_t most_of(const size_t *counts)
{
    size_t most = 0;
    for (size_t i = 1; i < TABLE_ROWS && table[i].kind != LOOKS; i++)
        if (counts[i] > counts[most]) most = i;
    return most;
}

static size_t ops_of(const size_t *counts)
{
    size_t ops = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++) ops += counts[i];
    return ops;
}

/* "train.py clip" of "train.py:12 clip" as a number. */
static uint64_t function_key(const struct kp_costrules *x, uint32_t line)
{
    const char *const text = kp_kineto_text(x->tree->trace, line), *const name = strchr(text, ' ');
    const char *const of = KP_TEXT("%.*s%s", (int)strcspn(text, ":"), text, name ? name : "");
    return kp_strings_put(x->tree->trace->strings, of, strlen(of));
}

static void run_end(struct tensor_loops *l)
{
    struct tensor_run *const run = &l->run;
    const bool is = run->line && run->counts[most_of(run->counts)] >= TENSORS_LEAST &&
                    (double)run->small >= SMALL_SHARE * (double)ops_of(run->counts);
    if (is) {
        const struct tensor_loop empty = {.line = run->line};
        struct tensor_loop *const loop =
            kp_keyindex_row(&l->functions, function_key(l->x, run->line), &empty, sizeof empty);
        loop->ns += (double)(run->end_ns - run->start_ns);
        for (size_t i = 0; i < TABLE_ROWS; i++) loop->counts[i] += run->counts[i];
        *KP_KINETO_NEXT(l->runs, l->run_count, l->run_capacity) = *run;
    }
    *run = (struct tensor_run){0};
}

static void op_take(struct tensor_loops *l, size_t i, uint32_t line, size_t row)
{
    const struct kp_node *const node = &l->x->tree->nodes[i];
    const struct kp_kineto *const trace = l->x->tree->trace;
    const int64_t tid = kp_tree_event(l->x->tree, i)->tid;
    struct tensor_run *const run = &l->run;
    if (run->line && (run->tid != tid || node->start_ns > run->end_ns + PAUSE_NS ||
                      !kp_gapplace_is_function(kp_kineto_text(trace, line), kp_kineto_text(trace, run->line))))
        run_end(l);
    if (!run->line)
        *run = (struct tensor_run){.line = line, .start_ns = node->start_ns, .tid = tid, .first = (int32_t)i};
    run->end_ns = node->end_ns;
    run->counts[row]++;
    run->small += node->end_ns - node->start_ns <= SMALL_NS;
}

/* torch's own, or of another rule. */
static bool is_left_out(const struct tensor_loops *l, size_t i)
{
    const struct kp_tree *const tree = l->x->tree;
    return l->x->has_backward[i] || tree->nodes[i].forward >= 0 || l->x->loaders[i] >= 0 ||
           (kp_costrules_stack_facts(l->x, i) & KP_NAME_OF_STACKS) ||
           kp_node_is_in(tree, (int32_t)i, KP_NAME_OPTIMIZER) || !kp_costrules_in_steps(l->x, i);
}

static void loops_find(struct tensor_loops *l)
{
    const struct kp_tree *const tree = l->x->tree;
    for (size_t i = 0; i < tree->count; i++) {
        if (!kp_costrules_is_outer(l->x, i)) continue;
        const uint32_t line = is_left_out(l, i) ? 0 : kp_costplace_line(tree, (int32_t)i);
        const size_t row = line ? row_of(kp_costrules_name(l->x, (int32_t)i)) : TABLE_ROWS;
        if (row < TABLE_ROWS) op_take(l, i, line, row);
        else run_end(l);
    }
    run_end(l);
}

static const char *change_of(const size_t *counts)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++) kinds |= counts[i] >= TENSORS_LEAST ? table[i].kind : 0;
    if ((kinds & NORMS) && (kinds & SCALES))
        return "torch.nn.utils.clip_grad_norm_(parameters, limit, foreach=True) clips all gradients.";
    if (kinds & NORMS)
        return "torch.stack(torch._foreach_norm(tensors)).tolist() computes all norms and reads them once.";
    if (kinds & BLENDS || (kinds & SCALES && kinds & ADDS))
        return "torch._foreach_lerp_(averages, parameters, 1 - decay) updates all averages.";
    if (kinds & ZEROES) return "optimizer.zero_grad() drops all gradients.";
    if (kinds & COPIES) return "torch._foreach_copy_(kept, tensors) copies all.";
    return "torch._foreach_mul_, torch._foreach_add_ and the like take lists. Weight decay is an argument of "
           "optimizers.";
}

/* Another rule has told the loop: at most twice as much is that finding, more takes its place. */
static bool is_told(const struct kp_costrules *x, const struct tensor_loop *loop)
{
    static const char *const ids[] = {KP_FINDING_READS, "one-by-one"};
    const double ns = loop->ns / (double)x->chosen->step_count;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct kp_finding *const f = kp_costrules_find(x, ids[i]);
        if (!f || !f->line || !kp_gapplace_is_function(f->line, kp_kineto_text(x->tree->trace, loop->line))) continue;
        if (2 * f->step_ns >= ns) return true;
        kp_finding_drop(x->out, f);
    }
    return false;
}

static void loop_tell(struct kp_costrules *x, const struct tensor_loops *l, const struct tensor_loop *loop)
{
    struct kp_cost_rule rule = {SHARE_LEAST, KP_RULE_MILD, "tensor-by-tensor", "", ""};
    const size_t most = most_of(loop->counts), steps = x->chosen->step_count;
    struct kp_cost cost = kp_cost_open(x);
    struct kp_spans times = {0};
    const char *const text = kp_kineto_text(x->tree->trace, loop->line), *const name = strchr(text, ' ');
    for (size_t i = 0; i < l->run_count; i++) {
        const struct tensor_run *const run = &l->runs[i];
        if (!kp_gapplace_is_function(kp_kineto_text(x->tree->trace, run->line), text)) continue;
        kp_cost_add_run(&cost, (size_t)run->first, run->end_ns);
        kp_spans_add(&times, run->start_ns, run->end_ns);
    }
    kp_spans_settle(&times);
    rule.what = KP_TEXT("a loop in%s computes tensor by tensor: %.0f small ops per step, %s %.0f times",
                        name ? name : " Python", (double)ops_of(loop->counts) / (double)steps, table[most].name,
                        (double)loop->counts[most] / (double)steps);
    rule.change = KP_TEXT("Compute all at once: %s The cost is all of the loop; one call for all saves a "
                          "fifth to two thirds of it.",
                          change_of(loop->counts));
    if (kp_cost_tell(&cost, &rule)) kp_readtimes_idle(&x->read_idle, x, &times);
    kp_spans_fini(&times);
}

void kp_rules_tensor_by_tensor(struct kp_costrules *x)
{
    struct tensor_loops l = {.x = x};
    const struct tensor_loop *most = NULL;
    if (!x->out->has_gpu) loops_find(&l);
    const struct tensor_loop *const of = l.functions.rows;
    for (size_t i = 0; i < l.functions.count; i++)
        if (!most || of[i].ns > most->ns) most = &of[i];
    if (most && most->ns >= SHARE_LEAST * x->out->step_ns * (double)x->chosen->step_count && !is_told(x, most))
        loop_tell(x, &l, most);
    kp_keyindex_fini(&l.functions);
    free(l.runs);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * pycallrules.c - calls of Python that cost a step by all that runs in them: texts of tensors, copies of a whole state,
 * buffers that go to all ranks, objects that ranks send each other
 *
 * Such a call is hundreds of small ops and the Python between them. Its own frames tell the calls, or a frame in the
 * stacks of their ops: then two such ops on end, of one line, have the time between them, too. All steps are judged: a
 * program may do so in a few of them, which this tells instead of slow-steps. With a GPU only the time counts in which
 * it computes nothing.
 */

#include "export/answers/advise/rules/rules.h"
#include "export/answers/advise/rules/waits.h"
#include "export/show/units.h"

#define EXPLAINS                                                                           \
    (1u << KP_SPLIT_IDLE | 1u << KP_CAUSE(KP_IDLE_SYNC) | 1u << KP_CAUSE(KP_IDLE_LAUNCH) | \
     1u << KP_CAUSE(KP_IDLE_PYTHON) | KP_RULE_TELLS_STEPS)

#define SHOWN_NS 100000.0 /* 0.1 ms */

static const struct pycall_rule {
    uint32_t fact;
    bool is_without_collectives; /* ranks wait there */
    struct kp_cost_rule rule;
} rules[] = {
    {KP_NAME_FORMATS,
     false,
     {0.05, EXPLAINS, KP_FINDING_TEXTS, "the step formats tensors as text (print(), str() or an f-string of a tensor)",
      "Format numbers in place of tensors (loss.item()), every N steps. Let the logger format: log.debug(\"%s\", "
      "tensor) makes no text where that level is off, an f-string always does."}},
    {KP_NAME_DEEPCOPY,
     false,
     {0.03, EXPLAINS, "deepcopy-of-state", "copy.deepcopy() copies tensors one by one into new memory",
      "Copy into tensors that are kept: for name, value in model.state_dict().items(): kept[name].copy_(value). Copy "
      "the optimizer's state only if it is needed, and less often."}},
    {KP_NAME_DDP_BUFFERS,
     true,
     {0.05, EXPLAINS, "ddp-buffers", "DistributedDataParallel sends its buffers to all ranks in each forward pass",
      "If each rank may keep its own, as with running statistics of BatchNorm, or all are equal anyway: "
      "DistributedDataParallel(..., broadcast_buffers=False). Keep large state, such as a queue of samples, in a plain "
      "attribute in place of a buffer."}},
    {KP_NAME_OBJECTS,
     true,
     {0.03, EXPLAINS, "objects-between-ranks",
      "ranks send each other Python objects, as all_gather_object() does: each is pickled, copied and unpickled",
      "Send tensors: reduce on each rank what can be (counts, sums), and torch.distributed.all_reduce() the few "
      "numbers; "
      "all_gather_into_tensor() takes tensors without a pickle. Send objects less often, as at the end of an epoch."}},
};

/* The call itself, or an op whose stack has it. The work of one's backward is no call's. */
static bool is_in_call(const struct kp_costrules *x, size_t i, uint32_t fact)
{
    if (x->tree->nodes[i].is_python) return kp_node_is(x->tree, i, fact);
    if (!kp_costrules_is_op(x, i) || x->tree->nodes[i].forward >= 0) return false;
    return kp_costrules_stack_facts(x, i) & fact;
}

static double weight_of(const struct kp_costrules *x, int64_t from_ns, int64_t to_ns, int64_t without_ns)
{
    const double ns = (double)(to_ns - from_ns);
    return ns > 0 ? kp_cost_exposed(x, from_ns, to_ns) * (1 - (double)without_ns / ns) : 0;
}

/* Returns the time of collectives that is left out. */
static double calls_charge(struct kp_cost *cost, struct kp_spans *times, const struct kp_costrules *x,
                           const struct pycall_rule *call)
{
    double left_out_ns = 0;
    const bool has_calls = kp_costrules_has_calls(x);
    struct kp_spans without = {0};
    int64_t until = INT64_MIN;
    uint32_t was = 0; /* the line of the op before, if that is in a call */
    if (call->is_without_collectives) kp_costrules_spans(x, KP_NAME_COLLECTIVE, &without);
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        if (!kp_costrules_is_of_thread(x, i) || node->end_ns <= until) continue;
        const bool is = is_in_call(x, i, call->fact);
        if (!is && !kp_costrules_is_op(x, i)) continue;
        const uint32_t line = is && !has_calls ? kp_costplace_line(x->tree, (int32_t)i) : 0;
        const int64_t from = (line && line == was) || until > node->start_ns ? until : node->start_ns;
        const int64_t without_ns = is ? kp_spans_between(&without, from, node->end_ns) : 0;
        if (is) kp_cost_add(cost, (int32_t)i, from, node->end_ns, weight_of(x, from, node->end_ns, without_ns));
        if (is) kp_spans_add(times, from, node->end_ns);
        left_out_ns += (double)without_ns;
        was = line;
        until = node->end_ns;
    }
    kp_spans_settle(times);
    kp_spans_fini(&without);
    return left_out_ns;
}

static void calls_judge(struct kp_costrules *x, const struct pycall_rule *call)
{
    struct kp_cost cost = kp_cost_open(x);
    struct kp_spans times = {0};
    struct kp_cost_rule rule = call->rule;
    const double ns = calls_charge(&cost, &times, x, call) / (double)(x->out->steps ? x->out->steps : 1);
    if (ns > SHOWN_NS)
        rule.what = kp_costrules_text(x, "%s (the collectives, in which ranks also wait, take %s per step more)",
                                      rule.what, kp_units_ms(ns));
    if (kp_cost_tell(&cost, &rule)) kp_readtimes_idle(&x->read_idle, x, &times);
    kp_spans_fini(&times);
}

void kp_rules_pycalls(struct kp_costrules *x)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) calls_judge(x, &rules[i]);
}

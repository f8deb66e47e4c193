// SPDX-License-Identifier: Apache-2.0
/*
 * launchplace.c - what to change where a GPU waits for launches: the optimizer, a loop of the program, or in general
 *
 * A loop that runs a model on one row after the other uses the same weights many times a step. Autograd then adds up
 * their gradients, right in its ranges around nodes, before each goes to its parameter.
 */

#include <stdlib.h>

#include "export/answers/advise/rules/rules.h"

enum { ONE_BY_ONE_LEAST = 40, TURNS_LEAST = 8, USES_LEAST = 4 };
#define LESS "launch less: torch.compile(model, mode=\"reduce-overhead\"), CUDA graphs, larger batches."

/* ---- the optimizer ---- */

struct optimizer_ops {
    size_t all, joined; /* outermost ones; joined: of many parameters at once */
    char name[64];
    struct kp_spans steps;
};

static void optimizer_name(struct optimizer_ops *o, const char *range)
{
    const char *const name = range + strlen("Optimizer.step#");
    const size_t bytes = strcspn(name, ".");
    if (!o->name[0] && bytes < sizeof o->name) memcpy(o->name, name, bytes);
}

/* Parents come first. */
static void optimizer_gather(struct optimizer_ops *o, const struct kp_costrules *x)
{
    enum { OUTSIDE, INSIDE, IN_OP };
    uint8_t *const where = kp_kineto_room(x->tree->count + 1, sizeof *where);
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const n = &x->tree->nodes[i];
        const char *const name = kp_costrules_name(x, (int32_t)i);
        where[i] = n->parent < 0 ? OUTSIDE : where[n->parent];
        if (!kp_spans_has(&x->chosen->in_steps, n->start_ns) || n->on_device) continue;
        if (kp_name_begins(name, "Optimizer.step#")) {
            where[i] = INSIDE;
            kp_spans_add(&o->steps, n->start_ns, n->end_ns);
            optimizer_name(o, name);
        } else if (where[i] == INSIDE && kp_costrules_is_op(x, i)) {
            where[i] = IN_OP;
            o->all++;
            o->joined += kp_name_begins(name, "aten::_foreach_") || kp_name_begins(name, "aten::_fused_");
        }
    }
    kp_spans_settle(&o->steps);
    free(where);
}

static const char *optimizer_change(const struct kp_costrules *x, const struct optimizer_ops *o)
{
    const double ops = (double)o->all / (double)x->chosen->step_count;
    const bool is_fused = KP_NAME_IS(o->name, "Adam", "AdamW", "SGD", "Adagrad");
    if (2 * o->joined >= o->all)
        return is_fused ? KP_TEXT("Let %s join its %.0f ops a step: %s(..., fused=True).", o->name, ops, o->name)
                        : NULL;
    const char *const how = is_fused ? "(..., fused=True), or foreach=True."
                            : KP_NAME_IS(o->name, "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
                                ? "(..., foreach=True)."
                                : " has to join them: torch.compile, or torch._foreach_* ops.";
    return KP_TEXT("%s goes through its parameters one by one (%.0f ops a step): %s%s", o->name, ops, o->name, how);
}

/* The place in whose steps half of the time or more lies. */
static const char *of_optimizer(const struct kp_costrules *x)
{
    struct optimizer_ops o = {0};
    const struct kp_spans *const launching = &x->places->launching;
    optimizer_gather(&o, x);
    const bool is_most = 2 * kp_spans_length(launching, &o.steps) >= kp_spans_length(launching, &x->chosen->in_steps);
    const bool is_many = o.all >= ONE_BY_ONE_LEAST * x->chosen->step_count;
    kp_spans_fini(&o.steps);
    return is_most && is_many && o.name[0] ? optimizer_change(x, &o) : NULL;
}

/* ---- a loop ---- */

struct line_ops {
    const struct kp_costrules *x;
    uint32_t line;
    struct kp_keyindex keys;           /* name << 32 | shapes; rows: how many */
    size_t weighted, gradients, added; /* ops with weights; gradients of parameters; additions of such */
};

static bool has_weights(const char *name)
{
    return KP_NAME_IS(name, "aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::layer_norm",
                      "aten::batch_norm", "aten::embedding", "aten::group_norm");
}

/* Is it the line itself that runs the op, and not a function that it calls? */
static bool is_of_line(struct line_ops *l, size_t node)
{
    struct kp_kineto *const trace = l->x->tree->trace;
    const uint32_t stack = kp_tree_event(l->x->tree, node)->stack;
    uint32_t head, tail;
    if (!stack || !l->line) return false;
    if (!kp_strings_is_chain(trace->strings, stack, &head, &tail)) {
        const char *const text = kp_kineto_text(trace, stack);
        head = kp_strings_put(trace->strings, text, strcspn(text, ";"));
    }
    return kp_ownline_of(trace, head) == l->line;
}

static void node_take(struct line_ops *l, size_t i)
{
    const struct kp_tree *const tree = l->x->tree;
    const struct kp_kineto_event *const e = kp_tree_event(tree, i);
    const char *const name = kp_costrules_name(l->x, (int32_t)i);
    const int32_t parent = tree->nodes[i].parent;
    if (!kp_costrules_is_op(l->x, i) || !kp_spans_has(&l->x->chosen->in_steps, tree->nodes[i].start_ns)) return;
    l->weighted += has_weights(name);
    l->gradients += strcmp(name, KP_ACCUMULATE_GRAD) == 0;
    l->added +=
        KP_NAME_IS(name, "aten::add_", "aten::add") && parent >= 0 && kp_node_is(tree, (size_t)parent, KP_NAME_ENGINE);
    if (kp_costplace_op(tree, (int32_t)i) == (int32_t)i && is_of_line(l, i))
        ++*kp_keyindex_sum(&l->keys, (uint64_t)e->name << 32 | e->shapes);
}

/* The most that the line runs one of its ops in a step. */
static size_t line_turns(const struct line_ops *l)
{
    const double *const counts = l->keys.rows;
    return l->keys.count ? (size_t)counts[kp_keyindex_most(&l->keys)] / l->x->chosen->step_count : 0;
}

/* A model with fewer gradients than weights, as one that is mostly frozen, adds up fewer as well. */
static size_t turns_of(const struct line_ops *l)
{
    const size_t turns = line_turns(l);
    if (!l->gradients || l->weighted < USES_LEAST * l->gradients) return 0;
    const size_t uses = (l->added + l->gradients) / l->gradients;
    if (uses < TURNS_LEAST) return 0;
    if (turns < TURNS_LEAST) return uses;
    return uses <= 2 * turns && turns <= 2 * uses ? turns : 0;
}

static const char *of_loop(const struct kp_costrules *x, const struct kp_finding *f)
{
    struct kp_strings *const strings = x->tree->trace->strings;
    struct line_ops l = {.x = x, .line = f->line ? kp_strings_put(strings, f->line, strlen(f->line)) : 0};
    const char *change = NULL;
    for (size_t i = 0; i < x->tree->count; i++) node_take(&l, i);
    const size_t turns = turns_of(&l), norms = line_turns(&l);
    if (turns)
        change = KP_TEXT("%s uses the same weights %zu times a step: join what it takes one by one into one "
                         "batch, where no turn needs the one before. Else " LESS,
                         f->line ? f->line : "The program", turns);
    else if (norms >= TURNS_LEAST && f->where && strcmp(f->where, "aten::linalg_vector_norm") == 0)
        change = KP_TEXT("%s asks for %zu norms a step: torch.nn.utils.get_total_norm(tensors) makes them "
                         "together. Else " LESS,
                         f->line, norms);
    kp_keyindex_fini(&l.keys);
    return change;
}

/* ---- ops of one kind, which others can stand for ---- */

enum { KIND_LEAST = 8, KIND_PART = 10 }; /* a step; in a KIND_PARTth of the launching or more */

struct kind_ops {
    struct kp_costplaces places;
    struct kp_spans around; /* the outermost ops that hold them */
    size_t count;
    double ms; /* of the launching of a step */
};

static void kind_add(struct kind_ops *k, const struct kp_costrules *x, int32_t node)
{
    const struct kp_node *const n = &x->tree->nodes[node], *const op = &x->tree->nodes[kp_costplace_op(x->tree, node)];
    if (!kp_spans_has(&x->chosen->in_steps, n->start_ns)) return;
    kp_costplaces_add(&k->places, x->tree, node, -1, 1);
    kp_spans_add(&k->around, op->start_ns, op->end_ns);
    k->count++;
}

/* The line that has most of them; NULL: they are few, or little of the launching. Ends `k`. */
static const char *kind_line(struct kind_ops *k, const struct kp_costrules *x)
{
    const struct kp_spans *const launching = &x->places->launching;
    struct kp_finding most = {0};
    kp_spans_settle(&k->around);
    const int64_t ns = kp_spans_length(launching, &k->around);
    k->ms = (double)ns / 1e6 / (double)x->chosen->step_count;
    if (k->count >= KIND_LEAST * x->chosen->step_count &&
        KIND_PART * ns >= kp_spans_length(launching, &x->chosen->in_steps))
        kp_costplaces_tell(&k->places, x->tree->trace, &most);
    kp_spans_fini(&k->around);
    kp_costplaces_fini(&k->places);
    return most.line;
}

/* A boolean index, masked_select and their like: how many elements they have is known when they are found. */
static const char *of_masks(const struct kp_costrules *x)
{
    struct kind_ops k = {0};
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_costrules_is_op(x, i) && strcmp(kp_costrules_name(x, (int32_t)i), "aten::nonzero") == 0)
            kind_add(&k, x, (int32_t)i);
    const char *const line = kind_line(&k, x);
    if (!line) return NULL;
    return KP_TEXT("%s picks elements by a mask (%.3f ms of it): a step asks %zu times where one is true "
                   "(aten::nonzero). torch.where, or a product with the mask, keeps the shape. Else " LESS,
                   line, k.ms, k.count / x->chosen->step_count);
}

static const char *of_host_tensors(const struct kp_costrules *x)
{
    struct kind_ops k = {0};
    for (size_t i = 0; i < x->work_count; i++)
        if (x->works[i].call >= 0 && kp_name_begins(kp_costrules_name(x, x->works[i].node), "Memcpy HtoD"))
            kind_add(&k, x, x->works[i].call);
    const char *const line = kind_line(&k, x);
    if (!line) return NULL;
    return KP_TEXT("%s copies most of the %zu tensors a step that come from the host, one by one (%.3f ms of "
                   "it): make them on the GPU (device=\"cuda\"), or copy them as one. Else " LESS,
                   line, k.count / x->chosen->step_count, k.ms);
}

void kp_launchplace_tell(const struct kp_costrules *x, struct kp_finding *f)
{
    const char *change = of_optimizer(x);
    if (!change) change = of_loop(x, f);
    if (!change) change = of_masks(x);
    if (!change) change = of_host_tensors(x);
    if (change) f->change = change;
}

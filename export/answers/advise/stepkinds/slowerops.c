// SPDX-License-Identifier: Apache-2.0
/*
 * slowerops.c - how much longer a step lasts by ops that run as often as in the other steps, but slower
 *
 * Calls are of one kind by name and shapes; where no shapes were recorded, by name and the program's line. The own work
 * of a library's op counts: a function of the program that an op calls may do something else each time. Such functions,
 * as hooks, may run in the engine of autograd and in an optimizer. A thread that is slower is so there, too, so these
 * count up to what the ops have more.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#define CALLS_SLACK 0.5 /* more than usual in the mean */

/* "AddmmBackward0": a node of autograd in C++. Functions in Python have no number. */
static bool is_autograd_node(const char *name)
{
    const char *number = strstr(name, "Backward");
    if (!number || strchr(name, ':')) return false;
    number += strlen("Backward");
    return *number && !number[strspn(number, "0123456789")];
}

static enum kp_opkind kind_of(const struct kp_costrules *x, size_t i)
{
    const struct kp_node *const node = &x->tree->nodes[i];
    const char *const name = kp_costrules_name(x, (int32_t)i);
    if (node->on_device || node->is_async || node->is_python || kp_spans_has(&x->evaluated, node->start_ns))
        return KP_OP_OF_OTHERS;
    if (kp_name_begins(name, "aten::") && kp_costrules_is_op(x, i)) return KP_OP_OF_LIBRARY;
    if (is_autograd_node(name)) return KP_OP_OF_AUTOGRAD;
    return kp_name_begins(name, "autograd::engine::") || kp_name_begins(name, "torch::autograd::") ||
                   kp_name_begins(name, "Optimizer.")
               ? KP_OP_WITH_HOOKS
               : KP_OP_OF_OTHERS;
}

bool kp_slowerops_is_of_library(const struct kp_costrules *x, size_t node)
{
    return kind_of(x, node) == KP_OP_OF_LIBRARY;
}

double kp_slowerops_self_ns(const struct kp_tree *tree, size_t i)
{
    int64_t ns = tree->nodes[i].end_ns - tree->nodes[i].start_ns;
    for (int32_t k = tree->nodes[i].first_child; k >= 0; k = tree->nodes[k].next_sibling)
        ns -= tree->nodes[k].end_ns - tree->nodes[k].start_ns;
    return ns > 0 ? (double)ns : 0;
}

static struct kp_opcalls *calls_of(struct kp_keyindex *set, struct kp_slowerops *s, size_t i)
{
    const struct kp_tree *tree = s->x->tree;
    const struct kp_kineto_event *e = kp_tree_event(tree, i);
    const uint32_t more = e->shapes ? e->shapes : kp_costplace_line(tree, (int32_t)i);
    const struct kp_opcalls first = {.has_shapes = e->shapes != 0, .kind = kind_of(s->x, i), .node = (int32_t)i};
    return kp_keyindex_row(set, (uint64_t)e->name << 32 | more, &first, sizeof first);
}

static void step_add(struct kp_keyindex *set, struct kp_slowerops *s, size_t number)
{
    const struct kp_costrules *const x = s->x;
    const struct kp_step *const step = &x->chosen->steps[number];
    const double on_core = s->of ? kp_longsteps_on_core(x, number, s->of[number]) : 1;
    for (size_t i = kp_longsteps_node(x->tree, step->start_ns); i < x->tree->count; i++) {
        if (x->tree->nodes[i].start_ns >= step->end_ns) break;
        if (kind_of(x, i) == KP_OP_OF_OTHERS) continue;
        struct kp_opcalls *const c = calls_of(set, s, i);
        c->count++;
        s->has_shapes |= c->has_shapes;
        c->ns += on_core * kp_slowerops_self_ns(x->tree, i);
    }
}

void kp_slowerops_open(struct kp_slowerops *out, const struct kp_costrules *x, const double *longer, const double *of)
{
    *out = (struct kp_slowerops){.x = x, .of = of};
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (longer[i] > 0) continue;
        out->steps++;
        step_add(&out->usual, out, i);
    }
}

/* The time that a slower thread has more, in its ops, and in places where hooks may run. */
static double with_hooks(double of_ops, double of_hooks)
{
    return of_ops + (of_hooks < of_ops ? of_hooks : of_ops > 0 ? of_ops : 0);
}

struct kp_slower kp_slowerops_of(struct kp_slowerops *s, size_t step)
{
    struct kp_keyindex own = {0};
    struct kp_slower out = {.node = -1};
    double most = 0, of_hooks = 0, of_autograd = 0;
    step_add(&own, s, step);
    const struct kp_opcalls *const calls = own.rows;
    for (size_t i = 0; i < own.count && s->steps; i++) {
        const struct kp_opcalls *const c = &calls[i], *const u = calls_of(&s->usual, s, (size_t)c->node);
        if (!u->count || (double)c->count > (double)u->count / (double)s->steps + CALLS_SLACK) {
            out.added_ns += c->ns - u->ns / (double)s->steps;
            continue;
        }
        const double more = c->ns - (double)c->count * u->ns / (double)u->count;
        *(c->kind == KP_OP_WITH_HOOKS ? &of_hooks : c->kind == KP_OP_OF_AUTOGRAD ? &of_autograd : &out.ns) += more;
        if (c->has_shapes && c->kind == KP_OP_OF_LIBRARY) out.shaped_ns += more;
        if (more > out.calls_ns) {
            out.calls = (size_t)(u - (struct kp_opcalls *)s->usual.rows);
            out.calls_ns = more;
            out.usual_ns = u->ns / (double)s->steps;
        }
        if (more <= most || c->kind == KP_OP_WITH_HOOKS) continue;
        most = more;
        out.node = c->node;
    }
    kp_keyindex_fini(&own);
    out.shaped_ns = s->has_shapes ? with_hooks(out.shaped_ns + of_autograd, of_hooks) : 0;
    out.ns = with_hooks(out.ns + of_autograd, of_hooks);
    return out;
}

void kp_slowerops_fini(struct kp_slowerops *s) { kp_keyindex_fini(&s->usual); }

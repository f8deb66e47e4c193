// SPDX-License-Identifier: Apache-2.0
/*
 * float64rule.c - a training that computes in float64, which moves twice the bytes of float32; or in bfloat16, on a CPU
 * where torch has no fast way to compute products of it
 *
 * An op's inputs tell it (KPROF_RECORD_SHAPES), on a GPU the names of kernels, too. The first op of a step that has
 * doubles shows their source: a conversion before it made them, or they come in.
 *
 * For bfloat16 oneDNN asks for AVX-512, or for AVX-NE-CONVERT. If both lack, torch has a plain loop. Which instructions
 * the CPU has, the recorder notes: the reader's own CPU is another one.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <math.h>

#include "export/answers/advise/opsrules/opsrules.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/shapetext.h"

#define SHARE_LEAST 0.3 /* of the time in ops, or of kernels */
#define SAVED 0.5       /* of products, and of what moves many bytes; products gain more on most GPUs */
#define SAVED_MIDDLE 0.25
#define SAVED_LITTLE 0.1
#define SAVED_NEXT_TO_NOTHING 0.03 /* a small op is mostly the way to it */
enum { MANY_NUMBERS = 65536, MIDDLE_NUMBERS = 16384, FEW_NUMBERS = 4096, FUNCTION_NUMBERS = 256, VECTOR_TIMES = 16 };
#define PRODUCT_LARGE 32768.0 /* multiplications */
#define PRODUCT_MIDDLE 4096.0

struct typed_ops {
    struct kp_cost cost;
    double ns, all_ns; /* of the ops that are charged, and of all in steps: without the ops in them */
};

static bool has_doubles(const struct kp_costrules *x, size_t node)
{
    const struct kp_kineto_event *const e = kp_tree_event(x->tree, node);
    return e->kind == KP_KINETO_OP && (e->device_type & KP_TYPES_DOUBLE);
}

static bool is_product(const char *op)
{
    return KP_NAME_HAS(op, "mm", "conv", "linear", "matmul", "attention", "lstm", "gru");
}

/* It computes nothing: a name of the same numbers. */
static bool is_view(const char *op)
{
    return KP_NAME_IS(op, "aten::detach", "detach", "aten::view", "aten::reshape", "aten::t", "aten::alias",
                      "aten::transpose", "aten::unsqueeze", "aten::expand");
}

/* It takes many times as long as a sum for each number. */
static bool is_function(const char *op)
{
    return KP_NAME_IS(op, "aten::tanh", "aten::exp", "aten::sigmoid", "aten::gelu", "aten::log", "aten::sin",
                      "aten::cos", "aten::_softmax", "aten::erf", "aten::silu", "aten::pow", "aten::softplus",
                      "aten::gelu_");
}

static double saved_elementwise(double largest)
{
    if (largest >= MANY_NUMBERS) return SAVED;
    if (largest >= MIDDLE_NUMBERS) return SAVED_MIDDLE;
    return largest >= FEW_NUMBERS ? SAVED_LITTLE : SAVED_NEXT_TO_NOTHING;
}

/* A product with a vector moves its matrix, and computes little; of others, how much they compute. */
static double saved_product(double all, double largest)
{
    const double second = all > largest ? all - largest : largest, count = largest * sqrt(second);
    if (VECTOR_TIMES * second < largest) return saved_elementwise(largest);
    return count >= PRODUCT_LARGE ? SAVED : count >= PRODUCT_MIDDLE ? SAVED_MIDDLE : SAVED_LITTLE;
}

/* The part of an op's time that float32 saves, by the numbers in its largest tensor (measured: decisions/082). */
static double saved_of(const struct kp_costrules *x, size_t node)
{
    const struct kp_kineto_event *const e = kp_tree_event(x->tree, node);
    double all, largest;
    if (!e->shapes) return SAVED;
    kp_shapetext_numbers(kp_kineto_text(x->tree->trace, e->shapes), &all, &largest);
    const char *const name = kp_costrules_name(x, (int32_t)node);
    if (is_product(name)) return saved_product(all, largest);
    const double saved = is_view(name) ? SAVED_NEXT_TO_NOTHING : saved_elementwise(largest);
    return is_function(name) && largest >= FUNCTION_NUMBERS && saved < SAVED_MIDDLE ? SAVED_MIDDLE : saved;
}

/* The op with shapes that launched a work, or -1. */
static int32_t op_of(const struct kp_costrules *x, const struct kp_device_work *w)
{
    int32_t i = w->call;
    while (i >= 0 && kp_tree_event(x->tree, (size_t)i)->kind != KP_KINETO_OP) i = x->tree->nodes[i].parent;
    return i;
}

/* By its name, or by the op that launched it. */
static bool is_double_work(const struct kp_costrules *x, const struct kp_device_work *w)
{
    const int32_t op = op_of(x, w);
    if (KP_NAME_HAS(kp_costrules_name(x, w->node), "<double", " double", "dgemm", "d884gemm", "f64f64", "DoubleT"))
        return true;
    return op >= 0 && has_doubles(x, (size_t)op);
}

static void works_charge(struct typed_ops *d)
{
    const struct kp_costrules *const x = d->cost.x;
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *const w = &x->works[i];
        if (w->part != KP_SPLIT_COMPUTE) continue;
        const double ns = (double)kp_spans_between(&x->chosen->in_steps, w->start_ns, w->end_ns);
        d->all_ns += ns;
        if (!is_double_work(x, w)) continue;
        d->ns += ns;
        const int32_t op = op_of(x, w);
        kp_cost_add_work(&d->cost, w, op < 0 ? SAVED : saved_of(x, (size_t)op));
    }
}

/* Charges ops with inputs of these KP_TYPES_ with the part of their time that another type saves; 0: not at all. */
static void ops_charge(struct typed_ops *d, uint8_t types, double (*part_of)(const struct kp_costrules *, size_t))
{
    const struct kp_costrules *const x = d->cost.x;
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!kp_costrules_is_op(x, i) || !kp_costrules_in_steps(x, i)) continue;
        const double ns = kp_slowerops_self_ns(x->tree, i);
        d->all_ns += ns;
        if (!(kp_tree_event(x->tree, i)->device_type & types) || !(ns > 0)) continue;
        const double saved = part_of(x, i);
        if (!(saved > 0)) continue;
        d->ns += ns;
        kp_cost_add_node(&d->cost, i, saved * ns / (double)kp_costrules_ns(x, i));
    }
}

static const char *line_text(const struct kp_costrules *x, int32_t node)
{
    const uint32_t line = kp_costplace_line(x->tree, node);
    return line ? KP_TEXT(" at %s", kp_kineto_text(x->tree->trace, line)) : "";
}

/* Which op of the second step made the first double: the first step may still have another begin. */
static const char *origin_text(const struct kp_costrules *x)
{
    const struct kp_step *const step = &x->chosen->steps[x->chosen->step_count > 1];
    int32_t made = -1;
    for (size_t i = kp_longsteps_node(x->tree, step->start_ns);
         i < x->tree->count && x->tree->nodes[i].start_ns < step->end_ns; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (!kp_costrules_is_op(x, i) || is_view(name) || kp_costplace_op(x->tree, (int32_t)i) != (int32_t)i) continue;
        if (has_doubles(x, i) && made >= 0 &&
            kp_tree_event(x->tree, (size_t)made)->tid == kp_tree_event(x->tree, i)->tid)
            return KP_TEXT("; %s%s creates the first one", kp_costrules_name(x, made), line_text(x, made));
        if (has_doubles(x, i)) return KP_TEXT("; %s%s is the first to receive float64", name, line_text(x, (int32_t)i));
        made = KP_NAME_IS(name, "aten::to", "aten::_to_copy") ? (int32_t)i : -1;
    }
    return "";
}

void kp_rules_float64(struct kp_costrules *x)
{
    struct typed_ops d = {.cost = kp_cost_open(x)};
    struct kp_cost_rule rule = {0.10, 0, "float64", "", ""};
    if (x->out->has_gpu) works_charge(&d);
    else ops_charge(&d, KP_TYPES_DOUBLE, saved_of);
    if (!x->out->has_gpu && !x->tree->trace->record_shapes)
        kp_costrules_unjudged(x, "ops in float64 (kprof run --record-shapes)");
    if (!(d.ns > 0) || d.ns < SHARE_LEAST * d.all_ns) {
        kp_cost_drop(&d.cost);
        return;
    }
    rule.what = KP_TEXT("%.0f %% of the time in %s is float64 computation%s", 100 * d.ns / d.all_ns,
                        x->out->has_gpu ? "kernels" : "ops", origin_text(x));
    rule.change =
        x->out->has_gpu
            ? "Compute in float32: tensor.float() where data comes in (arrays of numpy are float64), and no "
              "model.double() and no set_default_dtype(). The cost is half of the time of large ops, less of "
              "small ones; of products float32 saves more."
            : "Compute in float32: tensor.float() where data comes in (arrays of numpy are float64), and no "
              "model.double() and no set_default_dtype(). The cost is half of the time of large ops, and less "
              "of small ones.";
    kp_cost_tell(&d.cost, &rule);
}

/* ---- bfloat16 ---- */

#define BFLOAT_SHARE_LEAST 0.1 /* of the time in ops */
#define BFLOAT_SAVED 0.9       /* of the products: float32 was 2 to 44 times as fast (decisions/185) */

/* It is known for x86 alone how torch does it. */
static bool is_slow_cpu(const struct kp_costrules *x)
{
    const char *const has = kp_kineto_fact(x->tree->trace, "kprof.instructions");
    return has && strstr(has, "avx2") && !strstr(has, "avx512bw") && !strstr(has, "avx_ne_convert");
}

static double products_saved(const struct kp_costrules *x, size_t node)
{
    return is_product(kp_costrules_name(x, (int32_t)node)) ? BFLOAT_SAVED : 0;
}

void kp_rules_bfloat16(struct kp_costrules *x)
{
    const struct kp_cost_rule rule = {
        0.10, 0, "bfloat-on-cpu",
        "this CPU has no instructions for bfloat16 (AVX-512, AVX-NE-CONVERT), and products in it are slow",
        "Compute in float32 on this CPU: no torch.autocast(\"cpu\"), no model.bfloat16(). The cost is about nine "
        "tenths of the time of matrix products and convolutions with bfloat16 inputs."};
    if (x->out->has_gpu || !is_slow_cpu(x)) return;
    struct typed_ops d = {.cost = kp_cost_open(x)};
    ops_charge(&d, KP_TYPES_BFLOAT16, products_saved);
    kp_cost_tell_if(&d.cost, &rule, d.ns > 0 && d.ns >= BFLOAT_SHARE_LEAST * d.all_ns);
}

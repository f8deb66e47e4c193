// SPDX-License-Identifier: Apache-2.0
/*
 * compilerule.c - torch.compile compiles in the middle of the run: which steps, what they have more, which size changes
 *
 * A trace shows of it forward's compilation. Backward is compiled where it first runs, and guards are built and caches
 * filled beside. So without a GPU such a step is charged with all that it has more than those that compile nothing.
 */

#include <stdio.h>
#include <stdlib.h>

#include "export/answers/advise/opsrules/opsrules.h"
#include "export/show/shapetext.h"

static const struct kp_cost_rule rule = {
    0.05, 1u << KP_SPLIT_IDLE | KP_RULE_TELLS_STEPS, KP_FINDING_COMPILE, "torch.compile recompiles during the run",
    "Find out why: TORCH_LOGS=recompiles. Mark sizes that change: torch._dynamo.mark_dynamic(tensor, dim). `kprof run "
    "--record-shapes` shows which sizes change."};

enum { STEPS_WARM = 2 }; /* a program compiles in its first steps */
#define REGION "Torch-Compiled Region"
enum { INPUTS_MOST = 64 };

struct compile_sum {
    struct kp_cost cost;
    int64_t until;
};

static void compile_charge(void *context, int32_t node, int64_t start_ns, int64_t end_ns)
{
    struct compile_sum *sum = context;
    if (start_ns < sum->until) start_ns = sum->until;
    if (start_ns >= end_ns) return;
    kp_cost_add(&sum->cost, node, start_ns, end_ns, 1);
    sum->until = end_ns;
}

/* ---- which size changes ---- */

struct input_sizes {
    size_t dims;
    double least[KP_DIMS_MOST], most[KP_DIMS_MOST];
};
struct sizes {
    struct input_sizes of[INPUTS_MOST];
    size_t count, calls;
    bool is_other; /* calls of another number of inputs or dimensions */
};

static void dims_take(struct sizes *s, size_t input, const struct kp_dims *dims)
{
    struct input_sizes *const of = &s->of[input];
    if (!s->calls) of->dims = dims->count;
    s->is_other |= of->dims != dims->count;
    for (size_t d = 0; d < dims->count && !s->is_other; d++) {
        if (!s->calls || dims->of[d] < of->least[d]) of->least[d] = dims->of[d];
        if (!s->calls || dims->of[d] > of->most[d]) of->most[d] = dims->of[d];
    }
}

/* Takes the shapes of a call's inputs, "[[8, 28, 64], [64, 64], []]". */
static void shapes_take(struct sizes *s, const char *text)
{
    size_t input = 0;
    struct kp_dims dims;
    for (; input < INPUTS_MOST && kp_shapetext_dims(&dims, text, input); input++) {
        if (dims.is_other) return;
        dims_take(s, input, &dims);
    }
    if (!input) return;
    s->is_other |= s->calls && s->count != input;
    s->count = input;
    s->calls++;
}

/* The shapes of the first op in a compiled region that has some; NULL: none was recorded. */
static const char *region_shapes(const struct kp_costrules *x, size_t region)
{
    const struct kp_tree *const tree = x->tree;
    for (size_t i = region + 1; i < tree->count && tree->nodes[i].start_ns < tree->nodes[region].end_ns; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        const uint32_t shapes = e->tid == kp_tree_event(tree, region)->tid ? kp_kineto_shapes(e) : 0;
        if (shapes && kp_costrules_is_op(x, i)) return kp_kineto_text(tree->trace, shapes);
    }
    return NULL;
}

static struct sizes sizes_find(const struct kp_costrules *x)
{
    struct sizes s = {.count = 0};
    for (size_t i = 0; i < x->tree->count; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (!kp_name_begins(name, REGION) || x->tree->nodes[i].on_device) continue;
        const char *const shapes = region_shapes(x, i);
        if (shapes) shapes_take(&s, shapes);
    }
    return s;
}

/* " (input 0 is (8, 28..48, 64))"; "": not known. `dim`: the first that changes. */
static const char *sizes_text(const struct kp_costrules *x, long *dim)
{
    const struct sizes s = sizes_find(x);
    for (size_t i = 0; i < s.count && s.calls > 1 && !s.is_other; i++) {
        char text[KP_DIMS_MOST * 48] = "";
        size_t used = 0;
        *dim = -1;
        for (size_t d = 0; d < s.of[i].dims; d++) {
            const double least = s.of[i].least[d], most = s.of[i].most[d];
            if (least != most && *dim < 0) *dim = (long)d;
            used += (size_t)snprintf(text + used, sizeof text - used, least == most ? "%s%.0f" : "%s%.0f..%.0f",
                                     d ? ", " : "", least, most);
        }
        if (*dim >= 0) return KP_TEXT(" (input %zu is (%s))", i, text);
    }
    *dim = -1;
    return "";
}

/* ---- what such steps have more ---- */

/* Is it code that was compiled again? "Torch-Compiled Region: 0/1" is; 0/0 is the first. */
static bool is_another(const char *region)
{
    const char *const number = kp_name_begins(region, REGION) ? strchr(region, '/') : NULL;
    return number && strtol(number + 1, NULL, 10) > 0;
}

/* Does such code run in a step for the first time? */
static bool is_again(const struct kp_costrules *x, const struct kp_step *step)
{
    const struct kp_tree *const tree = x->tree;
    struct kp_keyindex known = {0};
    bool is = false;
    for (size_t i = 0; !is && i < tree->count && tree->nodes[i].start_ns < step->end_ns; i++) {
        const size_t before = known.count;
        if (tree->nodes[i].on_device || !is_another(kp_costrules_name(x, (int32_t)i))) continue;
        (void)kp_keyindex_get(&known, tree->nodes[i].name);
        is = known.count > before && tree->nodes[i].start_ns >= step->start_ns;
    }
    kp_keyindex_fini(&known);
    return is;
}

/* Does a step compile since it is one of the first? */
static bool is_first(const struct kp_costrules *x, const struct kp_step *step)
{
    return step->number < STEPS_WARM && !is_again(x, step);
}

/* The median of the steps that compile nothing; 0: all do. */
static double usual_of(const struct kp_costrules *x, const double *of)
{
    struct kp_sample lengths = {0};
    for (size_t i = 0; i < x->out->steps; i++)
        if (!(of[i] > 0)) kp_sample_add(&lengths, (double)x->splits[i].step_ns);
    return kp_sample_end(&lengths, 0.5);
}

/* Charges all that these steps have more. Returns how much of it, a step that compiles, was seen as such. */
static double excess_charge(struct kp_costrules *x, double *of, size_t *at, size_t *count)
{
    const double usual = usual_of(x, of);
    double seen = 0;
    *count = 0;
    for (size_t i = 0; i < x->out->steps; i++) {
        if (!(of[i] > 0)) continue;
        const double more = (double)x->splits[i].step_ns - usual;
        at[(*count)++] = i;
        seen += of[i];
        if (!x->out->has_gpu && usual > 0 && more > of[i]) of[i] = more;
    }
    return *count ? seen / (double)*count : 0;
}

static void compiled_tell(struct kp_costrules *x, struct kp_finding *f, const size_t *at, size_t count, double seen_ns)
{
    long dim;
    const char *const sizes = sizes_text(x, &dim);
    const double each = f->step_ns * (double)x->out->steps / (double)count;
    f->what = KP_TEXT("torch.compile compiles again in %s%s: %.1f ms%s, %.1f of them before forward runs",
                      kp_costrules_numbers(x, at, count, KP_NUMBERS_MOST, ""), sizes, each / 1e6,
                      count > 1 ? " each" : "", seen_ns / 1e6);
    if (dim >= 0)
        f->change = KP_TEXT("Mark that size as one that changes: torch._dynamo.mark_dynamic(tensor, %ld), or "
                            "pad it to a few sizes. Why else: TORCH_LOGS=recompiles.",
                            dim);
    if (count == 1) f->once_ns = each, f->once_step = x->chosen->steps[at[0]].number;
    f->is_critical = count > 1 && f->share >= KP_SHARE_CRITICAL;
}

void kp_rules_compiling(struct kp_costrules *x)
{
    struct compile_sum sum = {.cost = kp_cost_open(x), .until = INT64_MIN};
    kp_compiles_each(x->tree, compile_charge, &sum);
    struct kp_cost cost = sum.cost;
    const size_t steps = x->out->steps;
    size_t count, *const at = kp_kineto_room(steps + 1, sizeof *at);
    for (size_t i = 0; i < steps; i++) {
        if (cost.of[i] > 0 && !x->chosen->ended_by && is_first(x, &x->chosen->steps[i])) cost.of[i] = 0;
        if (x->out->has_gpu && cost.of[i] > 0) cost.of[i] = (double)x->splits[i].cause_ns[KP_IDLE_COMPILE];
    }
    const double seen = excess_charge(x, cost.of, at, &count);
    cost.least = count == 1 && !is_first(x, &x->chosen->steps[at[0]]);
    struct kp_finding *const f = kp_cost_tell(&cost, &rule);
    if (f && !f->line) kp_costplaces_tell(&x->places->causes[KP_IDLE_COMPILE], x->tree->trace, f);
    if (f && count) compiled_tell(x, f, at, count, seen);
    free(at);
}

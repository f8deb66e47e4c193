// SPDX-License-Identifier: Apache-2.0
/*
 * kernelrules.c - kernels that differ from run to run, leave a GPU's units empty, multiply without tensor cores or in
 * float32, or change the layout of images
 */
#include "export/read/facts/vendor.h"

#include <math.h>
#include <stdlib.h>

#include "export/answers/advise/opsrules/opsrules.h"

static const struct kp_cost_rule tensor_cores = {
    0.10, 0, "tensor-cores-unused", "matrix products and convolutions in float32 that use no tensor cores",
    "Use them: torch.set_float32_matmul_precision(\"high\"), or torch.autocast(\"cuda\", torch.bfloat16)."};
static const struct kp_cost_rule few_blocks = {
    0.20, 0, "low-occupancy", "kernels with fewer blocks than multiprocessors leave most of the GPU empty",
    "Give a kernel more work: larger batches, longer sequences, or several small problems in one call (torch.bmm)."};
static const struct kp_cost_rule unstable = {0.05, 0, "unstable-kernels",
                                             "the duration of one kernel at one size varies a lot",
                                             "Look at the GPU's clock (nvidia-smi -q -d CLOCK,PERFORMANCE) and at what "
                                             "runs at the same time: heat or another process may slow it down."};

static const struct kp_cost_rule float32 = {
    0.10, KP_RULE_MILD, "mixed-precision", /* it is an upper bound, and changes what is computed */
    "most of the GPU time is float32 products and convolutions; 16 bits save at most half of it",
    "Compute forward and loss in torch.autocast(\"cuda\", torch.bfloat16). Other operators then move less memory as "
    "well."};
static const struct kp_cost_rule layout = {
    0.05, 0, "layout-changes", "kernels convert images from NCHW to NHWC and back around convolutions",
    "Keep one layout: model.to(memory_format=torch.channels_last), and each batch the same."};

#define SHARE_FLOAT32 0.5  /* of the compute, with the changes of layout that its convolutions need */
#define SHARE_COMPUTES 0.7 /* of a step: what is computed faster makes it shorter */
#define FLOAT32_SAVES 0.5
#define CV_UNSTABLE 1.0
#define FULL_ENOUGH 0.5 /* blocks per multiprocessor */
enum { UNSTABLE_LEAST = 11 };

static bool has_any(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strcasestr(name, *words)) return true;
    return false;
}

/* ---- tensor cores ---- */

static bool lacks_tensor_cores(const char *name)
{
    static const char *const products[] = {"gemm", "implicit_convolve", "scudnn", "gemv", "winograd", "wgrad", "dgrad",
                                           NULL};
    static const char *const single[] = {"sgemm", "simt", "ffma", "scudnn", "f32f32_f32f32", NULL};
    return has_any(name, products) && has_any(name, single) && !kp_vendor_is_matrix(name);
}

static double major_of(const struct kp_costrules *x) { return kp_costrules_fact(x, "deviceProperties.computeMajor"); }

/* Charges the kernels of such names. */
static struct kp_finding *kernels_judge(struct kp_costrules *x, bool (*is)(const char *name),
                                        const struct kp_cost_rule *rule)
{
    struct kp_cost cost = kp_cost_open(x);
    for (size_t i = 0; i < x->work_count; i++)
        if (x->works[i].part == KP_SPLIT_COMPUTE && is(kp_costrules_name(x, x->works[i].node)))
            kp_cost_add_work(&cost, &x->works[i], 1);
    return kp_cost_tell(&cost, rule);
}

static void tensor_cores_judge(struct kp_costrules *x)
{
    const double major = major_of(x);
    struct kp_finding *const f = major >= 7 ? kernels_judge(x, lacks_tensor_cores, &tensor_cores) : NULL;
    if (f && major == 7)
        f->change = "Use them: torch.autocast(\"cuda\", torch.float16); this GPU has no tensor cores for float32.";
}

/* ---- float32 ---- */

static bool is_layout(const char *name)
{
    static const char *const changes[] = {"nchwToNhwc", "nhwcToNchw", "ncdhwToNdhwc", "ndhwcToNcdhw", NULL};
    return has_any(name, changes);
}

/* TF32, too: its inputs are float32. */
static bool is_float32_product(const char *name)
{
    static const char *const products[] = {"gemm",  "convolv", "scudnn", "gemv", "winograd",
                                           "wgrad", "dgrad",   "fprop",  NULL};
    static const char *const single[] = {"sgemm", "simt", "ffma", "scudnn", "f32f32", "tf32", "s1688", "float", NULL};
    static const char *const others[] = {"f16", "float16", "half", "f64", "double", "complex", "e4m3", "e5m2", NULL};
    return has_any(name, products) && has_any(name, single) && !has_any(name, others) &&
           strncmp(name, "void at::native::", 17) != 0;
}

/* Kernels that use no tensor cores may be named already. */
static bool is_float32_left(const struct kp_costrules *x, const struct kp_device_work *w)
{
    const char *const name = kp_costrules_name(x, w->node);
    return w->part == KP_SPLIT_COMPUTE && is_float32_product(name) &&
           !(lacks_tensor_cores(name) && kp_costrules_find(x, tensor_cores.id));
}

static void float32_judge(struct kp_costrules *x)
{
    const double major = major_of(x), computes = x->out->mean_ns[KP_SPLIT_COMPUTE];
    struct kp_cost cost = kp_cost_open(x), all = kp_cost_open(x);
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        const bool is_product = is_float32_left(x, w);
        if (is_product) kp_cost_add_work(&cost, w, FLOAT32_SAVES);
        if (is_product || is_layout(kp_costrules_name(x, w->node))) kp_cost_add_work(&all, w, 1);
    }
    const bool is_most =
        major >= 7 && computes >= SHARE_COMPUTES * x->out->step_ns && kp_cost_mean(&all) >= SHARE_FLOAT32 * computes;
    kp_cost_drop(&all);
    struct kp_finding *const f = kp_cost_tell_if(&cost, &float32, is_most);
    if (f && major == 7)
        f->change = "Compute forward and loss in torch.autocast(\"cuda\", torch.float16), with a torch.amp.GradScaler. "
                    "Other operators then move less memory as well.";
}

/* ---- blocks ---- */

/* The charge is the share of the GPU that a kernel leaves empty, while it runs alone. */
static void few_blocks_judge(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    int64_t busy_until = 0;
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        if (w->part != KP_SPLIT_COMPUTE) continue;
        const int64_t next = i + 1 < x->work_count ? x->works[i + 1].start_ns : INT64_MAX;
        const int64_t from = w->start_ns > busy_until ? w->start_ns : busy_until,
                      to = w->end_ns < next ? w->end_ns : next;
        if (w->end_ns > busy_until) busy_until = w->end_ns;
        const double blocks = w->said ? (double)w->said->blocks_per_sm : -1;
        if (blocks > 0 && blocks < FULL_ENOUGH && from < to)
            kp_cost_add(&cost, kp_costrules_place(w), from, to, 1 - blocks);
    }
    kp_cost_tell(&cost, &few_blocks);
}

/* ---- unstable ---- */

struct kernel_group {
    double count, sum, squares;
    double *times;
    size_t capacity;
};

static uint64_t product(const uint32_t *sides) { return (uint64_t)sides[0] * sides[1] * sides[2]; }

/* A kernel of one size has one name and one grid. */
static uint64_t group_key(const struct kp_costrules *x, const struct kp_device_work *w)
{
    const uint64_t size = w->said ? product(w->said->grid) * 31 + product(w->said->block) : 0;
    return (uint64_t)kp_tree_event(x->tree, (size_t)w->node)->name << 32 | (uint32_t)(size ^ size >> 32);
}

static void group_add(struct kp_keyindex *groups, const struct kp_costrules *x, const struct kp_device_work *w)
{
    const double ns = (double)(w->end_ns - w->start_ns);
    struct kernel_group *const g = kp_keyindex_row(groups, group_key(x, w), &(struct kernel_group){0}, sizeof *g);
    g->times = kp_kineto_grow(g->times, &g->capacity, (size_t)g->count + 1, sizeof *g->times);
    g->times[(size_t)g->count++] = ns;
    g->sum += ns;
    g->squares += ns * ns;
}

static bool is_unstable(const struct kernel_group *g, double all)
{
    const double mean = g->sum / g->count, variance = g->squares / g->count - mean * mean;
    return g->count >= UNSTABLE_LEAST && g->sum >= unstable.bound * all && variance > 0 &&
           sqrt(variance) > CV_UNSTABLE * mean;
}

/* A kernel of a collective waits for other ranks, so its time tells nothing of this GPU. */
static bool is_grouped(const struct kp_costrules *x, const struct kp_device_work *w)
{
    return w->part == KP_SPLIT_COMPUTE && w->said && kp_spans_has(&x->chosen->in_steps, w->start_ns);
}

static void unstable_judge(struct kp_costrules *x)
{
    struct kp_keyindex groups = {0}; /* rows: struct kernel_group */
    struct kp_cost cost = kp_cost_open(x);
    const double all = x->out->step_ns * (double)x->chosen->step_count;
    for (size_t i = 0; i < x->work_count; i++)
        if (is_grouped(x, &x->works[i])) group_add(&groups, x, &x->works[i]);
    struct kernel_group *const of = groups.rows;
    for (size_t g = 0; g < groups.count; g++) {
        struct kernel_group *group = &of[g];
        group->sum = is_unstable(group, all) ? kp_quantile(group->times, (size_t)group->count, 0.5) : -1;
    }
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        const double usual = is_grouped(x, w) ? of[kp_keyindex_get(&groups, group_key(x, w))].sum : -1;
        if (usual >= 0 && (double)(w->end_ns - w->start_ns) > usual)
            kp_cost_add(&cost, kp_costrules_place(w), w->start_ns + (int64_t)usual, w->end_ns, 1);
    }
    for (size_t g = 0; g < groups.count; g++) free(of[g].times);
    kp_keyindex_fini(&groups);
    kp_cost_tell(&cost, &unstable);
}

void kp_rules_kernels(struct kp_costrules *x)
{
    tensor_cores_judge(x);
    float32_judge(x);
    kernels_judge(x, is_layout, &layout);
    few_blocks_judge(x);
    unstable_judge(x);
}

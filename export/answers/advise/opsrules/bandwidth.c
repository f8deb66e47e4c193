// SPDX-License-Identifier: Apache-2.0
/*
 * bandwidth.c - elementwise kernels that move their bytes far more slowly than the GPU's memory can
 *
 * The bytes are those of the op's inputs and of a result as large as the largest of them; the kernel's name tells the
 * type.
 */

#include "export/answers/advise/opsrules/opsrules.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/shapetext.h"

static const struct kp_cost_rule slow = {
    0.10, 0, "elementwise-slow", "elementwise kernels use little of the memory bandwidth",
    "Use contiguous tensors: .contiguous() once before the loop, no strided views, channels_last for images."};

/* GB/s by the vendor; a longer name stands before its beginning. */
static const struct {
    const char *name;
    double gbps;
} devices[] = {{"H200", 4800},
               {"H100 PCIe", 2000},
               {"H100 NVL", 3900},
               {"GH200", 4000},
               {"H100", 3350},
               {"B200", 8000},
               {"A100-SXM4-80", 2039},
               {"A100 80GB PCIe", 1935},
               {"A100", 1555},
               {"A800", 1555},
               {"A40", 696},
               {"A30", 933},
               {"A10", 600},
               {"V100", 900},
               {"T4", 320},
               {"L40S", 864},
               {"L40", 864},
               {"L4", 300},
               {"RTX 5090", 1792},
               {"RTX 4090", 1008},
               {"RTX 3090", 936},
               {"P100", 732}};

/* Shares of the bandwidth: below it a kernel is slow; what can be reached. */
#define SHARE_SLOW 0.30
#define SHARE_REACHED 0.80
enum { KERNEL_LEAST_NS = 10000 };

static double device_gbps(const char *name)
{
    for (size_t i = 0; name && i < sizeof devices / sizeof *devices; i++)
        if (strstr(name, devices[i].name)) return devices[i].gbps;
    return 0;
}

static double element_bytes(const char *kernel)
{
    if (strstr(kernel, "Half") || strstr(kernel, "BFloat16")) return 2;
    if (strstr(kernel, "double") || strstr(kernel, "long")) return 8;
    return strstr(kernel, "float") || strstr(kernel, "int") ? 4 : 0;
}

/* The innermost op around the call that has shapes. */
static const char *shapes_of(const struct kp_costrules *x, int32_t node)
{
    for (; node >= 0; node = x->tree->nodes[node].parent) {
        const uint32_t shapes = kp_tree_event(x->tree, (size_t)node)->shapes;
        if (shapes) return kp_kineto_text(x->tree->trace, shapes);
    }
    return NULL;
}

/* GB/s, 0: not known. */
static double kernel_gbps(const struct kp_costrules *x, const struct kp_device_work *w)
{
    const char *name = kp_costrules_name(x, w->node), *shapes = w->call < 0 ? NULL : shapes_of(x, w->call);
    double all, largest;
    if (!shapes || !strstr(name, "elementwise_kernel") || w->end_ns - w->start_ns < KERNEL_LEAST_NS) return 0;
    kp_shapetext_numbers(shapes, &all, &largest);
    return (all + largest) * element_bytes(name) / (double)(w->end_ns - w->start_ns);
}

void kp_rules_bandwidth(struct kp_costrules *x)
{
    const double most = device_gbps(kp_kineto_fact(x->tree->trace, "deviceProperties.name"));
    struct kp_cost cost = kp_cost_open(x);
    if (!x->tree->trace->record_shapes) kp_costrules_unjudged(x, "bandwidth of kernels (kprof run --record-shapes)");
    for (size_t i = 0; i < x->work_count && most > 0; i++) {
        const struct kp_device_work *w = &x->works[i];
        const double share = w->part == KP_SPLIT_COMPUTE ? kernel_gbps(x, w) / most : 0;
        if (share > 0 && share < SHARE_SLOW) kp_cost_add_work(&cost, w, 1 - share / SHARE_REACHED);
    }
    kp_cost_tell(&cost, &slow);
}

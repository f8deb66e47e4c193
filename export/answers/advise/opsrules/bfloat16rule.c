// SPDX-License-Identifier: Apache-2.0
/*
 * bfloat16rule.c - products in bfloat16 on a CPU where torch has no fast way to compute them
 *
 * oneDNN asks for AVX-512, or for AVX-NE-CONVERT. Without both torch has a plain loop. Which instructions the CPU has,
 * the recorder notes: the reader's own CPU is another one. Types of inputs tell the ops (KPROF_RECORD_SHAPES).
 */
#include "export/answers/advise/opsrules/opsrules.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/shapetext.h"

#define SHARE_LEAST 0.1 /* of the time in ops */
#define SAVED 0.9       /* of the products: float32 was 2 to 44 times as fast (decisions/185) */

/* Of x86 alone is known what torch does. */
static bool is_slow_cpu(const struct kp_costrules *x)
{
    const char *const has = kp_kineto_fact(x->tree->trace, "kprof.instructions");
    return has && strstr(has, "avx2") && !strstr(has, "avx512bw") && !strstr(has, "avx_ne_convert");
}

static double saved_of(const struct kp_costrules *x, size_t node)
{
    return kp_float64_is_product(kp_costrules_name(x, (int32_t)node)) ? SAVED : 0;
}

void kp_rules_bfloat16(struct kp_costrules *x)
{
    const struct kp_cost_rule rule = {
        0.10, 0, "bfloat-on-cpu",
        "this CPU has no instructions for bfloat16 (AVX-512, AVX-NE-CONVERT), and products in it are slow",
        "Compute in float32 on this CPU: no torch.autocast(\"cpu\"), no model.bfloat16(). The cost is about nine "
        "tenths of the time of matrix products and convolutions with bfloat16 inputs."};
    if (x->out->has_gpu || !is_slow_cpu(x)) return;
    struct kp_typed_ops d = {.cost = kp_cost_open(x)};
    kp_typed_ops_charge(&d, KP_TYPES_BFLOAT16, saved_of);
    if (d.ns > 0 && d.ns >= SHARE_LEAST * d.all_ns) kp_cost_tell(&d.cost, &rule);
    else kp_cost_drop(&d.cost);
}

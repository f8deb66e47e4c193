// SPDX-License-Identifier: Apache-2.0
/*
 * diffbatch.c - how many samples a step takes: the first dimension of what most layers are given
 *
 * Layers are ops whose first input has the samples in front. A model that folds its sequence into the samples has their
 * product there, which is as good for a comparison: it changes as the batch does.
 */
#include "export/answers/diff/diff.h"

#include <stdlib.h>
#include <string.h>

static bool is_layer(const char *op)
{
    static const char *const layers[] = {
        "aten::linear",     "aten::conv1d",     "aten::conv2d",
        "aten::conv3d",     "aten::layer_norm", "aten::batch_norm",
        "aten::group_norm", "aten::max_pool2d", "aten::scaled_dot_product_attention",
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(op, layers[i]) == 0) return true;
    return false;
}

static void calls_add(struct kp_diff_batches *b, int64_t size, double calls)
{
    size_t i = 0;
    while (i < b->count && b->of[i].size != size) i++;
    if (i == KP_DIFF_BATCHES) return;
    if (i == b->count) {
        b->of[b->count].size = size;
        b->of[b->count++].calls = 0;
    }
    b->of[i].calls += calls;
}

void kp_diff_batches_take(struct kp_diff_batches *b, const char *op, const char *shapes)
{
    if (strncmp(shapes, "[[", 2) != 0 || !is_layer(op)) return;
    char *end;
    const long long size = strtoll(shapes + 2, &end, 10);
    if (*end != ',' || size <= 0) return; /* one dimension, or none: a layer without samples in front */
    b->calls++;
    calls_add(b, size, 1);
}

void kp_diff_batches_merge(struct kp_diff_batches *to, const struct kp_diff_batches *from)
{
    to->calls += from->calls;
    for (size_t i = 0; i < from->count; i++) calls_add(to, from->of[i].size, from->of[i].calls);
}

int64_t kp_diff_batches_size(const struct kp_diff_batches *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->of[i].calls > b->calls / 2) return b->of[i].size;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* keyavg_flops.c - computes an op's floating point operations from its input sizes, by torch's formulas */
#include "export/answers/torchtable/keyavg.h"

#include <stdlib.h>
#include <string.h>

#define MAX_INPUTS 16
#define MAX_DIMS 16

struct dim_sizes {
    int64_t dim[MAX_INPUTS][MAX_DIMS];
    unsigned dims[MAX_INPUTS], count;
};

/* Reads "[[8, 3], [], [4]]". */
static void sizes_read(struct dim_sizes *s, const char *text)
{
    unsigned level = 0;
    s->count = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '[') {
            if (++level == 2 && s->count < MAX_INPUTS) s->dims[s->count] = 0;
        } else if (*p == ']') {
            if (level-- == 2 && s->count < MAX_INPUTS) s->count++;
        } else if (level == 2 && s->count < MAX_INPUTS && *p >= '0' && *p <= '9') {
            char *end;
            int64_t value = strtoll(p, &end, 10);
            if (s->dims[s->count] < MAX_DIMS) s->dim[s->count][s->dims[s->count]++] = value;
            p = end - 1;
        }
    }
}

static double product(const struct dim_sizes *s, unsigned input)
{
    double value = 1;
    for (unsigned i = 0; i < s->dims[input]; i++) value *= (double)s->dim[input][i];
    return value;
}

static double product_flops(const struct dim_sizes *s, unsigned first, bool batched)
{
    if (s->count < first + 2 || !s->dims[first] || !s->dims[first + 1]) return 0;
    double last = (double)s->dim[first][s->dims[first] - 1];
    double batch = batched ? (double)s->dim[first][0] : 1;
    if (last == 0 || batch == 0) return 0;
    return 2 * product(s, first) / last / batch * product(s, first + 1);
}

static const char *line_at(const char *text, unsigned index)
{
    for (; index && *text; index--) text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
    return text;
}

static bool pair_read(const char *text, int64_t pair[2])
{
    char *end;
    if (*text != '[') return false;
    pair[0] = strtoll(text + 1, &end, 10);
    if (*end != ',') return false;
    pair[1] = strtoll(end + 1, &end, 10);
    return *end == ']';
}

/* Whether all sizes are so small that conv_flops() does not overflow. */
static bool is_sane(const int64_t *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (values[i] < 0 || values[i] > INT32_MAX) return false;
    return true;
}

static double conv_flops(const struct dim_sizes *s, const char *concrete)
{
    int64_t stride[2], pad[2], dilation[2];
    if (s->count < 7 || s->dims[0] != 4 || s->dims[1] != 4) return 0;
    int64_t groups = strtoll(line_at(concrete, 6), NULL, 10);
    if (groups == 0 || !pair_read(line_at(concrete, 3), stride) || !pair_read(line_at(concrete, 4), pad) ||
        !pair_read(line_at(concrete, 5), dilation) || stride[0] == 0 || stride[1] == 0)
        return 0;
    const int64_t *in = s->dim[0], *weight = s->dim[1];
    if (!is_sane(in, 4) || !is_sane(weight, 4) || !is_sane(stride, 2) || !is_sane(pad, 2) || !is_sane(dilation, 2))
        return 0;
    int64_t high = (in[2] + 2 * pad[0] - dilation[0] * (weight[2] - 1) - 1) / stride[0] + 1;
    int64_t wide = (in[3] + 2 * pad[1] - dilation[1] * (weight[3] - 1) - 1) / stride[1] + 1;
    return 2.0 * (double)in[0] * (double)high * (double)wide * (double)weight[2] * (double)weight[3] * (double)in[1] *
           (double)weight[0] / (double)groups;
}

double kp_flops(const char *name, const char *shapes, const char *concrete, bool is_first_tensor)
{
    struct dim_sizes s;
    if (strncmp(name, "aten::", 6) != 0) return 0;
    name += 6;
    bool multiply = strcmp(name, "mul") == 0 || strcmp(name, "add") == 0;
    bool mm = strcmp(name, "mm") == 0, addmm = strcmp(name, "addmm") == 0;
    bool bmm = strcmp(name, "bmm") == 0, baddbmm = strcmp(name, "baddbmm") == 0;
    bool conv = strcmp(name, "conv2d") == 0;
    if (!(multiply || mm || addmm || bmm || baddbmm || conv)) return 0;
    sizes_read(&s, shapes);
    if (conv) return conv_flops(&s, concrete);
    if (multiply)
        return s.count && (s.dims[0] || is_first_tensor) ? product(&s, 0)
                                                         : 0; /* a tensor without dimensions has one number */
    return product_flops(&s, addmm || baddbmm, bmm || baddbmm);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * evalpasses.c - how many forward passes ops without gradients are, by how often each runs
 *
 * A training step may hold several passes (accumulation, two towers, two models), so it is no unit. Each op of a model
 * runs as often in every pass. So the greatest common divisor of how often ops ran is how many passes they were, where
 * a model has ops that it runs differently often. One that runs all of its ops equally often does not tell passes from
 * layers: there a pass is what a training step has.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"

#define ONCE_LEAST 0.75 /* of the calls of a training step: attention without gradients runs fewer ops */
#define SAME_MOST 1.001 /* times: ops that a model runs as often in each pass */
enum { FEW_PASSES_LEAST = 2 };
#define NAMES_SHARE 0.5 /* of the time of the ops that are looked at: those that run more often without gradients */

bool kp_evalsteps_is_layer(const char *name)
{
    return KP_NAME_IS(name, "aten::linear", "aten::addmm", "aten::mm", "aten::matmul", "aten::convolution",
                      "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::embedding", "aten::layer_norm",
                      "aten::batch_norm", "aten::group_norm", "aten::lstm", "aten::gru");
}

bool kp_evalsteps_has_gradients(const struct kp_kineto_event *e)
{
    return e->flags & KP_KINETO_HAS_SEQ && e->number >= 0;
}

bool kp_evalsteps_is_forward(const struct kp_kineto_event *e) { return kp_evalsteps_has_gradients(e) && !e->fwd_tid; }

static size_t common(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Calls of one name without gradients, beyond the usual. */
static double calls_more(const struct kp_forward_names *names, size_t n, size_t step)
{
    const struct kp_forward_name *const f = &names->of[n];
    return (double)f->calls[step] - (step < names->steps ? f->usual : 0);
}

/* The size of a pass by each name, in whole training steps. False: of the names that take most time, others have more
 * of it. Layers alone decide if there are some: a loss takes long as well, and longer beside other programs. */
static bool steps_say(const struct kp_forward_names *names, size_t step, size_t of[KP_FORWARD_NAMES_MOST])
{
    int64_t all[2] = {0}, have[2] = {0}; /* of others, and of layers */
    for (size_t n = 0; n < names->count; n++) {
        const struct kp_forward_name *const f = &names->of[n];
        const double said = f->a_step > 0 ? calls_more(names, n, step) / f->a_step : 0;
        of[n] = said < ONCE_LEAST ? 0 : (size_t)(said + 0.5);
        if (n >= KP_FORWARD_NAMES_LONG || !(f->a_step > 0)) continue;
        all[f->is_layer] += f->ns;
        have[f->is_layer] += of[n] ? f->ns : 0;
    }
    const bool of_layers = all[true] > 0;
    return all[of_layers] && (double)have[of_layers] >= NAMES_SHARE * (double)all[of_layers];
}

/* How long the names take that say the same. */
static int64_t time_of(const struct kp_forward_names *names, const size_t *of, size_t said)
{
    int64_t ns = 0;
    for (size_t n = 0; n < names->count; n++) ns += of[n] == said ? names->of[n].ns : 0;
    return ns;
}

/* The size that has most time, by layers if there are some: other things that are drawn or scored may run more
 * often. */
static size_t steps_by_names(const struct kp_forward_names *names, size_t step, size_t of[KP_FORWARD_NAMES_MOST])
{
    size_t found = 0;
    int64_t most = 0, ns;
    bool has_layers = false;
    if (!steps_say(names, step, of)) return 0;
    for (size_t n = 0; n < names->count; n++) has_layers |= of[n] && names->of[n].is_layer;
    for (size_t n = 0; n < names->count; n++) {
        if (!of[n] || of[n] == found || (has_layers && !names->of[n].is_layer)) continue;
        if ((ns = time_of(names, of, of[n])) <= most) continue;
        most = ns;
        found = of[n];
    }
    return found;
}

/* How often a name runs for each of its calls in a training step. */
static double ratio_of(const struct kp_forward_names *names, size_t step, size_t n)
{
    return names->of[n].a_step > 0 ? calls_more(names, n, step) / names->of[n].a_step : 0;
}

static bool is_same(double a, double b) { return a <= b * SAME_MOST && b <= a * SAME_MOST; }

/* That of most time: attention without gradients runs other ops, which differ. */
static double ratio_find(const struct kp_forward_names *names, size_t step, const size_t *of, size_t steps)
{
    double found = 0;
    int64_t most = 0;
    for (size_t n = 0; n < names->count; n++) {
        const double ratio = ratio_of(names, step, n);
        int64_t ns = 0;
        if (of[n] != steps || is_same(ratio, found)) continue;
        for (size_t k = 0; k < names->count; k++)
            if (of[k] == steps && is_same(ratio_of(names, step, k), ratio)) ns += names->of[k].ns;
        if (ns > most) most = ns, found = ratio;
    }
    return found;
}

size_t kp_evalsteps_passes(const struct kp_forward_names *names, size_t step)
{
    size_t of[KP_FORWARD_NAMES_MOST], trained = 0, ran = 0;
    double first = 0;
    bool differ = false;
    const size_t steps = steps_by_names(names, step, of);
    const double ratio = steps ? ratio_find(names, step, of, steps) : 0;
    for (size_t n = 0; steps && n < names->count; n++) {
        const double a_step = names->of[n].a_step, calls = calls_more(names, n, step);
        if (of[n] != steps || !is_same(ratio_of(names, step, n), ratio)) continue;
        differ |= first > 0 && a_step != first;
        first = a_step;
        trained = common(trained, (size_t)a_step);
        ran = common(ran, (size_t)calls);
    }
    return differ && trained > 1 && ran > steps ? ran : steps;
}

double kp_evalsteps_median(const uint32_t *calls, size_t steps)
{
    struct kp_sample values = {0};
    for (size_t i = 0; i < steps; i++) kp_sample_add(&values, calls[i]);
    return kp_sample_end(&values, 0.5);
}

double kp_evalsteps_usual(const uint32_t *without, size_t steps)
{
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < steps; i++) least = without[i] < least ? without[i] : least;
    return steps > KP_EVALSTEPS_FEW ? kp_evalsteps_median(without, steps) : least;
}

/* One of two or three steps runs passes that the others have not. Two of them could not be most steps. */
static bool is_one_of_few(const struct kp_passes *of, size_t steps, size_t found, size_t trains)
{
    size_t passes = 0;
    for (size_t i = 0; i < steps; i++) passes += of[i].without;
    return steps <= KP_EVALSTEPS_FEW && found == 1 && trains && trains == steps - 1 && passes >= FEW_PASSES_LEAST;
}

/* Do most steps train alone? Else passes without backward are a part of the training. */
bool kp_evalsteps_are(const struct kp_passes *of, size_t steps, size_t least)
{
    size_t found = 0, trains = 0;
    for (size_t i = 0; i < steps; i++) {
        found += of[i].without >= least;
        trains += of[i].with && !of[i].without;
    }
    if (is_one_of_few(of, steps, found, trains)) return true;
    return found && trains > 2 * found && trains + found > steps * 9 / 10;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * evalkind.c - what passes without gradients are: a rollout, an evaluation, or not known
 *
 * A rollout draws from what the model says. An evaluation is known by its names, as Module.eval(), a function or a
 * range "validate", or by a loader of its own, which its steps ask beside that of the training. An agent that acts, a
 * teacher and a target network run such passes, too, so without these signs passes are called no evaluation.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"

#include <ctype.h>
#include <strings.h>

#include "export/read/frames/framename.h"

#define OTHER_ASKS 2 /* more a step: a first batch, and the end of the loader; the end alone is one of an epoch */

static const struct kp_evalkind group = {"group", " of gradient-free passes", "gradient-free passes",
                                         "run these passes less often, or on many samples at once"};
static const struct kp_evalkind evaluation = {"evaluation", "", "evaluations",
                                              "evaluate less often or on fewer batches"};
static const struct kp_evalkind rollout = {"rollout", "", "rollouts",
                                           "let one pass process many samples (environments, prompts)"};

bool kp_evalkind_is_name(const char *name)
{
    static const char *const words[] = {"eval", "valid", "test"};
    if (!name || *name == '<' || strcasestr(name, "train")) return false;
    for (const char *at = name; *at; at++) {
        const bool is_begin = at == name || !isalpha((unsigned char)at[-1]) || isupper((unsigned char)*at);
        for (size_t i = 0; is_begin && i < sizeof words / sizeof *words; i++)
            if (strncasecmp(at, words[i], strlen(words[i])) == 0) return true;
    }
    return false;
}

/* Is something drawn from what the model says, as in a rollout or a generation? The training needs that: it cannot be
 * done less often. */
static bool is_draw(const struct kp_costrules *x, size_t i)
{
    return kp_costrules_is_op(x, i) &&
           KP_NAME_IS(kp_costrules_name(x, (int32_t)i), "aten::multinomial", "aten::normal", "aten::bernoulli");
}

/* A call of Python, or a range of the program. */
static bool is_named(const struct kp_costrules *x, size_t i)
{
    const char *const name = kp_costrules_name(x, (int32_t)i);
    if (x->tree->nodes[i].is_python) return kp_evalkind_is_name(kp_framename_part(name));
    return kp_tree_event(x->tree, i)->kind == KP_KINETO_ANNOTATION && kp_evalkind_is_name(name);
}

/* Does the loader give batches where no step is? */
static bool asks_outside(const struct kp_costrules *x)
{
    for (size_t i = 0; i < x->tree->count; i++)
        if (x->loaders[i] == (int32_t)i && kp_costrules_step(x, i) == x->chosen->step_count) return true;
    return false;
}

const struct kp_evalkind *kp_evalkind_of(const struct kp_costrules *x, const struct kp_evalsigns *signs)
{
    bool draws = false, named = signs->is_named;
    for (size_t i = 0; i < x->tree->count; i++) {
        const bool is_inside = kp_spans_has(signs->times, x->tree->nodes[i].start_ns);
        const bool is_outside = signs->has_outside && kp_costrules_step(x, i) == x->chosen->step_count;
        draws |= is_inside && is_draw(x, i);
        named |= (is_inside || is_outside) && is_named(x, i);
    }
    if (draws) return &rollout;
    if (named || signs->more_asks >= OTHER_ASKS || (signs->has_outside && asks_outside(x))) return &evaluation;
    return &group;
}

const struct kp_evalkind *kp_evalkind_unknown(void) { return &group; }

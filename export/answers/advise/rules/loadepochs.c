// SPDX-License-Identifier: Apache-2.0
/*
 * loadepochs.c - do the steps that wait long for a loader with workers begin an epoch?
 *
 * There the loader ends its workers and starts others, where it does not keep them. Calls of Python show the start. The
 * ranges show that such a step asks twice: it gets the end of one epoch, and the first batch of the next.
 */
#include "export/answers/advise/rules/loadwaits.h"

#include <stdlib.h>

#include "export/answers/advise/stepkinds/longsteps.h"

#define EPOCHS_SHARE 0.75 /* of the time that such steps wait */

struct asked {
    size_t starts, batches;
};

static struct asked asked_in(const struct kp_costrules *x, const struct kp_step *step)
{
    static const char of_workers[] = "enumerate(DataLoader)#_MultiProcessing";
    const struct kp_tree *const tree = x->tree;
    struct asked asked = {0};
    for (size_t i = kp_longsteps_node(tree, step->start_ns); i < tree->count; i++) {
        if (tree->nodes[i].start_ns >= step->end_ns) break;
        if (kp_node_is(tree, i, KP_NAME_LOADER_START)) asked.starts++;
        else if (kp_node_is(tree, i, KP_NAME_LOADER))
            asked.batches += strncmp(kp_costrules_name(x, (int32_t)i), of_workers, sizeof of_workers - 1) == 0;
    }
    return asked;
}

/* How many batches most steps ask for. */
static double usual_of(const struct asked *of, size_t steps)
{
    double *const sorted = kp_kineto_room(steps + 1, sizeof *sorted);
    for (size_t i = 0; i < steps; i++) sorted[i] = (double)of[i].batches;
    const double usual = kp_quantile(sorted, steps, 0.5);
    free(sorted);
    return usual;
}

bool kp_loadepochs_tell(const struct kp_costrules *x, const double *waits, struct kp_finding *f)
{
    const size_t steps = x->chosen->step_count;
    struct asked *const of = kp_kineto_zeros(steps + 1, sizeof *of);
    double all_ns = 0, began_ns = 0, started_ns = 0;
    for (size_t i = 0; i < steps; i++) of[i] = asked_in(x, &x->chosen->steps[i]);
    const double usual = usual_of(of, steps);
    for (size_t i = 0; i < steps; i++) {
        if (!(waits[i] > 0)) continue;
        all_ns += waits[i];
        began_ns += usual > 0 && (double)of[i].batches == usual + 1 ? waits[i] : 0;
        started_ns += of[i].starts && usual > 0 ? waits[i] : 0;
    }
    free(of);
    const bool are_started = all_ns > 0 && started_ns >= EPOCHS_SHARE * all_ns;
    if (!are_started && (all_ns <= 0 || began_ns < EPOCHS_SHARE * all_ns)) return false;
    f->what =
        kp_costrules_text(x, "%s; an epoch begins there%s", f->what, are_started ? ", and starts workers again" : "");
    f->change = are_started ? KP_LOADER_KEEPS
                            : "Keep the workers from epoch to epoch: DataLoader(..., persistent_workers=True). If they "
                              "are kept: fewer, longer epochs, or cheaper first items.";
    return true;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * loadepochs.c - do the steps that wait long for a loader begin an epoch, or does each step?
 *
 * There a loader ends its workers and starts others, where it does not keep them. Calls of Python show the start. The
 * ranges show that such a step asks twice: it gets the end of one epoch, and the first batch of the next. A start lies
 * between the two, in no range, so the cost is told as one without it. The step has both sides of that border: the
 * last batch, the end of the workers and what the program does then, and the first batch of the next epoch.
 *
 * A new iterator draws its seed before it gives the first batch. A step that draws one for each batch makes a new
 * iterator, next(iter(loader)), and pays for the begin of an epoch each time.
 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include <stdlib.h>

#include "export/answers/advise/stepkinds/longsteps.h"

#define EPOCHS_SHARE 0.75 /* of the time that such steps wait */
#define EACH_SHARE 0.75   /* of all batches: an iterator gave no other */
enum { EACH_LEAST = 3, SEED_NEAR = 32 /* ops: those of a sampler lie between */ };

struct asked {
    size_t starts, batches, of_workers, first; /* first: that a new iterator gave */
};

/* How many batches most steps ask for. */
static double usual_of(const struct asked *of, size_t steps)
{
    struct kp_sample all = {0};
    for (size_t i = 0; i < steps; i++) kp_sample_add(&all, (double)of[i].of_workers);
    return kp_sample_end(&all, 0.5);
}

/* Did the loader draw a seed, random_().item(), between this call for a batch and the last? */
static bool is_first_batch(const struct kp_costrules *x, size_t call)
{
    const struct kp_tree *const tree = x->tree;
    bool is_read = false;
    for (size_t i = call, seen = 0; i-- > 0 && seen < SEED_NEAR && !kp_node_is(tree, i, KP_NAME_LOADER);) {
        if (kp_tree_event(tree, i)->kind != KP_KINETO_OP) continue;
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (is_read && strcmp(name, "aten::random_") == 0) return true;
        if (strcmp(name, "aten::_local_scalar_dense") != 0) is_read = strcmp(name, "aten::item") == 0;
        seen++;
    }
    return false;
}

static struct asked asked_in(const struct kp_costrules *x, const struct kp_step *step)
{
    const struct kp_tree *const tree = x->tree;
    struct asked asked = {0};
    for (size_t i = kp_longsteps_node(tree, step->start_ns); i < tree->count; i++) {
        if (tree->nodes[i].start_ns >= step->end_ns) break;
        if (kp_node_is(tree, i, KP_NAME_LOADER_START)) asked.starts++;
        else if (kp_node_is(tree, i, KP_NAME_LOADER)) {
            asked.batches++;
            asked.of_workers += kp_kineto_is_of_workers(kp_costrules_name(x, (int32_t)i));
            asked.first += is_first_batch(x, i);
        }
    }
    return asked;
}

bool kp_loadepochs_each(const struct kp_costrules *x, struct kp_finding *f)
{
    size_t batches = 0, first = 0;
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        const struct asked asked = asked_in(x, &x->chosen->steps[i]);
        batches += asked.batches;
        first += asked.first;
    }
    if (first < EACH_LEAST || (double)first < EACH_SHARE * (double)batches) return false;
    f->what = "the step waits for data, because each step makes a new iterator of the DataLoader for one batch";
    f->change =
        "Make the iterator once, before the loop: it = iter(loader). Call next(it) in each step, and iter(loader) "
        "again only at StopIteration. Each new iterator shuffles all items again, and starts workers that "
        "are not kept.";
    return true;
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
        began_ns += usual > 0 && (double)of[i].of_workers == usual + 1 ? waits[i] : 0;
        started_ns += of[i].starts && usual > 0 ? waits[i] : 0;
    }
    free(of);
    const bool are_started = all_ns > 0 && started_ns >= EPOCHS_SHARE * all_ns;
    if (!are_started && (all_ns <= 0 || began_ns < EPOCHS_SHARE * all_ns)) return false;
    f->what = KP_TEXT("%s; one epoch ends and the next begins there%s", f->what,
                      are_started ? ", and starts workers again"
                      : kp_costrules_has_calls(x)
                          ? ""
                          : ". The cost is at least this: a start of workers (--with-stack 1) is not in it");
    f->change = are_started ? KP_LOADER_KEEPS
                            : "Keep the workers from epoch to epoch: DataLoader(..., persistent_workers=True). If they "
                              "are kept: fewer, longer epochs, or cheaper first items.";
    return true;
}

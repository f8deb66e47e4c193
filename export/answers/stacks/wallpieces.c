// SPDX-License-Identifier: Apache-2.0
/*
 * wallpieces.c - lays the time of a trace out as call paths, piece by piece
 *
 * Whether the steps are so little of the trace that they alone are shown is known at its end. Until then what lies
 * beside them is kept apart, as the paths' rest.
 */
#include "export/answers/stacks/walltime.h"

#include <stdlib.h>

#include "export/read/tree/treepieces.h"

struct kp_wallpieces {
    struct kp_treepieces *trees;
    struct kp_calltree *paths;
    struct kp_wall_options options;
    struct kp_chosen chosen;
    bool all;
};

static void spans_join(struct kp_spans *into, const struct kp_spans *spans)
{
    kp_spans_add_all(into, spans);
    kp_spans_settle(into);
}

/* The call that the main thread was in as the piece before ended may lie in that one's last step. */
static bool tree_add(void *context, struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_wallpieces *const p = context;
    struct kp_wall_told told;
    kp_chosen_add_steps(&p->chosen, chosen);
    spans_join(&p->chosen.spans, &chosen->spans);
    spans_join(&p->chosen.in_steps, &chosen->in_steps);
    kp_tree_set_forward_stacks(tree);
    p->options.within = p->all ? NULL : &p->chosen.in_steps;
    p->options.goes_on = chosen->goes_on;
    kp_wall_add(p->paths, tree, &p->options, &told);
    return !told.is_unfit;
}

struct kp_wallpieces *kp_wallpieces_open(const struct kp_wall_options *options, bool all)
{
    struct kp_wallpieces *const p = kp_kineto_zeros(1, sizeof *p);
    p->options = *options;
    p->all = all;
    p->options.seam = kp_wall_seam_open();
    p->paths = kp_calltree_open();
    p->trees = kp_treepieces_open(tree_add, p);
    return p;
}

void kp_wallpieces_close(struct kp_wallpieces *p)
{
    kp_treepieces_close(p->trees);
    kp_wall_seam_close(p->options.seam);
    if (p->paths) kp_calltree_close(p->paths);
    kp_chosen_fini(&p->chosen);
    free(p);
}

struct kp_kineto_pieces *kp_wallpieces_reading(struct kp_wallpieces *p) { return kp_treepieces_reading(p->trees); }

struct kp_calltree *kp_wallpieces_end(struct kp_wallpieces *p, struct kp_kineto *rest, struct kp_wall_told *told,
                                      struct kp_chosen *chosen)
{
    struct kp_calltree *const paths = p->paths;
    if (rest->windows || !kp_treepieces_end(p->trees, rest)) return NULL;
    const bool is_of_steps = !p->all && p->chosen.step_count && kp_chosen_is_of_steps(&p->chosen);
    if (!is_of_steps) kp_calltree_count_rest(paths);
    kp_wall_seam_sums(p->options.seam, !is_of_steps, told);
    *chosen = p->chosen;
    p->chosen = (struct kp_chosen){0};
    p->paths = NULL;
    return paths;
}

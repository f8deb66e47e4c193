// SPDX-License-Identifier: Apache-2.0
/* toppieces.c - the rows and the head of a report, added up over the pieces of a trace */
#include "export/answers/top/toprows.h"

#include <stdlib.h>

#include "export/read/tree/treepieces.h"

struct kp_toppieces {
    enum kp_top_by by;
    struct kp_treepieces *trees;
    struct kp_kineto *texts; /* has the strings of `top` */
    struct kp_top top;
    struct kp_summary_parts times;
    struct kp_stepparts parts;
    struct kp_chosen steps;
    kp_toppiece_fn give; /* or NULL */
    void *context;
};

static bool tree_add(void *context, struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_toppieces *p = context;
    struct kp_top top;
    kp_tree_fill_calls(tree);
    kp_tree_set_forward_stacks(tree);
    kp_top_build(&top, tree, chosen, p->by);
    kp_top_add(&p->top, &top);
    kp_top_fini(&top);
    kp_summary_add(&p->times, tree, chosen);
    kp_stepparts_add(&p->parts, tree, chosen);
    kp_chosen_add_steps(&p->steps, chosen);
    if (p->give) p->give(p->context, tree, chosen);
    return true;
}

struct kp_toppieces *kp_toppieces_open(enum kp_top_by by, kp_toppiece_fn give, void *context)
{
    struct kp_toppieces *const p = kp_kineto_zeros(1, sizeof *p);
    *p = (struct kp_toppieces){.by = by, .texts = kp_kineto_new(), .give = give, .context = context};
    p->trees = kp_treepieces_open(tree_add, p);
    kp_top_init(&p->top, p->texts, by);
    return p;
}

void kp_toppieces_close(struct kp_toppieces *p)
{
    kp_treepieces_close(p->trees);
    kp_top_fini(&p->top);
    kp_chosen_fini(&p->steps);
    kp_stepparts_fini(&p->parts);
    kp_kineto_close(p->texts);
    free(p);
}

struct kp_kineto_pieces *kp_toppieces_reading(struct kp_toppieces *p) { return kp_treepieces_reading(p->trees); }

bool kp_toppieces_end(struct kp_toppieces *p, struct kp_kineto *rest, struct kp_top *top, struct kp_summary *summary,
                      struct kp_stepparts *parts, struct kp_chosen *chosen)
{
    if (!kp_treepieces_end(p->trees, rest)) return false;
    kp_top_init(top, rest, p->by);
    kp_top_add(top, &p->top);
    kp_summary_end(summary, &p->times, rest, &p->steps);
    *parts = p->parts;
    p->parts = (struct kp_stepparts){0};
    *chosen = p->steps;
    p->steps = (struct kp_chosen){0};
    rest->profile_memory = top->has_memory;
    return true;
}

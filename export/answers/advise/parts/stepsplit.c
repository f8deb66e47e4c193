// SPDX-License-Identifier: Apache-2.0
/*
 * stepsplit.c - divides each step into compute, exposed communication, exposed copies, data loading and the rest
 *
 * Forward and backward are told by stacks/stepparts.c. Here parts are merged in order of priority. A part's exposed
 * time is what it covers and no earlier part does.
 */
#include "export/answers/advise/parts/adviseparts.h"

#include <stdlib.h>

#include "export/read/facts/comm/commops.h"
#include "export/read/facts/comm/commstarts.h"

struct ladder {
    enum kp_split_part order[KP_SPLIT_IDLE];
    struct kp_spans sets[KP_SPLIT_IDLE];
};

static const enum kp_split_part orders[2][KP_SPLIT_IDLE] = {
    {KP_SPLIT_LOADING, KP_SPLIT_COMPUTE, KP_SPLIT_COMM, KP_SPLIT_COPIES}, /* on the CPU */
    {KP_SPLIT_COMPUTE, KP_SPLIT_COMM, KP_SPLIT_COPIES, KP_SPLIT_LOADING},
};

/* Files of 2021 say Memcpy, Memset and Kernel. */
enum kp_split_part kp_split_part_of_device(const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    const char *const cat = kp_kineto_text(trace, e->cat);
    if (strcasestr(cat, "memcpy") || strcasestr(cat, "memset")) return KP_SPLIT_COPIES;
    if (!strcasestr(cat, "kernel")) return KP_SPLIT_IDLE; /* a wait of a stream */
    return kp_namefacts(trace, e->name) & KP_NAME_COMM ? KP_SPLIT_COMM : KP_SPLIT_COMPUTE;
}

static enum kp_split_part part_of(const struct kp_kineto *trace, const struct kp_kineto_event *e, bool has_gpu)
{
    const uint32_t is = kp_namefacts(trace, e->name);
    const bool is_op = e->kind == KP_KINETO_OP, is_range = e->kind == KP_KINETO_ANNOTATION;
    if (e->kind == KP_KINETO_GPU) return kp_split_part_of_device(trace, e);
    if ((is_op || is_range || e->kind == KP_KINETO_PYTHON) && is & KP_NAME_LOADER) return KP_SPLIT_LOADING;
    if ((is_op || is_range) && !has_gpu && is & (KP_NAME_COLLECTIVE | KP_NAME_COMM_OP)) return KP_SPLIT_COMM;
    return is_op && !has_gpu && !(is & KP_NAME_RANGE) ? KP_SPLIT_COMPUTE : KP_SPLIT_IDLE;
}

/* A range that ends on another thread counts only as communication, which backends mark by such ranges. */
static bool is_aside(const struct kp_node *node, enum kp_split_part part)
{
    return node->is_async && part != KP_SPLIT_COMM;
}

static void ladder_add(struct ladder *l, const struct kp_tree *tree, const struct kp_commops *comm, size_t at,
                       enum kp_split_part part)
{
    const struct kp_node *const node = &tree->nodes[at];
    bool is_in = false;
    if (is_aside(node, part)) return;
    for (size_t i = 0; i < KP_SPLIT_IDLE; i++) {
        is_in = is_in || l->order[i] == part;
        if (is_in && l->order[i] == KP_SPLIT_COMPUTE) kp_commops_add(&l->sets[i], tree, comm, at);
        else if (is_in) kp_spans_add(&l->sets[i], node->start_ns, node->end_ns);
    }
}

static void split_make(struct kp_step_split *out, const struct ladder *l, const struct kp_idle *idle,
                       const struct kp_step *step)
{
    int64_t had = 0;
    *out = (struct kp_step_split){.step_ns = step->end_ns - step->start_ns};
    for (size_t i = 0; i < KP_SPLIT_IDLE; i++) {
        const int64_t has = kp_spans_between(&l->sets[i], step->start_ns, step->end_ns);
        out->part_ns[l->order[i]] = has - had;
        had = has;
    }
    out->part_ns[KP_SPLIT_IDLE] = out->step_ns - had;
    for (int c = 0; c < KP_IDLE_CAUSES; c++)
        out->cause_ns[c] = kp_spans_between(&idle->of[c], step->start_ns, step->end_ns);
}

/* A range of a backend has no line: the op that started it has. */
static void places_gather(struct kp_split_places *places, const struct kp_tree *tree, const struct kp_chosen *chosen,
                          bool has_gpu)
{
    int32_t *const starts = has_gpu ? NULL : kp_commstarts_find(tree);
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        const enum kp_split_part part = part_of(tree->trace, kp_tree_event(tree, i), has_gpu);
        if (is_aside(node, part) || part == KP_SPLIT_IDLE || (part == KP_SPLIT_COMPUTE && !has_gpu)) continue;
        const int64_t ns = kp_spans_between(&chosen->in_steps, node->start_ns, node->end_ns);
        const int32_t start = starts ? starts[i] : -1;
        kp_costplaces_add_started(&places->parts[part], tree, kp_costplace_launcher(tree, i), start, -1, ns);
    }
    free(starts);
}

void kp_split_places_fini(struct kp_split_places *places)
{
    for (int p = 0; p < KP_SPLIT_PARTS; p++) kp_costplaces_fini(&places->parts[p]);
    for (int c = 0; c < KP_IDLE_CAUSES; c++) kp_costplaces_fini(&places->causes[c]);
    kp_spans_fini(&places->computed);
    kp_spans_fini(&places->launching);
}

bool kp_step_split_places(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                          struct kp_split_places *places)
{
    struct ladder l = {0};
    struct kp_idle idle = {0};
    const bool has_gpu = kp_chosen_has_gpu(chosen, tree);
    struct kp_commops comm = {0};
    if (!has_gpu) kp_commops_find(&comm, tree);
    memcpy(l.order, orders[has_gpu], sizeof l.order);
    for (size_t i = 0; i < tree->count; i++)
        ladder_add(&l, tree, &comm, i, part_of(tree->trace, kp_tree_event(tree, i), has_gpu));
    kp_commops_fini(&comm);
    for (size_t i = 0; i < KP_SPLIT_IDLE; i++) kp_spans_settle(&l.sets[i]);
    if (places) kp_idle_find(&idle, tree, chosen, &l.sets[KP_SPLIT_IDLE - 1], has_gpu);
    for (size_t i = 0; i < chosen->step_count; i++) split_make(&out[i], &l, &idle, &chosen->steps[i]);
    if (places) {
        places_gather(places, tree, chosen, has_gpu);
        places->backlog_ns = idle.backlog_ns;
        places->turns = idle.turns;
        places->launching = idle.of[KP_IDLE_LAUNCH];
        idle.of[KP_IDLE_LAUNCH] = (struct kp_spans){0};
        if (has_gpu) {
            places->computed = l.sets[1];
            l.sets[1] = (struct kp_spans){0};
        }
        memcpy(places->causes, idle.places, sizeof idle.places);
        memset(idle.places, 0, sizeof idle.places);
    }
    kp_idle_fini(&idle);
    for (size_t i = 0; i < KP_SPLIT_IDLE; i++) kp_spans_fini(&l.sets[i]);
    return has_gpu;
}

void kp_step_compute_asked(int64_t *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const size_t count = chosen->step_count;
    struct kp_spans *of = kp_kineto_zeros(count + 1, sizeof *of);
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (e->kind != KP_KINETO_GPU || part_of(tree->trace, e, true) != KP_SPLIT_COMPUTE) continue;
        const size_t step = kp_step_at(chosen->steps, count, kp_chosen_asked_ns(chosen, tree, i));
        kp_spans_add(&of[step], tree->nodes[i].start_ns, tree->nodes[i].end_ns); /* [count]: of no step */
    }
    for (size_t i = 0; i <= count; i++) {
        kp_spans_settle(&of[i]);
        if (i < count) out[i] = kp_spans_length(&of[i], NULL);
        kp_spans_fini(&of[i]);
    }
    free(of);
}

bool kp_step_split_all(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    return kp_step_split_places(out, tree, chosen, NULL);
}

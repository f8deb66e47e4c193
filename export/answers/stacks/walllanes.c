// SPDX-License-Identifier: Apache-2.0
/* walllanes.c - finds the threads of a trace's host events, and which is the main one */
#include "export/answers/stacks/walllanes.h"

#include <stdlib.h>
#include <string.h>

static bool is_host(const struct kp_tree *tree, uint32_t node)
{
    const struct kp_node *n = &tree->nodes[node];
    return !n->on_device && !n->is_async && kp_tree_event(tree, node)->kind != KP_KINETO_MEMORY;
}

/* Is it a step, or the end of one? The step that the start-up is in may have begun on another thread. */
static bool is_of_steps(const struct kp_tree *tree, struct kp_stepends *ends, uint32_t node)
{
    const struct kp_kineto *const t = tree->trace;
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    if (e->kind == KP_KINETO_ANNOTATION && kp_kineto_is_step(kp_kineto_text(t, e->name)))
        return strcmp(kp_kineto_text(t, e->concrete), KP_STEPENDS_STARTUP) != 0;
    return kp_stepends_may(t, e) && kp_stepends_counts(ends, t, e);
}

static void lane_note(struct kp_walllane *lane, const struct kp_tree *tree, uint32_t node, enum kp_part part)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    const struct kp_node *n = &tree->nodes[node];
    if (!lane->count || n->start_ns < lane->from) lane->from = n->start_ns;
    if (!lane->count || n->end_ns > lane->to) lane->to = n->end_ns;
    *KP_KINETO_NEXT(lane->nodes, lane->count, lane->capacity) = node;
    lane->tid = e->tid;
    lane->is_process = kp_kineto_is_main_thread(e);
    lane->is_named |= e->flags & (KP_KINETO_TEXT_PID | KP_KINETO_TEXT_TID);
    lane->is_engine |= e->kind == KP_KINETO_OP && part == KP_PART_BACKWARD;
    lane->has_other |= e->kind == KP_KINETO_OP && part != KP_PART_BACKWARD;
}

static bool is_engine_alone(const struct kp_walllane *lane) { return lane->is_engine && !lane->has_other; }

/* The main thread has most of the steps, or else the process's own id, or else comes first. A thread of the engine
 * alone has passes that end steps, but is not it. torch gives 0 to a thread that runs no op. */
static bool is_rather_main(const struct kp_walllane *lane, const struct kp_walllane *than)
{
    const bool is_alone = is_engine_alone(lane);
    if (is_alone != is_engine_alone(than)) return !is_alone;
    if (lane->steps != than->steps) return lane->steps > than->steps;
    if (lane->is_process != than->is_process) return lane->is_process;
    return lane->tid && !than->tid;
}

void kp_walllanes_find(struct kp_walllanes *l, const struct kp_tree *tree, const uint8_t *parts)
{
    size_t at = 0; /* many events in a row are of one thread */
    for (uint32_t i = 0; i < tree->count; i++) {
        if (!is_host(tree, i)) continue;
        const uint64_t thread = kp_tree_thread(kp_tree_event(tree, i));
        const size_t had = l->threads.count;
        if (at == l->count || l->of[at].thread != thread) at = kp_keyindex_get(&l->threads, thread);
        l->of = kp_kineto_grow(l->of, &l->capacity, l->threads.count, sizeof *l->of);
        if (at == had) l->of[l->count++] = (struct kp_walllane){.thread = thread};
        lane_note(&l->of[at], tree, i, (enum kp_part)parts[i]);
        l->of[at].steps += is_of_steps(tree, &l->ends, i);
    }
    for (size_t i = 1; i < l->count; i++)
        if (is_rather_main(&l->of[i], &l->of[l->main])) l->main = i;
}

void kp_walllanes_fini(struct kp_walllanes *l)
{
    for (size_t i = 0; i < l->count; i++) free(l->of[i].nodes);
    kp_keyindex_fini(&l->threads);
    free(l->of);
}

// SPDX-License-Identifier: Apache-2.0
/* stepthreads.c - the threads that run steps, and those beside them that wait */
#include "export/read/facts/steps/stepthreads.h"

#include <stdlib.h>

#include "export/read/facts/namefacts.h"

enum { FEW = 20 }; /* a twentieth of the most */

static bool has_numbers(const struct kp_kineto_event *e)
{
    return !(e->flags & (KP_KINETO_TEXT_PID | KP_KINETO_TEXT_TID));
}

static void thread_add(struct kp_stepthreads *t, int64_t pid, int64_t tid)
{
    size_t i = 0;
    while (i < t->count && (t->of[i].pid != pid || t->of[i].tid != tid)) i++;
    if (i == t->count) *KP_KINETO_NEXT(t->of, t->count, t->capacity) = (struct kp_stepthread){.pid = pid, .tid = tid};
    t->of[i].steps++;
}

/* One that had a few steps beside a thread of hundreds made what that runs: the model, before it started the thread. */
static void few_drop(struct kp_stepthreads *t)
{
    size_t most = 0, kept = 0;
    for (size_t i = 0; i < t->count; i++)
        if (t->of[i].steps > most) most = t->of[i].steps;
    for (size_t i = 0; i < t->count; i++)
        if (t->of[i].steps * FEW >= most) t->of[kept++] = t->of[i];
    t->count = kept;
}

void kp_stepthreads_find(struct kp_stepthreads *out, const struct kp_tree *tree)
{
    struct kp_thread_of_steps one;
    bool are_numbers = true;
    *out = (struct kp_stepthreads){0};
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        if (!tree->nodes[i].on_device) are_numbers &= has_numbers(e);
        if (kp_node_is_step(tree, &tree->nodes[i])) thread_add(out, e->pid, e->tid);
    }
    few_drop(out);
    if (!out->count && kp_chosen_thread(&one, tree)) thread_add(out, one.pid, one.tid);
    out->are_others = are_numbers && out->count;
    for (size_t i = 0; i < out->count; i++) out->are_others &= out->of[i].pid != out->of[i].tid;
}

bool kp_stepthreads_is_idle(const struct kp_stepthreads *threads, const struct kp_tree *tree,
                            const struct kp_node *node)
{
    const struct kp_kineto_event *const e = &tree->trace->events[node->event];
    bool is_beside = !kp_kineto_is_main_thread(e);
    if (!node->is_python || !has_numbers(e)) return false;
    if (!(kp_namefacts(tree->trace, e->name) & KP_NAME_IDLE)) return false;
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->of[i].pid != e->pid) continue;
        if (threads->of[i].tid == e->tid) return false;
        is_beside = true;
    }
    return is_beside;
}

void kp_stepthreads_fini(struct kp_stepthreads *threads)
{
    free(threads->of);
    *threads = (struct kp_stepthreads){0};
}

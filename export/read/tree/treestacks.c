// SPDX-License-Identifier: Apache-2.0
/*
 * treestacks.c - gives backward ops the call stack of the forward op that made them
 *
 * torch finds it by sequence number and torch's id of the forward thread. A trace has that id on the backward op only.
 * So a vote finds each id's kernel thread: the one whose forward ops have most of its sequence numbers. CUDA calls
 * and device work have no stacks in files, and get their op's.
 *
 * Beside the backward op, autograd's engine sums the gradient of what was broadcast, as a bias, and adds gradients of
 * one tensor. kp_tree_set_forward_stacks() gives these the same forward op. torch leaves them at backward()'s line.
 */
#include "export/read/tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "collector/base/kp_search.h"
#include "export/read/frames/ownline.h"
#include "export/read/store/qsort.h"

struct forward_op {
    int64_t seq;
    uint64_t thread;
    uint32_t node;
    bool votes;
};
struct backward {
    int64_t seq, id; /* id: torch's of the forward thread */
    uint32_t node;
};
struct thread_vote {
    int64_t id;
    uint64_t thread, order; /* order: of equals the earlier one wins */
    size_t count;
};
struct stack_votes {
    struct forward_op *forwards; /* by (seq, thread, node) */
    size_t count, capacity;
    struct backward *backwards; /* by (seq, id, node) */
    size_t backward_count, backward_capacity;
    struct thread_vote *votes; /* by id, the best first */
    size_t vote_count, vote_capacity;
    bool is_last; /* of forward ops with one number the last counts, else the first, as in torch */
};
enum { THREADS_MOST = 256, LOOKED_AT_MOST = 64 }; /* threads, and ranges of the engine, of one number */

static bool is_engine(const struct kp_tree *tree, size_t node)
{
    return kp_name_begins(kp_kineto_text(tree->trace, tree->nodes[node].name), KP_ENGINE_RANGE);
}

static bool is_backward(const struct kp_tree *tree, size_t node)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    if (e->kind != KP_KINETO_OP) return false;
    if (e->fwd_tid > 0) return !is_engine(tree, node);
    return strcmp(kp_kineto_text(tree->trace, e->name), KP_ACCUMULATE_GRAD) == 0;
}

KP_ORDER3(forward_order, struct forward_op, seq, thread, node)

static bool is_forward_below(const void *forward, const void *key)
{
    const struct forward_op *x = forward, *y = key;
    return x->seq < y->seq || (x->seq == y->seq && x->thread < y->thread);
}

/* Returns the index of the first entry at or after (seq, thread). */
static size_t forward_find(const struct stack_votes *s, int64_t seq, uint64_t thread)
{
    const struct forward_op key = {.seq = seq, .thread = thread};
    return kp_search(s->forwards, sizeof *s->forwards, s->count, is_forward_below, &key);
}

KP_ORDER3(vote_order, struct thread_vote, id, thread, order)

KP_ORDERED(best_order, struct thread_vote, KP_UP(id) KP_DOWN(count) KP_UP(order))

/* Adds up the votes of one id for one thread, and puts the best of an id first. */
static void votes_settle(struct stack_votes *s)
{
    size_t kept = 0;
    if (!s->vote_count) return;
    kp_qsort(s->votes, s->vote_count, sizeof *s->votes, vote_order);
    for (size_t i = 0; i < s->vote_count; i++) {
        struct thread_vote *last = kept ? &s->votes[kept - 1] : NULL;
        if (last && last->id == s->votes[i].id && last->thread == s->votes[i].thread) last->count += s->votes[i].count;
        else s->votes[kept++] = s->votes[i];
    }
    s->vote_count = kept;
    kp_qsort(s->votes, kept, sizeof *s->votes, best_order);
}

static bool vote_best(const struct stack_votes *s, int64_t id, uint64_t *thread)
{
    const size_t at = kp_rows_from(s->votes, s->vote_count, sizeof *s->votes, id);
    if (at == s->vote_count || s->votes[at].id != id) return false;
    *thread = s->votes[at].thread;
    return true;
}

static void forwards_gather(struct stack_votes *s, const struct kp_tree *tree, const int32_t *backward)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (backward[i] >= 0 || tree->nodes[i].removed || e->kind != KP_KINETO_OP || !(e->flags & KP_KINETO_HAS_SEQ))
            continue;
        *KP_KINETO_NEXT(s->forwards, s->count, s->capacity) =
            (struct forward_op){e->number, kp_tree_thread(e), (uint32_t)i, !is_engine(tree, i)};
    }
    if (s->count) kp_qsort(s->forwards, s->count, sizeof *s->forwards, forward_order);
}

KP_ORDER3(backward_order, struct backward, seq, id, node)

static void backwards_gather(struct stack_votes *s, const struct kp_tree *tree, const int32_t *backward)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (backward[i] != (int32_t)i || !(e->flags & KP_KINETO_HAS_SEQ)) continue;
        *KP_KINETO_NEXT(s->backwards, s->backward_count, s->backward_capacity) =
            (struct backward){e->number, e->fwd_tid, (uint32_t)i};
    }
    if (s->backward_count) kp_qsort(s->backwards, s->backward_count, sizeof *s->backwards, backward_order);
}

/* Each of `count` backward ops votes for the thread of each forward op with its sequence number. */
static void votes_cast(struct stack_votes *s, const struct backward *of, size_t count)
{
    size_t threads = 0;
    for (size_t at = forward_find(s, of->seq, 0);
         at < s->count && s->forwards[at].seq == of->seq && threads < THREADS_MOST; threads++) {
        const uint64_t thread = s->forwards[at].thread;
        const size_t end = thread == UINT64_MAX ? s->count : forward_find(s, of->seq, thread + 1);
        size_t votes = 0;
        for (; at < end && s->forwards[at].seq == of->seq; at++) votes += s->forwards[at].votes;
        if (!votes) continue;
        *KP_KINETO_NEXT(s->votes, s->vote_count, s->vote_capacity) =
            (struct thread_vote){of->id, thread, (uint64_t)of->node * THREADS_MOST + threads, votes * count};
    }
}

static void votes_gather(struct stack_votes *s)
{
    for (size_t i = 0, end; i < s->backward_count; i = end) {
        for (end = i + 1; end < s->backward_count && s->backwards[end].seq == s->backwards[i].seq &&
                          s->backwards[end].id == s->backwards[i].id;)
            end++;
        votes_cast(s, &s->backwards[i], end - i);
    }
    votes_settle(s);
}

static bool is_node_below(const void *forward, const void *key)
{
    const struct forward_op *x = forward, *y = key;
    return is_forward_below(x, y) || (x->seq == y->seq && x->thread == y->thread && x->node < y->node);
}

/* An op takes the number that the next graph node will have. So the last op with it, from `first` on, made the node. */
static size_t forward_last(const struct stack_votes *s, size_t first, size_t backward)
{
    struct forward_op key = s->forwards[first];
    key.node = (uint32_t)backward;
    const size_t end = kp_search(s->forwards, sizeof *s->forwards, s->count, is_node_below, &key);
    for (size_t i = end; i > first && end - i < LOOKED_AT_MOST; i--)
        if (s->forwards[i - 1].votes) return i - 1; /* not a range of the engine */
    return first;
}

static int32_t forward_for(const struct stack_votes *s, const struct kp_tree *tree, size_t node)
{
    const struct kp_kineto_event *backward = kp_tree_event(tree, node);
    uint64_t thread;
    if (!(backward->flags & KP_KINETO_HAS_SEQ) || !vote_best(s, backward->fwd_tid, &thread)) return -1;
    size_t at = forward_find(s, backward->number, thread);
    if (at >= s->count || s->forwards[at].seq != backward->number || s->forwards[at].thread != thread) return -1;
    if (s->is_last) at = forward_last(s, at, node);
    return (int32_t)s->forwards[at].node;
}

/* The time of an op inside a backward op is the backward op's: both have the forward op's stack. */
static void stack_set(const struct stack_votes *s, const struct kp_tree *tree, size_t node, int32_t backward)
{
    struct kp_node *n = &tree->nodes[node];
    n->forward = backward < 0 ? -1 : forward_for(s, tree, (size_t)backward);
    if (backward < 0) n->stack = kp_tree_event(tree, node)->stack;
    else n->stack = n->forward < 0 ? 0 : kp_tree_event(tree, (size_t)n->forward)->stack;
}

/* Gives CUDA calls and device work their op's stack, before backward ops get other stacks. */
static void stacks_link(struct kp_tree *tree)
{
    struct kp_op_ids ids = {0};
    bool has_ids = false;
    for (size_t i = 0; i < tree->count; i++) {
        struct kp_kineto_event *e = &tree->trace->events[tree->nodes[i].event];
        if ((e->kind != KP_KINETO_RUNTIME && e->kind != KP_KINETO_GPU) || e->external_id <= 0 || e->stack) continue;
        if (!has_ids) kp_op_ids_gather(&ids, tree);
        has_ids = true;
        size_t at = kp_rows_from(ids.ids, ids.count, sizeof *ids.ids, e->external_id);
        if (at < ids.count && ids.ids[at].id == e->external_id) e->stack = kp_tree_event(tree, ids.ids[at].node)->stack;
    }
    kp_op_ids_fini(&ids);
}

/* Work of a device that no op launched, of a graph or of Triton, is where its call is. */
static void call_stacks_link(struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *n = &tree->nodes[i];
        struct kp_kineto_event *e = &tree->trace->events[n->event];
        if (e->kind == KP_KINETO_GPU && n->launcher < 0 && n->call >= 0 && !e->stack)
            e->stack = kp_tree_event(tree, (size_t)n->call)->stack;
    }
}

/* The backward op that a range of the engine runs; -1: it has no forward op, as AccumulateGrad. */
static int32_t inside_find(const struct kp_tree *tree, const int32_t *backward, size_t range)
{
    for (int32_t at = tree->nodes[range].first_child; at >= 0; at = tree->nodes[at].next_sibling)
        if (backward[at] == at && tree->nodes[at].forward >= 0) return at;
    return -1;
}

/* A hook of Python that the engine calls has lines of its own. */
static bool is_of_hook(const struct kp_tree *tree, size_t node, int32_t inside)
{
    const uint32_t stack = kp_tree_event(tree, node)->stack, around = kp_tree_event(tree, (size_t)inside)->stack;
    if (tree->nodes[node].is_python) return true;
    if (!stack || stack == around) return false;
    return kp_ownline_of(tree->trace, stack) != kp_ownline_of(tree->trace, around);
}

/* Gives a range of the engine, and what runs in it beside its backward op, the forward op of that. */
static void ranges_set(struct kp_tree *tree, const int32_t *backward)
{
    int32_t *inside = kp_kineto_room(tree->count + 1, sizeof *inside);
    for (size_t i = 0; i < tree->count; i++) {
        struct kp_node *n = &tree->nodes[i];
        inside[i] = n->parent < 0 ? -1 : inside[n->parent];
        if (is_engine(tree, i)) inside[i] = inside_find(tree, backward, i);
        if (inside[i] < 0) continue;
        if (backward[i] == (int32_t)i || is_of_hook(tree, i, inside[i])) {
            inside[i] = -1;
            continue;
        }
        n->forward = tree->nodes[inside[i]].forward;
        n->stack = kp_tree_event(tree, (size_t)n->forward)->stack;
    }
    free(inside);
}

static void stacks_set(struct kp_tree *tree, bool is_last)
{
    struct stack_votes s = {.is_last = is_last};
    stacks_link(tree);
    if (is_last) call_stacks_link(tree);
    int32_t *backward = kp_kineto_room(tree->count + 1, sizeof *backward);
    for (size_t i = 0; i < tree->count; i++) {
        int32_t parent = tree->nodes[i].parent;
        backward[i] = is_backward(tree, i) ? (int32_t)i : parent >= 0 ? backward[parent] : -1;
    }
    forwards_gather(&s, tree, backward);
    backwards_gather(&s, tree, backward);
    votes_gather(&s);
    for (size_t i = 0; i < tree->count; i++) {
        stack_set(&s, tree, i, backward[i]);
        if (backward[i] == (int32_t)i && tree->nodes[i].forward < 0 && kp_tree_event(tree, i)->fwd_tid > 0)
            tree->orphans += tree->trace->has_stacks;
    }
    if (is_last) ranges_set(tree, backward);
    free(backward);
    free(s.forwards);
    free(s.backwards);
    free(s.votes);
}

void kp_tree_set_stacks(struct kp_tree *tree) { stacks_set(tree, false); }

void kp_tree_set_forward_stacks(struct kp_tree *tree) { stacks_set(tree, true); }

bool kp_node_is_backward(const struct kp_tree *tree, size_t node)
{
    return tree->nodes[node].stack && tree->nodes[node].stack != kp_tree_event(tree, node)->stack;
}

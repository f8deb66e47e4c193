// SPDX-License-Identifier: Apache-2.0
/*
 * treepieces.c - gives the trees of a trace piece by piece, while the next ones are read
 *
 * Called by: the caller's thread, which reads
 * Owns:      a thread that builds the tree of a piece, lets it be added to those before, and frees it
 * Locks:     one, for the piece that waits. The reading waits while one does.
 *
 * Nothing runs at a piece's end, or the events that run are split, so the times of pieces add up. Some facts may cross
 * an end all the same: work of a device or a backward op whose op is in another piece, or a device that only some
 * pieces have. Then the pieces do not hold, and the whole is read.
 */
#include "export/read/tree/treepieces.h"
#include "export/read/kineto/overlaps.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct kp_treepieces {
    kp_treepiece_fn add;
    void *context;
    struct kp_kineto_pieces reading;
    struct kp_seam seam;
    bool has_device, has_calls;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t is_changed;
    struct kp_kineto *waiting; /* the lock is for this and what follows */
    int64_t waiting_end_ns;
    bool is_ending, is_unfit;
};

/* ---- a piece ---- */

static bool is_fit(const struct kp_treepieces *p, const struct kp_tree *tree, bool is_later)
{
    const bool is_whole = tree->orphans == 0 && (tree->uncalled == 0 || !p->has_calls);
    return tree->unfolded == 0 && (!is_later || (is_whole && tree->has_device == p->has_device));
}

static bool tree_add(struct kp_treepieces *p, struct kp_tree *tree, int64_t end_ns)
{
    const bool is_later = p->seam.is_later;
    struct kp_chosen chosen;
    p->has_calls |= tree->first_call != 0;
    const bool fits = kp_chosen_piece(&chosen, tree, &p->seam, end_ns) && p->add(p->context, tree, &chosen) &&
                      is_fit(p, tree, is_later);
    p->has_device = tree->has_device;
    kp_chosen_fini(&chosen);
    return fits;
}

static bool tree_build(struct kp_tree *tree, struct kp_kineto *piece)
{
    kp_kineto_works_settle(piece);
    return kp_tree_build(tree, piece) == 0;
}

/* False: the pieces do not hold. */
static bool piece_add(struct kp_treepieces *p, struct kp_kineto *piece, int64_t end_ns)
{
    struct kp_tree tree;
    const bool fits = tree_build(&tree, piece) && tree_add(p, &tree, end_ns);
    kp_tree_fini(&tree);
    return fits;
}

/* ---- the thread ---- */

static void *pieces_run(void *context)
{
    struct kp_treepieces *p = context;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->waiting && !p->is_ending) pthread_cond_wait(&p->is_changed, &p->lock);
        if (!p->waiting) break;
        struct kp_kineto *piece = p->waiting;
        const int64_t end_ns = p->waiting_end_ns;
        p->waiting = NULL;
        const bool is_wanted = !p->is_unfit;
        pthread_cond_broadcast(&p->is_changed);
        pthread_mutex_unlock(&p->lock);
        const bool fits = is_wanted && piece_add(p, piece, end_ns);
        kp_kineto_close(piece);
        pthread_mutex_lock(&p->lock);
        p->is_unfit |= !fits;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* The caller's thread does it if there is none. */
static int piece_take(void *context, struct kp_kineto *piece, int64_t end_ns)
{
    struct kp_treepieces *p = context;
    if (!p->has_thread) p->has_thread = pthread_create(&p->thread, NULL, pieces_run, p) == 0;
    if (!p->has_thread) {
        p->is_unfit |= !piece_add(p, piece, end_ns);
        kp_kineto_close(piece);
        return p->is_unfit ? -ESTALE : 0;
    }
    pthread_mutex_lock(&p->lock);
    while (p->waiting) pthread_cond_wait(&p->is_changed, &p->lock);
    p->waiting = piece;
    p->waiting_end_ns = end_ns;
    const bool is_unfit = p->is_unfit;
    pthread_cond_broadcast(&p->is_changed);
    pthread_mutex_unlock(&p->lock);
    return is_unfit ? -ESTALE : 0;
}

static void thread_end(struct kp_treepieces *p)
{
    if (!p->has_thread) return;
    pthread_mutex_lock(&p->lock);
    p->is_ending = true;
    pthread_cond_broadcast(&p->is_changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    p->has_thread = false;
}

/* ---- the whole ---- */

struct kp_treepieces *kp_treepieces_open(kp_treepiece_fn add, void *context)
{
    struct kp_treepieces *const p = kp_kineto_zeros(1, sizeof *p);
    *p = (struct kp_treepieces){.add = add, .context = context, .reading = {.give = piece_take, .context = p}};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->is_changed, NULL);
    return p;
}

void kp_treepieces_close(struct kp_treepieces *p)
{
    thread_end(p);
    pthread_cond_destroy(&p->is_changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

struct kp_kineto_pieces *kp_treepieces_reading(struct kp_treepieces *p) { return &p->reading; }

/* The last tree is built while the thread adds the one before. */
bool kp_treepieces_end(struct kp_treepieces *p, struct kp_kineto *rest)
{
    struct kp_tree tree = {0};
    const bool is_built = kp_kineto_pieces_hold(&p->reading, rest) && tree_build(&tree, rest);
    thread_end(p);
    const bool fits = is_built && !p->is_unfit && tree_add(p, &tree, INT64_MAX);
    kp_tree_fini(&tree);
    return fits;
}

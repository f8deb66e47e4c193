// SPDX-License-Identifier: Apache-2.0
/*
 * walltime.h - lays the time of a trace out as call paths that sum to its wall time
 *
 * Every moment of the main thread counts once, for what ran innermost: an op, a Python function, or "(no op)". While
 * the main thread waits for autograd's threads, their ops count in its place.
 */
#pragma once

#include "export/answers/stacks/calltree.h"
#include "export/read/parse/kineto_pieces.h"
#include "export/read/tree/chosen.h"
#include "export/read/tree/tree.h"
#include "export/read/tree/spans.h"

enum kp_wall_metric {
    KP_WALL_CPU,    /* nanoseconds of the main thread's wall time */
    KP_WALL_GPU,    /* nanoseconds that kernels, copies and fills took */
    KP_WALL_MEMORY, /* bytes allocated */
};
/* Takes what one moment adds to a place: nanoseconds from from_ns on, or at from_ns bytes. */
typedef void (*kp_wall_fn)(void *context, uint32_t place, enum kp_part part, int64_t from_ns, int64_t value);
struct kp_wall_seam;
struct kp_wall_options {
    enum kp_wall_metric metric;
    bool at_forward;               /* backward ops stand at the forward op's frames, else at those that ran */
    const struct kp_spans *within; /* only this time; or NULL */
    bool threads;                  /* other threads stand under KP_PART_THREADS */
    kp_wall_fn tell;               /* is told each value that `paths` gets; or NULL */
    void *context;
    struct kp_wall_seam *seam; /* a piece of a trace is added, and the time beside `within` is noted as rest; or NULL */
    bool goes_on;              /* another piece comes */
};
struct kp_wall_told {
    int64_t wall_ns;    /* of the main thread, as much as is shown */
    size_t threads;     /* other threads with events of their own */
    int64_t threads_ns; /* what they were busy */
    bool has_frames;    /* the trace has Python calls or call stacks */
    bool is_unfit;      /* of a piece: the sums of pieces are not those of the whole */
};
/* The state that a piece takes over from those before it. Pieces tell time and frames alone, and no memory. */
struct kp_wall_seam *kp_wall_seam_open(void);
void kp_wall_seam_close(struct kp_wall_seam *seam);
/* The sums of all pieces, with the rest or without. */
void kp_wall_seam_sums(const struct kp_wall_seam *seam, bool with_rest, struct kp_wall_told *told);
/* Adds a trace to `paths`. kp_tree_set_forward_stacks() was called on the tree. */
void kp_wall_add(struct kp_calltree *paths, const struct kp_tree *tree, const struct kp_wall_options *options,
                 struct kp_wall_told *told);

/* The name of a moment's place, which stands in place of a place. */
enum kp_wall_where {
    KP_WALL_HOST,
    KP_WALL_GAP, /* the same, of KP_PART_OTHER: no op ran, and no Python function is known that did */
    KP_WALL_DEVICE,
};
/* Tells each moment of the main thread and of devices with its part: in far less time, without paths.
 * kp_tree_set_forward_stacks() was called on the tree. */
void kp_wall_parts_tell(const struct kp_tree *tree, kp_wall_fn tell, void *context);

/* ---- wallpieces.c: call paths of a trace read in pieces (kineto_pieces.h), so that its memory has a bound ---- */

struct kp_wallpieces;
/* `options`: of time or of GPUs. `all`: not the steps alone. */
struct kp_wallpieces *kp_wallpieces_open(const struct kp_wall_options *options, bool all);
void kp_wallpieces_close(struct kp_wallpieces *pieces);
struct kp_kineto_pieces *kp_wallpieces_reading(struct kp_wallpieces *pieces); /* as kp_treepieces_reading */
/* Adds what is left of the trace, and gives the paths, which the caller closes, with the time that they are of
 * (kp_chosen_fini). NULL: the pieces do not add up to the whole, which must be read again. */
struct kp_calltree *kp_wallpieces_end(struct kp_wallpieces *pieces, struct kp_kineto *rest, struct kp_wall_told *told,
                                      struct kp_chosen *chosen);

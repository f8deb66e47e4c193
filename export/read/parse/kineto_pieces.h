// SPDX-License-Identifier: Apache-2.0
/* kineto_pieces.h - gives a trace away in pieces while it is read, cut where nothing runs (the command only) */
#pragma once

#include "export/read/kineto/kineto.h"
#include "export/read/kineto/stepends.h"

/* A piece has the head's facts, and strings and events of its own; it has no `works`. An event that goes on behind its
 * end is in the next piece once more, as KP_KINETO_CONTINUED. All events of later pieces begin at `end_ns` or later.
 * Takes the piece. Not 0: the reading ends with that. */
typedef int (*kp_piece_fn)(void *context, struct kp_kineto *piece, int64_t end_ns);

struct kp_kineto_pieces { /* set the first three, all else is zero */
    kp_piece_fn
        give; /* NULL: the trace stays one, without calls of Python in which nothing else lies (decisions/197) */
    void *context;
    bool has_memory;  /* pieces have `memory` */
    size_t from;      /* events before it were looked at, and stay */
    size_t next;      /* looks for a cut once there are so many events */
    int64_t since_ns; /* where the last piece ended, without the base */
    int64_t last_ns;  /* without `give`: the latest end of a call of Python that was looked at */
    int64_t base_ns;
    bool has_given, is_ours, has_stacks, has_shapes; /* as they were when the first piece was given */
    bool has_steps;
    size_t named;            /* strings that were searched for names of steps */
    struct kp_stepends ends; /* without marked steps: whose ranges end them */
};

/* Looks for a cut, and gives the piece before it. Returns 0, what `give` returned, or -ESTALE: an event came late. */
int kp_kineto_pieces_look(struct kp_kineto_pieces *pieces, struct kp_kineto *trace);
/* Whether the pieces were right, now that all is read: no event, and no fact of the head, came late. */
bool kp_kineto_pieces_hold(const struct kp_kineto_pieces *pieces, const struct kp_kineto *trace);

/* How many events are looked at for one cut. */
extern size_t kp_kineto_piece_events;

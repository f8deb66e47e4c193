// SPDX-License-Identifier: Apache-2.0
/* wallpieces.h - call paths of a trace that is read in pieces (kineto_pieces.h), so that its memory has a bound */
#pragma once

#include "export/answers/stacks/walltime.h"
#include "export/read/parse/kineto_pieces.h"
#include "export/read/tree/chosen.h"

struct kp_wallpieces;
/* `options`: of time or of GPUs. `all`: not the steps alone. NULL: no memory. */
struct kp_wallpieces *kp_wallpieces_open(const struct kp_wall_options *options, bool all);
void kp_wallpieces_close(struct kp_wallpieces *pieces);
/* For the wish that reads the trace. */
struct kp_kineto_pieces *kp_wallpieces_reading(struct kp_wallpieces *pieces);
/* Whether a piece was given. Else the trace is whole. */
bool kp_wallpieces_has(const struct kp_wallpieces *pieces);
/* Adds what is left of the trace, and gives the paths, which the caller closes, with the time that they are of
 * (kp_chosen_fini). NULL: the pieces do not add up to the whole, which must be read again. */
struct kp_calltree *kp_wallpieces_end(struct kp_wallpieces *pieces, struct kp_kineto *rest, struct kp_wall_told *told,
                                      struct kp_chosen *chosen);

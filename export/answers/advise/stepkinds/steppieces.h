// SPDX-License-Identifier: Apache-2.0
/* steppieces.h - the kinds of the steps of a trace that is read in pieces */
#pragma once

#include "export/read/tree/chosen.h"

/* ---- evalpieces.c: the evaluations of a trace that is read in pieces (toppieces.h) ---- */

struct kp_evalpieces;
struct kp_evalpieces *kp_evalpieces_open(void); /* NULL: no memory */
void kp_evalpieces_close(struct kp_evalpieces *pieces);
/* Whether some step holds an evaluation: then the whole trace tells how long. */
bool kp_evalpieces_has(const struct kp_evalpieces *pieces);
/* Counts forward ops in the steps of one more piece. `pieces` is a struct kp_evalpieces. */
void kp_evalpieces_add(void *pieces, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* The sentence of kp_advice_kinds for all the steps, as a text of `trace`; NULL: no step holds an evaluation. */
const char *kp_evalpieces_text(const struct kp_evalpieces *pieces, struct kp_kineto *trace,
                               const struct kp_chosen *steps);

/* ---- promptsteps.c: the same of the steps of a generation that take a prompt ---- */

struct kp_promptpieces;
struct kp_promptpieces *kp_promptpieces_open(void); /* NULL: no memory */
void kp_promptpieces_close(struct kp_promptpieces *pieces);
void kp_promptpieces_add(void *pieces, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* After the last piece, once. */
const char *kp_promptpieces_text(struct kp_promptpieces *pieces, struct kp_kineto *trace,
                                 const struct kp_chosen *steps);

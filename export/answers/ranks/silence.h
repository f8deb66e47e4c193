// SPDX-License-Identifier: Apache-2.0
/* silence.h - what a process did last, and whether it has run no operator for far longer than any of its steps */
#pragma once

#include "export/read/tree/chosen.h"

#define KP_SILENCE_LEAST_NS INT64_C(5000000000) /* nothing shorter stands */
struct kp_lastdeeds {                           /* nodes, -1: none */
    int64_t collective, op, last, call;
    int64_t last_ns; /* INT64_MIN: it did nothing */
};
/* The collective that was open first and the op that was open last, what ended last, and the open call of Python. */
void kp_lastdeeds_find(struct kp_lastdeeds *out, const struct kp_tree *tree);
/* So long does nothing that goes on stand: ten steps, and the longest one and a half times. */
int64_t kp_silence_bound(const struct kp_chosen *chosen);
/* A server rests between calls, and seconds as steps do not tell what a program is. */
bool kp_silence_has_steps(const struct kp_kineto *trace, const struct kp_chosen *chosen);
/*
 * How long a process had run no operator, where its trace ends before its window does. 0: an operator was open, or it
 * is not far longer than all that came before.
 */
int64_t kp_silence_ns(const struct kp_tree *tree, const struct kp_chosen *chosen, const struct kp_lastdeeds *deeds);
/* Writes "after aten::is_nonzero, train.py:25 main, in step 526" of that node. Returns `out`. */
enum { KP_SILENCE_BYTES = 400 };
const char *kp_silence_after(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen,
                             int64_t node);
/*
 * Writes "ran no operator for its last 59.2 s (after .., in step 526)", or "has run no operator for 59.2 s (..)" of a
 * program that runs. "": it is a rank of a job, has no steps of a training, or was not silent. Returns `out`.
 */
const char *kp_silence_say(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen,
                           bool is_running);
/* The line of the program's own in which a node ran, by its stack, as the trace's text; "": not known. */
const char *kp_deed_line(const struct kp_tree *tree, size_t node);

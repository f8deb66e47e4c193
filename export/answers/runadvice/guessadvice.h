// SPDX-License-Identifier: Apache-2.0
/* guessadvice.h - traces of guessed steps, from before a training: told once, behind the training's */
#pragma once

#include "export/answers/runadvice/advised.h"

struct kp_guessadvices { /* all zero: none */
    struct kp_guessadvice *of;
    size_t count, capacity;
    int64_t *trained; /* the processes with steps by an optimizer */
    size_t trained_count, trained_capacity;
};
/* Are a trace's steps guessed? Else it notes the process, if an optimizer counts them. */
bool kp_guessadvices_look(struct kp_guessadvices *all, const struct kp_kineto *trace);
/* Keeps what is said of such a trace, and takes the text. */
void kp_guessadvices_take(struct kp_guessadvices *all, const struct kp_advised *advised, const char *label, char *said);
/*
 * Prints them: those of a process that has a training as one block with their critical findings, in `json` and of other
 * processes all that is said. Ends `all`.
 */
void kp_guessadvices_print(struct kp_guessadvices *all, bool json);

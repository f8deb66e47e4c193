// SPDX-License-Identifier: Apache-2.0
/* heldout.h - what a command says on stdout is held, so that a line found last can stand first */
#pragma once

#include <stdio.h>

struct kp_heldout { /* all zero: nothing is held */
    FILE *out;
    char *text;
    size_t bytes;
};
/* From here on stdout is held. Without memory it is not. */
void kp_heldout_begin(struct kp_heldout *held);
/* Gives it back: `first` (or nothing, NULL) and then all that was held. */
void kp_heldout_end(struct kp_heldout *held, const char *first);

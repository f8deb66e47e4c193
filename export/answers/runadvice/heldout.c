// SPDX-License-Identifier: Apache-2.0
/* heldout.c - holds what a command writes to stdout, until it is known what stands first */
#include "export/answers/runadvice/heldout.h"

#include <stdlib.h>

void kp_heldout_begin(struct kp_heldout *held)
{
    FILE *const to = open_memstream(&held->text, &held->bytes);
    if (!to) return;
    held->out = stdout;
    stdout = to;
}

void kp_heldout_end(struct kp_heldout *held, const char *first)
{
    FILE *const to = stdout;
    if (held->out) stdout = held->out;
    if (first) fprintf(stdout, "%s\n", first);
    if (!held->out) return;
    fclose(to);
    fwrite(held->text, 1, held->bytes, stdout);
    free(held->text);
    *held = (struct kp_heldout){0};
}

// SPDX-License-Identifier: Apache-2.0
/* heapview.h - shows the host's heap of a trace with KPROF_MALLOC as text: heapview.c, leakview.c, arenaview.c */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "export/read/folder/heapprofile.h"
#include "export/kp_export.h"
#include "export/read/kineto/kineto.h"
#include "export/read/parse/kineto_parse.h"

/*
 * Writes totals, leaks, the peak and the largest sites. With as_json it writes the trace's own object, as a member.
 * False: the trace has no heap, or cannot be read, which the reader of its events reports. row_limit is the number of
 * rows of a table, -1 for all, 0 for the default. places names the frames. With NULL they stay FILE+0xOFFSET.
 * With a profile the tables have its sites, since the trace has only the largest. installed: the packages that the
 * trace lists, or NULL.
 */
bool kp_heapview_write(FILE *out, const struct kp_texts *from, long row_limit, bool as_json,
                       const struct kp_places *places, const struct kp_profile *profile, const char *installed);
/* The same of a profile without its trace. */
void kp_heapview_profile(FILE *out, const struct kp_profile *profile, long row_limit, const struct kp_places *places);

/* From now on call stacks show the interpreter's own frames, too (heapfold.h). */
void kp_heapview_show_interpreter(void);

/* A call stack of a profile, with the program's own line above. frame 0: not known. */
void kp_heapview_stack(FILE *out, const struct kp_profile *profile, const struct kp_places *places, uint32_t frame);
/* --- leakview.c --- */

/* The call stacks that left something in the steps from number `first` to `last` (-1: all), and what each step left.
 * False: the profile has no such step. */
bool kp_leakview_write(FILE *out, const struct kp_profile *profile, long row_limit, const struct kp_places *places,
                       long first, long last);

/* --- arenaview.c --- */

enum kp_arenaview_part {
    KP_ARENAS_ALL,    /* how many there are, how many came in the steps, and how to see each object */
    KP_ARENAS_GREW,   /* the same, but only where arenas came in the steps */
    KP_ARENAS_RESTED, /* one line, where none came */
};
/* Says what Python's small objects took in the steps from index `from` to `to`. Nothing where Python has no arenas. */
void kp_arenaview_write(FILE *out, const struct kp_profile *profile, size_t from, size_t to,
                        enum kp_arenaview_part part);

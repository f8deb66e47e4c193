// SPDX-License-Identifier: Apache-2.0
/*
 * heapview.h - the host's heap of a trace with KPROF_MALLOC, as text and for other programs
 *
 *   heapview.c     totals, leaks, the peak, the largest sites; leakview.c and arenaview.c: of steps
 *   heapnames.c    functions and source lines of a profile's addresses
 *   heapleaks.c    what each step left, by call stack
 *   heap_formats.c writes a profile as heaptrack's file, folded stacks, JSON, a flame graph; heappprof.c for pprof
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "export/kp_export.h"
#include "export/read/folder/heapprofile.h"

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

/* --- heapnames.c --- */

/* Looks up functions and lines of all addresses. Sites that are not found keep the file's own. */
void kp_profile_name(struct kp_profile *p, const struct kp_places *places);
/* A function's name as shown: demangled, and short. May be of `out`. */
const char *kp_profile_plain(const struct kp_places *places, const char *mangled, char *out, size_t bytes);
/* As kp_places.find for one address. 0: its module is not known. */
int kp_profile_places(const struct kp_profile *p, const struct kp_profile_address *a, const struct kp_places *places,
                      struct kp_place *out, int most);
/* "f", or "module+0x1234" without a name. place: index among the address's places, 0 if it has none. */
const char *kp_profile_function(const struct kp_profile *p, const struct kp_profile_address *a, uint32_t place,
                                char *out, size_t bytes);

/* Is it a line of a Python function? */
bool kp_profile_is_python(const struct kp_profile *p, const struct kp_profile_address *a);
/* Is there one in a call stack, from this frame on? */
bool kp_profile_has_python(const struct kp_profile *p, uint32_t frame);

/* The program's own line of Python in a call stack, the innermost; NULL: none. */
const struct kp_profile_place *kp_profile_own_line(const struct kp_profile *p, uint32_t frame);

/* --- heapleaks.c --- */

/* The blocks of a call stack in a step: taken there, and kept. */
struct kp_profile_leak {
    uint32_t site; /* index */
    uint32_t step; /* index in steps */
    uint64_t blocks, bytes;
};
/* Every pair of call stack and step (from index `from` to `to`) that left a block, by call stack, steps in order. The
 * caller frees it. */
struct kp_profile_leak *kp_profile_leaks(const struct kp_profile *p, size_t from, size_t to, size_t *n);

/* True if steps from index `from` to `to` have step 0, which has the start-up, among others */
bool kp_profile_is_startup(const struct kp_profile *p, size_t from, size_t to, size_t step);
/* Did the arena come in these steps, but for the start-up, and is it still there? */
bool kp_profile_is_arena_growth(const struct kp_profile *p, size_t from, size_t to, const struct kp_profile_arena *a);

/* --- heap_formats.c, heappprof.c --- */

/* The measures of a site. */
enum kp_profile_by { KP_BY_PEAK, KP_BY_LEAKED, KP_BY_ALLOCATED, KP_BY_TEMPORARY, KP_BY_N };
extern const char *const kp_profile_by_names[KP_BY_N];

void kp_profile_folded(const struct kp_profile *p, FILE *out, enum kp_profile_by by);
void kp_profile_flame(const struct kp_profile *p, FILE *out, enum kp_profile_by by, const char *title);
void kp_profile_json(const struct kp_profile *p, FILE *out);
extern const struct kp_fields *const kp_profile_schema;
/* Reads the text again. 0, or -errno and perhaps a line in `why`. */
int kp_profile_heaptrack(const struct kp_profile *p, FILE *out, const struct kp_texts *from, char *why,
                         size_t why_bytes);
void kp_profile_pprof(const struct kp_profile *p, FILE *out);

// SPDX-License-Identifier: Apache-2.0
/*
 * heapprofile.h - NAME.heap.zst in memory: the call stacks that allocated, as a tree, and their sums
 *
 *   heapprofile.c  reads the file, and plays its blocks for the peak
 *   heapnames.c    functions and source lines of its addresses
 *   heapleaks.c    what each step left, by call stack
 *   heap_formats.c writes it for other programs: heaptrack, folded stacks, JSON, a flame graph
 *   heappprof.c    and for pprof
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "export/kp_export.h"
#include "export/read/kineto/kineto.h"
#include "export/read/parse/kineto_parse.h"

/* All that has a number is at [number - 1]; number 0 is none. */
struct kp_profile_address {
    uint64_t offset; /* in the module's file, or the address itself */
    uint32_t module; /* a text */
    uint32_t at, n;  /* in `places`: functions inlined there first */
};
struct kp_profile_place {
    uint32_t function, file, line; /* texts */
};
struct kp_profile_frame {
    uint32_t address, around; /* around: its caller's frame, always a lower number */
};
struct kp_profile_site {
    uint32_t frame; /* the innermost */
    uint64_t allocations, bytes;
    uint64_t temporary, temporary_bytes;     /* freed before anything else was allocated */
    uint64_t peak_blocks, peak_bytes;        /* when all sites together had most */
    uint64_t live_blocks, live_bytes, epoch; /* at the end; epoch: peak_* are of this peak */
    uint64_t kept_blocks, kept_bytes;        /* when Python began to end; without that at the end */
};
struct kp_profile_size {
    uint64_t bytes, live; /* live: blocks at the end */
    uint64_t kept;    /* of a step: when the last step began. Else when Python began to end; without that at the end */
    uint64_t at_mark; /* live blocks when step number `mark` of the file began, if that is the last one so far */
    uint32_t mark;
    uint32_t site; /* index */
};
struct kp_profile_arena { /* memory in which Python keeps objects of up to 512 bytes; these are no blocks */
    uint64_t address, bytes;
    uint32_t frame;   /* that needed a new one */
    uint32_t step;    /* index in steps, or UINT32_MAX */
    bool is_unmapped; /* while the program ran */
};
struct kp_profile_step {
    uint64_t number;
    size_t sizes, sizes_end;            /* of its blocks */
    uint64_t left_blocks, left_bytes;   /* taken in it, and there when it ended */
    uint64_t still_blocks, still_bytes; /* and kept, as above; of the last step what Python's end found */
};
struct kp_profile {
    char **texts, **builds; /* builds: the build id of the module with that text, or NULL */
    struct kp_profile_address *addresses;
    struct kp_profile_place *places;
    struct kp_profile_frame *frames;
    struct kp_profile_site *sites;
    struct kp_profile_size *sizes;
    struct kp_profile_step *steps;
    struct kp_profile_arena *arenas;
    size_t texts_n, builds_n, addresses_n, places_n, frames_n, sites_n, sizes_n, steps_n, arenas_n;
    size_t texts_cap, builds_cap, addresses_cap, places_cap, frames_cap, sites_cap, sizes_cap, steps_cap, arenas_cap;
    uint32_t marks;            /* steps that began so far */
    char *program, *installed; /* installed: packages, with commas; NULL: not told */
    uint64_t ms;               /* how long the window was */
    bool all_frames; /* folded stacks and flame graphs have the interpreter's frames beside Python's; the caller's */
    bool is_python_over; /* the file tells when Python began to end: it frees then what the program kept */
    struct kp_profile_site total;
};
/* 0, or -errno and a line in `why`. `label` is what messages call it. */
int kp_profile_read(struct kp_profile **out, const struct kp_texts *from, const char *label, char *why,
                    size_t why_bytes);
void kp_profile_close(struct kp_profile *p);
bool kp_profile_is(const char *path); /* by its name */
/* NAME.heap.zst (or .heap.gz) of a trace, if it is there, or the path itself if it is one. False: there is none. */
bool kp_profile_find(char *out, size_t bytes, const char *path);
static inline const char *kp_profile_text(const struct kp_profile *p, uint32_t number)
{
    return number ? p->texts[number - 1] : "";
}
uint32_t kp_profile_text_add(struct kp_profile *p, const char *text, size_t bytes);

/* Looks up functions and lines of all addresses. Those that are not found keep the file's own. */
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

/* What a call stack left in a step: blocks taken there, and kept. */
struct kp_profile_leak {
    uint32_t site; /* index */
    uint32_t step; /* index in steps */
    uint64_t blocks, bytes;
};
/* Every pair of call stack and step (from index `from` to `to`) that left a block, by call stack, steps in order. The
 * caller frees it. */
struct kp_profile_leak *kp_profile_leaks(const struct kp_profile *p, size_t from, size_t to, size_t *n);

/* Of steps from index `from` to `to`: is it step 0, which has the start-up, among others? */
bool kp_profile_is_startup(const struct kp_profile *p, size_t from, size_t to, size_t step);
/* Did the arena come in these steps, but for the start-up, and is it still there? */
bool kp_profile_is_arena_growth(const struct kp_profile *p, size_t from, size_t to, const struct kp_profile_arena *a);

/* The measures of a site. */
enum kp_profile_by { KP_BY_PEAK, KP_BY_LEAKED, KP_BY_ALLOCATED, KP_BY_TEMPORARY, KP_BY_N };
extern const char *const kp_profile_by_names[KP_BY_N];
uint64_t kp_profile_measure(const struct kp_profile_site *site, enum kp_profile_by by);

void kp_profile_folded(const struct kp_profile *p, FILE *out, enum kp_profile_by by);

void kp_profile_flame(const struct kp_profile *p, FILE *out, enum kp_profile_by by, const char *title);
void kp_profile_json(const struct kp_profile *p, FILE *out);
extern const struct kp_fields *const kp_profile_schema;
/* Reads the text again. 0, or -errno and perhaps a line in `why`. */
int kp_profile_heaptrack(const struct kp_profile *p, FILE *out, const struct kp_texts *from, char *why,
                         size_t why_bytes);
void kp_profile_pprof(const struct kp_profile *p, FILE *out);

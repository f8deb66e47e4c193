// SPDX-License-Identifier: Apache-2.0
/* heapprofile.h - NAME.heap.zst in memory: the call stacks that allocated, as a tree, and their sums */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

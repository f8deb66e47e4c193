// SPDX-License-Identifier: Apache-2.0
/* advised.h - a trace that is read and judged; the largest findings of a run that has just ended */
#pragma once

#include <stdio.h>
#include <time.h>

#include "export/answers/advise/parts/finding.h"
#include "export/read/parse/kineto_parse.h"

struct kp_advised {
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_chosen chosen;
    struct kp_advice advice;
    bool is_part; /* the file ends early, and this is of what comes before */
    bool has_read_workers, has_read_ranks;
    char *workers; /* kp_workers_tell(): what the workers of its DataLoader do, as text; or NULL */
};
/*
 * Reads a trace with all that findings need. Returns 0 or -errno, with a line in `why`. Whatever it returns, the caller
 * gives `tree` to kp_tree_fini() and *trace to kp_kineto_close().
 */
int kp_advised_read(struct kp_kineto **trace, struct kp_tree *tree, const struct kp_texts *texts, const char *label,
                    char *why, size_t why_bytes);
/* The same. With `takes_part` a file that ends early is read up to there: *is_part is set, `why` says so, and it
 * returns 0. */
int kp_advised_read_part(struct kp_kineto **trace, struct kp_tree *tree, const struct kp_texts *texts,
                         const char *label, bool takes_part, bool *is_part, char *why, size_t why_bytes);
/* The same of a file, and chooses all of it. The caller calls kp_chosen_fini(), too. */
int kp_advised_read_all(struct kp_kineto **trace, struct kp_tree *tree, struct kp_chosen *chosen, const char *path);
/*
 * Reads and judges it. Returns as above; the caller calls kp_advised_close(). With `takes_part` a file that ends early
 * is judged up to there: `why` then says so, and it returns 0.
 */
int kp_advised_open(struct kp_advised *out, const struct kp_texts *texts, const char *label, bool takes_part, char *why,
                    size_t why_bytes);
/* Judges a trace that is read already, and takes it. Returns as above. */
int kp_advised_of(struct kp_advised *out, struct kp_kineto *trace, const char *label, char *why, size_t why_bytes);
void kp_advised_close(struct kp_advised *advised);

/*
 * Says on stderr the three largest findings of the newest trace in a folder that is not older than `since`. With
 * `only_findings` it says nothing where there is none, or where the trace cannot be judged. `add` gets the trace that
 * is judged, with its path: kp_judged_add_at_end(). `compare` then has the other ranks: kp_endranks_tell().
 */
typedef void (*kp_advised_fn)(struct kp_advised *advised, const char *path);
typedef void (*kp_advised_ranks_fn)(struct kp_advised *advised, const char *path, const char *folder,
                                    const struct timespec *since, bool is_asked);
void kp_advised_say(const char *folder, const struct timespec *since, bool only_findings, kp_advised_fn add,
                    kp_advised_ranks_fn compare);
typedef void (*kp_advised_each_fn)(void *context, const char *path, int64_t bytes);
/* Calls `fn`, if not NULL, with each trace of a folder that is not older than `since`, by name. Returns how many. */
size_t kp_advised_each(const char *folder, const struct timespec *since, kp_advised_each_fn fn, void *context);
size_t kp_advised_each_left(const char *folder, const struct timespec *since, kp_advised_each_fn fn,
                            void *context); /* each spool */
/* Says on stderr how the program ended that left a spool not older than `since`: by a signal, and whether the kernel
 * killed a process meanwhile for want of memory, or (0) without an exit, where there is no trace. */
void kp_advised_left_say(const char *folder, const struct timespec *since, int signal, bool lacked_memory);
/* Returns the path of a folder's newest trace, or NULL. The caller frees it. */
char *kp_advised_newest(const char *folder);
/* Prints how a program ended, and file and bytes of each trace of the folder that is not older than `since`, as
 * JSON. */
void kp_advised_json(FILE *out, int status, const char *folder, const struct timespec *since);
extern const struct kp_fields *const kp_advised_schema;

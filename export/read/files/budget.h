// SPDX-License-Identifier: Apache-2.0
/* budget.h - limits the time, memory, text and disk that a command uses for a file */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The limits for a file of so many bytes (UINT64_MAX: a pipe). They grow with the file, times KPROF_READ_LIMIT. 0: no
 * limit.
 */
struct kp_budget {
    uint64_t seconds; /* of processor time */
    uint64_t memory;  /* bytes beyond those in use at kp_budget_begin */
    uint64_t text;    /* bytes of JSON that come out of a gzip or a spool, and of what is printed */
    uint64_t disk;    /* bytes of each temporary file */
};
void kp_budget_make(struct kp_budget *out, uint64_t file_bytes, const char *times);
/* Bytes of data in a file of that size, without its holes, where the file system tells holes. Moves fd's offset. */
uint64_t kp_budget_data(int fd, uint64_t size);

/* The limits hold from here to _end. A second _begin ends the first. `path` is for messages. */
void kp_budget_begin(const char *command, const char *path);
/* The limits of all files so far together, for what is made of them when all are read. The last one's path is told. */
void kp_budget_begin_all(void);
void kp_budget_end(void);
const struct kp_budget *kp_budget_now(void); /* all 0 outside */
/* Adds the time and memory that reading so many bytes of debug information may cost. */
void kp_budget_more(uint64_t file_bytes);
/* Adds what a file of that size may cost: it lies beside the other, and is read, too. */
void kp_budget_beside(const char *path);
/* Counts so many bytes of text out of the file. 0, or -EFBIG when that is too much. */
int kp_budget_text(uint64_t bytes);
void kp_budget_unpacked(void); /* the text goes to a file as it is: no more of it than `disk` */
uint64_t kp_budget_left(void); /* bytes of text left, at least 1, or 0 without a limit */
/*
 * Counts printed bytes. More than `text` ends the command with a message; more than `disk` where they go to a file
 * that kp_budget_part names.
 */
void kp_budget_print(size_t bytes);
/*
 * The meaning of an error number and what to do: "more than 768 MiB of text come out of it (..)", or strerror. The next
 * call overwrites the text.
 */
const char *kp_budget_explain(int rc);

/*
 * The path of a trace's temporary file, for kp_export_options.part. A signal or a limit that ends the command removes
 * it.
 */
char *kp_budget_part(void);
char *kp_budget_heap_part(void); /* the same for kp_export_options.heap_part */

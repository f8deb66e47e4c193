// SPDX-License-Identifier: Apache-2.0
/* budget.h - how much time, memory, text and disk a command may take for one file that it reads */
#ifndef KP_BUDGET_H
#define KP_BUDGET_H

#include <stddef.h>
#include <stdint.h>

/* For a file of so many bytes; UINT64_MAX: a pipe, of which nobody knows. Grows with the file, and KPROF_READ_LIMIT
 * times that. 0: no limit. */
struct kp_budget {
    uint64_t seconds; /* of processor time */
    uint64_t memory;  /* bytes beyond what is there when it begins */
    uint64_t text;    /* bytes of JSON that come out of a gzip or a spool, and of what is printed */
    uint64_t disk;    /* bytes of each temporary file */
};
void kp_budget_make(struct kp_budget *out, uint64_t file_bytes, const char *times);
/* Bytes of data in a file of that size, without its holes; moves fd's offset. `size` where the file system tells of no
 * holes. */
uint64_t kp_budget_data(int fd, uint64_t size);

/* The limits hold from here to _end. One at a time; a second _begin ends the first. `path`: what messages name. */
void kp_budget_begin(const char *command, const char *path);
void kp_budget_end(void);
const struct kp_budget *kp_budget_now(void); /* all 0 outside */
/* So many bytes of another file, debug information, are looked through for it: time and memory grow by what they may
 * cost. */
void kp_budget_more(uint64_t file_bytes);
/* So many bytes of text came out of the file; 0, or -EFBIG when that is too much. */
int kp_budget_text(uint64_t bytes);
void kp_budget_unpacked(void); /* the text goes to a file as it is: no more of it than `disk` */
uint64_t kp_budget_left(void); /* of that, at least 1; 0: any number */
/* So many bytes were printed. What is beyond `text` ends the command with a message. */
void kp_budget_print(size_t bytes);
/* What an error number means here: "more than 768 MB of text come out of it (..)", with what to do; else strerror. One
 * text at a time. */
const char *kp_budget_explain(int rc);

/* While a command writes a trace: its temporary file, which goes when a signal or the budget ends the command. */
char *kp_budget_part(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * kp_rank.h - a process's rank in its job, and which ranks KPROF_RANKS names
 *
 * Called by: boot.c (the environment), the exporter and the command (the same variables in the spool), config.c
 * Safe in:   everywhere: no state, no system call
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_rank {
    uint32_t rank, size; /* 0 of 1 without a launcher */
    bool is_launched;    /* a launcher's variable, or the process group, has the rank */
    int64_t on_node;     /* the number among the ranks of this machine; -1: no variable has it */
};

/* In the spool, as if they were variables: what the process group says, or the environment later (distributed.c). They
 * count before all others. */
#define KP_RANK_GROUP_RANK "group.rank"
#define KP_RANK_GROUP_SIZE "group.size"

/* The file into which torch.distributed.elastic writes the exception that ends this rank. A rank that is started as a
 * function has it in os.environ alone. */
#define KP_RANK_ERROR_FILE "TORCHELASTIC_ERROR_FILE"

/* Returns the value of a variable, or NULL. */
typedef const char *(*kp_rank_text_fn)(const void *from, const char *variable);
struct kp_rank kp_rank_find(kp_rank_text_fn text_of, const void *from);
/* The variables that kp_rank_find asks for, by number from 0. NULL: no more. */
const char *kp_rank_variable(unsigned at);

enum { KP_RANK_MANY = 8 }; /* a job of more ranks than one machine has by custom */
enum { KP_JOB_ID_BYTES = 46 };
/*
 * The id of the job that a rank is of, by its launcher's variables: letters, digits, "_", "-" and ".". Ranks of two
 * jobs that run at a time have two ids. "": no launcher, or one that names no job. See decisions/123.
 */
void kp_job_id_find(kp_rank_text_fn text_of, const void *from, char out[KP_JOB_ID_BYTES]);

/* Checks a value of KPROF_RANKS: "0,8-15", "first-of-node", "1/16". 0, or -EINVAL with a short phrase in why. */
int kp_ranks_check(const char *text, char *why, size_t why_bytes);
/* Whether a checked value names this rank. first-of-node names it if on_node is 0. */
bool kp_ranks_name(const char *text, const struct kp_rank *place);
/* Whether a checked value names any rank of a job of that size. true where it depends on machines. */
bool kp_ranks_name_any(const char *text, uint32_t size);
/* Whether a checked value has the word first-of-node. */
bool kp_ranks_need_node(const char *text);

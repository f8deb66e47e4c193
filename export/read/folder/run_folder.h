// SPDX-License-Identifier: Apache-2.0
/* run_folder.h - the traces and spools of a folder: whose they are, when they began, who ran whom */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_found {
    char *path;
    char worker[256];           /* HOST_PID */
    int64_t since_ns, until_ns; /* a trace's time of writing; a spool's first and last write */
    long rank;                  /* -1: none in the name, or in the head of a spool, or of a trace that is not ours */
    char job[48];               /* its id; "": not known. Set by kp_run_folder_jobs */
    char program[64];           /* the script, or the process's name; set by kp_found_note */
    int64_t begin_ns;           /* of what is recorded in it; set by kp_found_note */
    long parent_pid;            /* 0: not known; set by kp_found_note */
    enum kp_found_kind { KP_FOUND_ANY, KP_FOUND_PYTHON, KP_FOUND_TORCH } kind; /* the same */
    bool is_spool, is_of_run;
    bool is_noted;    /* kp_found_note has read its head */
    bool is_ours;     /* a trace of libkprof; set by kp_found_note */
    bool is_launcher; /* set by kp_run_folder_drop_launchers */
};
/* Files by rank and time. */
struct kp_run_folder {
    const char *path;
    struct kp_found *of;
    size_t count, capacity;
};

/* --- run_folder.c --- */

/* Reads the names in folder->path. 0 or -errno. */
int kp_run_folder_read(struct kp_run_folder *folder);
/* Leaves out a spool beside a trace of its own process. */
void kp_run_folder_thin(struct kp_run_folder *folder);
void kp_run_folder_free(struct kp_run_folder *folder); /* keeps the path */
/* The newest file, of all or of one rank; NULL: none. */
const struct kp_found *kp_run_folder_newest(const struct kp_run_folder *folder, bool any_rank, long rank);
bool kp_found_is_same_worker(const struct kp_found *a, const struct kp_found *b);
/* False: they are of two jobs that share the folder. */
bool kp_found_is_same_job(const struct kp_found *a, const struct kp_found *b);

/* --- foundnote.c --- */

/* Notes which process started this trace's process, and what program it is: once. torch's own traces have their rank in
 * the head alone. */
void kp_found_note(struct kp_found *f);

/* --- who_ran_whom.c --- */

/* Notes the jobs of all ranks: reads the head of one file of each process. */
void kp_run_folder_jobs(struct kp_run_folder *folder);
/* How many files are of the run of the newest: of the program that began it, and of what that started. */
size_t kp_found_family(struct kp_run_folder *folder);
/* The newest file of a rank that the process of `f` started, itself or through others; NULL: `f` is a rank, or none. */
const struct kp_found *kp_found_rank_below(struct kp_run_folder *folder, const struct kp_found *f);
/* These need all files of the folder noted. The trace of the process that started this one's, or NULL. */
const struct kp_found *kp_found_above(const struct kp_run_folder *folder, const struct kp_found *f);
/* `top` may be a wrapper (timeout, a shell): the program that it ran is meant. */
const struct kp_found *kp_found_program(const struct kp_run_folder *folder, const struct kp_found *top);
/* Drops the traces and spools of programs that started ranks and ran no op themselves (torchrun). Returns one of the
 * traces, which lives until the next call, or NULL; *count: how many. */
const struct kp_found *kp_run_folder_drop_launchers(struct kp_run_folder *folder, size_t *count);

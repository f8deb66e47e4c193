// SPDX-License-Identifier: Apache-2.0
/*
 * children.h - KPROF_CHILDREN=1: forked children record too, workers in the folder `children`
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_config;

/* Called once by the constructor, when the folders are set. A process that multiprocessing started finds its parent. */
void kp_children_setup(const struct kp_config *config);
/* Shall forked children record? */
bool kp_children_are_wanted(void);
/* Called at the first op of this process: children that it forks or spawns from here on are its workers. May take 0.1
 * ms. */
void kp_children_first_op(void);

/* Was this process started by Python's multiprocessing (spawn, forkserver)? Then it may be a DataLoader worker, which
 * runs ops but has no steps. */
bool kp_children_is_multiprocessing(void);
/* In a forked child, inside fork. The child is a worker if its parent, or the process that the parent is a worker of,
 * ran ops. */
void kp_children_join(void);
/* In a worker, with a schedule: opens and closes windows with those of the process that has the steps. */
void kp_children_follow(void);
/* In a worker: enters its spool in the shared table. The process that has the steps exports it after the worker's end.
 */
void kp_children_register(const char *spool_path);
/* The bytes that the spools of this process's brothers take together, or NULL: it is no forked child and no worker. */
struct kp_record_share *kp_children_share(void);

/* In the process that has the steps: have workers ended whose spools wait? A system call for each worker. */
bool kp_children_have_ended(void);
/* Exports the spool of a worker that has ended, on the export thread. Returns whether more of them wait. */
bool kp_children_collect_one(void);
/*
 * At exit of the process that has the steps, when the export thread has ended: exports the spools of its dead workers,
 * `least` of them and more for `ms`, and logs one line about all.
 */
void kp_children_collect(unsigned least, uint64_t ms);

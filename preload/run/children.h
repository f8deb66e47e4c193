// SPDX-License-Identifier: Apache-2.0
/*
 * children.h - KPROF_CHILDREN=1: forked children record too, workers in the folder `children`
 */
#ifndef KP_CHILDREN_H
#define KP_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

struct kp_config;

/* Called once by the constructor, when the folders are set. A process that multiprocessing started finds its parent. */
void kp_children_setup(const struct kp_config *config);
/* Shall forked children record? */
bool kp_children_are_wanted(void);
/* Called at the first op of this process: children that it forks or spawns from here on are its workers. May take 0.1
 * ms. */
void kp_children_worked(void);

/* Was this process started by Python's multiprocessing (spawn, forkserver)? Then it may be a DataLoader worker, which
 * runs ops but has no steps. */
bool kp_children_is_multiprocessing(void);
/* In a forked child, inside fork. The child is a worker if its parent, or the process that the parent is a worker of,
 * ran ops. */
void kp_children_forked(void);
/* In a worker, with a schedule: opens and closes windows with those of the process that has the steps. */
void kp_children_follow(void);
/* In a worker: enters its spool in the shared table. The process that has the steps exports that spool at its exit. */
void kp_children_register(const char *spool_path);

/* At exit of the process that has the steps: exports the spools of its dead workers, and logs one line about them. */
void kp_children_collect(void);

#endif

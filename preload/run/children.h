// SPDX-License-Identifier: Apache-2.0
/*
 * children.h - KPROF_CHILDREN=1: forked children record too, workers in the folder `children`
 */
#ifndef KP_CHILDREN_H
#define KP_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

struct kp_config;

/* Once, by the constructor, when the folders are known: a process that multiprocessing started finds whose worker it
 * is. */
void kp_children_setup(const struct kp_config *config);
/* Whether a child that is forked shall record. */
bool kp_children_are_wanted(void);
/* The first op of this process: whoever it forks or spawns from here on is its worker. May take a tenth of a
 * millisecond. */
void kp_children_worked(void);

/* Started by Python's multiprocessing (spawn, forkserver): a DataLoader worker maybe, which runs ops but owes nobody a
 * step. */
bool kp_children_is_multiprocessing(void);
/* In a forked child, inside fork. A worker, when who forked it (or whose worker that is) ran ops. */
void kp_children_forked(void);
/* In a worker, with a schedule: its windows begin and end with those of the process that has the steps. */
void kp_children_follow(void);
/* In a worker: its spool was opened; at its exit the process that has the steps makes a trace of what is left in it. */
void kp_children_register(const char *spool_path);

/* At exit of the process that has the steps: traces of what its dead workers left, and one line about them. */
void kp_children_collect(void);

#endif

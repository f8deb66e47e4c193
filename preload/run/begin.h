// SPDX-License-Identifier: Apache-2.0
/*
 * begin.h - begins the run: when the first source attaches, in a forked child at its first activity
 */
#pragma once

#include <stdbool.h>

struct kp_config;
struct kp_schedule;

/* Called once by the constructor. Both stay. */
void kp_begin_setup(const struct kp_config *config, const struct kp_schedule *schedule);
/* Whether each of many ranks records from start to exit. */
bool kp_begin_is_unscheduled_job(const struct kp_schedule *of);
/* Attaches the sources whose library is loaded now. Any host thread, outside hooks; never waits. */
void kp_begin_modules_changed(void);
void kp_begin_module_starts(const void *inside); /* run.h */
/* Once a process, at the first activity. */
void kp_begin_first_activity(void);
/* Inside fork, in a child that shall record: its own run has not begun. */
void kp_begin_forget(void);
/* fork.c: follows the host's forks. Called once by the constructor, before the run is active. The schedule stays. 0 or
 * -ENOMEM. */
int kp_fork_follow(const struct kp_schedule *schedule);

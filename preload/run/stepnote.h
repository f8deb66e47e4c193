// SPDX-License-Identifier: Apache-2.0
/* stepnote.h - the thread kprof-summary: a line a step, what to record next, metrics */
#pragma once

#include <stdbool.h>

#include "collector/base/kp_config.h"

struct kp_run_oom;

void kp_stepnote_setup(struct kp_config *config); /* the constructor, before the settings are read-only */
bool kp_stepnote_is_trigger(void);                /* KPROF_TRIGGER is set: nothing is recorded before it says so */
void kp_stepnote_begin(void);                     /* the run begins */
/* An allocation failed (KPROF_ON_OOM): a file says what is live. Any thread; keeps errno; waits 100 ms at most. */
void kp_stepnote_out_of_memory(const struct kp_run_oom *oom);
void kp_stepnote_end(void);    /* exit: the last lines are written; waits 1 s at most */
void kp_stepnote_forget(void); /* in a forked child, which has no lines */

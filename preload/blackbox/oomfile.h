// SPDX-License-Identifier: Apache-2.0
/* oomfile.h - what is live when an allocation of torch fails, as a file (KPROF_ON_OOM) */
#pragma once

#include <stdbool.h>

struct kp_config;
struct kp_run_oom;

void kp_oomfile_setup(const struct kp_config *config);
/* Makes the text on the thread that failed. False: there is no file to write; else kp_oomfile_turn writes it. */
bool kp_oomfile_make(const struct kp_run_oom *oom);
void kp_oomfile_wait(void);   /* until it is written, 100 ms at most */
bool kp_oomfile_turn(void);   /* writes a file that waits for it; was there one? A helper thread */
void kp_oomfile_forget(void); /* in a forked child */

// SPDX-License-Identifier: Apache-2.0
/* oomfile.h - what is live when an allocation of torch fails, as a file (KPROF_ON_OOM) */
#pragma once

#include <stdbool.h>

struct kp_config;
struct kp_run_oom;

void kp_oomfile_setup(const struct kp_config *config);
void kp_oomfile_write(const struct kp_run_oom *oom); /* any thread; keeps errno */
bool kp_oomfile_turn(void);   /* writes a file that waits for it; was there one? A helper thread */
void kp_oomfile_forget(void); /* in a forked child */

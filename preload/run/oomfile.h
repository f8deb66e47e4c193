// SPDX-License-Identifier: Apache-2.0
/* oomfile.h - what is live when an allocation of torch fails, as a file (KPROF_ON_OOM) */
#pragma once

struct kp_config;
struct kp_run_oom;

void kp_oomfile_setup(const struct kp_config *config);
void kp_oomfile_write(const struct kp_run_oom *oom); /* any thread; keeps errno */

// SPDX-License-Identifier: Apache-2.0
/* oomfiles.h - finds and reads the files that KPROF_ON_OOM wrote */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "export/answers/memory/oomtext.h"

bool kp_oomfile_is(const char *path); /* by its name: DIR/oom-TIME-HOST_PID.json */
bool kp_oomfile_read(struct kp_oom *out, const char *path, const char **why);
/* Calls fn for the newest file of each process in the folder, and returns how many. */
/* For each process its newest, the newest of all first. */
typedef void (*kp_oomfile_fn)(void *context, const struct kp_oom *oom);
size_t kp_oomfile_each(const char *folder, kp_oomfile_fn fn, void *context);

// SPDX-License-Identifier: Apache-2.0
/* jobstart.h - begins or ends a window in all ranks of a job, with one step, through the files of a folder */
#pragma once

#include <stdbool.h>

#include "export/show/fields.h"

struct kp_ctl_request;
extern const struct kp_fields *const kp_jobstart_schema; /* what kp_jobstart_run prints with is_json */

/* Whether ranks of a launcher take part in starts by this folder. */
bool kp_jobstart_has_ranks(const char *dir);
/* A request to start or to stop, for the job that `job` names (kp_joblist_pick). Returns the exit code. */
int kp_jobstart_run(const char *dir, const struct kp_ctl_request *request, const char *job, bool is_json);
/* Removes what ranks of this machine left that were killed. */
void kp_jobstart_sweep(const char *dir);

// SPDX-License-Identifier: Apache-2.0
/* kineto_processes.h - several processes in one file, as of ranks that were merged */
#pragma once

#include "export/read/kineto/kineto.h"

/* Gives ids that several processes have numbers of their own, and counts these processes. */
void kp_kineto_part_processes(struct kp_kineto *trace);
bool kp_kineto_has_processes(const struct kp_kineto *trace); /* are several in what was read so far? */

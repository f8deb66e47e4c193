// SPDX-License-Identifier: Apache-2.0
/* overlaps.h - what is work of a device, and how long it lasts: one stream does one work after another */
#pragma once

#include "export/read/kineto/kineto.h"

/*
 * For all views but torch's own tables, which take the file as it stands; before kp_tree_build. Waits (cuda_sync)
 * become KP_KINETO_GPU_WAIT: they are no work. Work that lasts too long ends where the next one of its stream begins,
 * and is counted in the trace.
 */
void kp_kineto_works_settle(struct kp_kineto *trace);

// SPDX-License-Identifier: Apache-2.0
/* overlaps.h - work of a device that lasts too long: one stream does one work after another */
#pragma once

#include "export/report/kineto.h"

/* Ends such work where the next one of its stream begins, and counts it in the trace. Before kp_tree_build; torch's own
 * tables take it as it stands in the file. */
void kp_overlaps_cut(struct kp_kineto *trace);

// SPDX-License-Identifier: Apache-2.0
/* phasetail.h - what came after the last op of a phase that was open when the program ended */
#pragma once

#include "export/read/kineto/kineto.h"

/*
 * Ends the trace of such a phase (kprof.phase_open) with its last op, range or work of a device. How much that leaves
 * out is the fact kprof.phase_tail, "validate:1:US".
 */
void kp_phasetail_cut(struct kp_kineto *trace);

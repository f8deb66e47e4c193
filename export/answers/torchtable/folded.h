// SPDX-License-Identifier: Apache-2.0
/* folded.h - call stacks with their times, for torch's export_stacks and flame graphs */
#pragma once

#include "export/read/tree/tree.h"

/* Reads a metric of export_stacks: self_cpu_time_total or self_cuda_time_total (also xpu, privateuse1, device). Returns
 * false for another name. */
bool kp_folded_metric(const char *name, bool *on_device);
/*
 * Calls `fn` for every event with a stack and at least one microsecond, in torch's order. Frames go from the outermost
 * to the innermost, joined by ';'. A blank in them becomes '_'.
 */
typedef void (*kp_folded_fn)(void *context, const char *stack, int64_t us);
void kp_folded_walk(const struct kp_tree *tree, bool on_device, kp_folded_fn fn, void *context);

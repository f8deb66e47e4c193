// SPDX-License-Identifier: Apache-2.0
/* input_args.h - the inputs of an op as Kineto shows them */
#pragma once

#include "collector/read/kp_read.h"
#include "export/write/out/json.h"

/*
 * Writes `,"Concrete Inputs":[..],"Input type":[..],"Input Strides":[..],"Input Dims":[..]` into an args object that
 * already has a member. Writes nothing for an event without inputs.
 */
void kp_inputs_write(struct kp_json *j, const struct kp_event *event);

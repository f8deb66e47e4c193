// SPDX-License-Identifier: Apache-2.0
/* collectives.h - the arguments of collectives: on their op, and on the kernels it launched */
#pragma once

#include "export/write/gpu/gpu.h"

/* Both write members with a comma before each. */
void kp_comms_op_write(struct kp_trace *t, const struct kp_comms *c);
void kp_comms_kernel_write(struct kp_trace *t,
                           uint64_t external); /* of the op with that External id, if it is a collective */
enum { KP_COMMS_KEPT_BYTES = 16 };             /* an item of gpu->comms */
/* Keeps c for the kernels of the op. External ids rise from call to call. */
void kp_comms_keep(struct kp_gpu *g, const struct kp_comms *c, uint64_t external);

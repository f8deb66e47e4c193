// SPDX-License-Identifier: Apache-2.0
/* fwdbwd.h - pairs forward ops with the backward ops they caused, as Kineto does */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/read/kp_read.h"

struct kp_flow_from { /* where the arrow begins */
    uint64_t start_ns;
    uint32_t tid;
};
struct kp_flows;

struct kp_flows *kp_flows_open(void); /* NULL: no memory */
void kp_flows_close(struct kp_flows *f);
/* Takes an op, in order of start time. True: it is a backward op that closes a pair, and *from is its forward op. */
bool kp_flows_take(struct kp_flows *f, const struct kp_event *op, struct kp_flow_from *from);

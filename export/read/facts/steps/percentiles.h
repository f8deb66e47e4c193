// SPDX-License-Identifier: Apache-2.0
/* percentiles.h - how long half, 90 and 99 % of steps or calls last at most */
#pragma once

#include "export/read/tree/chosen.h"

struct kp_percentiles {
    double p50_ns, p90_ns, p99_ns;
    size_t count; /* 0: there is nothing to tell */
};
/* The percentiles of the steps' lengths, or of the chosen time in them. */
struct kp_percentiles kp_percentiles_of_steps(const struct kp_chosen *chosen);
/* The percentiles of the whole calls that were asked for by name. */
struct kp_percentiles kp_percentiles_of_calls(const struct kp_chosen *chosen);

// SPDX-License-Identifier: Apache-2.0
/* kp_units.h - the ending of a word behind its number: "1 block", "2 blocks" */
#pragma once

#include <stdint.h>

static inline const char *kp_units_s(uint64_t count) { return count == 1 ? "" : "s"; }

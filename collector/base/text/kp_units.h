// SPDX-License-Identifier: Apache-2.0
/* kp_units.h - numbers in words: "1 block", "2 blocks", "1.50 KiB" */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline const char *kp_units_s(uint64_t count) { return count == 1 ? "" : "s"; }
/* fmt.c: "1.50 KiB", "1023 B", in all our own views. Returns `out`. */
char *kp_units_bytes(char *out, size_t bytes, int64_t amount);

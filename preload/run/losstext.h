// SPDX-License-Identifier: Apache-2.0
/* losstext.h - says why records were lost, and what to set, for the closing line */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* ", 5 of them over KPROF_MAX_MB: ..." of `lost` records, and how long threads waited for room; or "". */
void kp_losstext_write(char *out, size_t bytes, uint64_t lost);

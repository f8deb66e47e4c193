// SPDX-License-Identifier: Apache-2.0
/*
 * threadcount.h - leaves our helper threads out of the thread count that the host reads in /proc/self/stat
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Installs the tap when a run begins, in the constructor or where sources attach; also called in a recording child. */
void kp_threadcount_install(void);

/*
 * Lowers the number of threads in `bytes` bytes of a /proc/PID/stat, and returns the new length. Another text, or a
 * number that is not above `by`, is left unchanged.
 */
size_t kp_threadcount_lower(char *text, size_t bytes, uint32_t by);

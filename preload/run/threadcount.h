// SPDX-License-Identifier: Apache-2.0
/*
 * threadcount.h - a host that reads how many threads it has finds its own
 */
#ifndef KP_THREADCOUNT_H
#define KP_THREADCOUNT_H

#include <stddef.h>
#include <stdint.h>

/* Once a run begins, in the constructor or where sources attach. Again in a child that records. */
void kp_threadcount_install(void);

/*
 * Lowers the number of threads in `bytes` bytes of a /proc/PID/stat. A text that is none, or a number that is not above
 * `by`, stays. The new length.
 */
size_t kp_threadcount_lower(char *text, size_t bytes, uint32_t by);

#endif

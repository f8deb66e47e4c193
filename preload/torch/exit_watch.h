// SPDX-License-Identifier: Apache-2.0
/* exit_watch.h - keeps helper threads from calling torch once exit() destroys torch's objects */
#pragma once

#include <stdbool.h>

/* May this thread attach to torch now? false: exit() has begun, or may have; a later tick tries again. One thread calls
 * it at a time. On host threads it is always true. */
bool kp_torch_attach_begin(void);
void kp_torch_attach_end(void); /* only after true */

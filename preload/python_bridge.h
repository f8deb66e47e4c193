// SPDX-License-Identifier: Apache-2.0
/*
 * python_bridge.h - what a source may ask about the interpreter that called it, if one did
 */
#ifndef KP_PYTHON_BRIDGE_H
#define KP_PYTHON_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

/* Looks for an interpreter in this process. Outside hooks, one call at a time, before the others are asked; may be
 * repeated. */
void kp_caller_find(void);
/*
 * Inside a hook, at the end of a range of Optimizer.step: the object that stepped, as a value with the bit
 * KP_STEP_IDENTITY. Equal objects give equal values; one that is created where another died may too. 0: cannot be told.
 */
uint64_t kp_caller_optimizer(void);
/* Whether that object is no more. Seen at once when nothing refers to it; not when its memory serves an object of its
 * class. */
bool kp_caller_is_gone(uint64_t optimizer);

/* Inside a hook: the calling thread's Python call stack, as collector/format/kp_python.h says; 0: none, or not to be
 * read. */
struct kp_thread;
uint32_t kp_caller_stack(struct kp_thread *thread);

#endif

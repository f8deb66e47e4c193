// SPDX-License-Identifier: Apache-2.0
/* ownline.h - finds the program's own line, and its nn.Modules, in a call stack */
#ifndef KP_OWNLINE_H
#define KP_OWNLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_kineto;

/* Whether a frame, "file.py(12): name", is the program's: of no installed package and not of Python itself. */
bool kp_frame_is_own(const char *frame, size_t bytes);

/* What was found in stacks, by the stack's string id: each is searched once. All zero: nothing yet. */
struct kp_ownlines {
    uint32_t *of; /* string id + 1, 0: not searched yet */
    size_t count, capacity;
};
/* Both return a string id, 0 if the stack has none. The innermost own line, "train.py:12 forward". */
uint32_t kp_ownline_of(struct kp_ownlines *found, struct kp_kineto *trace, uint32_t stack);
/* All modules, the outermost first: "Net_0.Linear_1". */
uint32_t kp_ownline_modules(struct kp_ownlines *found, struct kp_kineto *trace, uint32_t stack);
void kp_ownlines_fini(struct kp_ownlines *found);

#endif

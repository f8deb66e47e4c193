// SPDX-License-Identifier: Apache-2.0
/* poolsize.h - how many threads torch computes an op with, in the thread of the steps */
#pragma once

void kp_torch_poolsize_attach(void); /* once, after kp_torch_find() */
void kp_torch_poolsize_look(void);   /* a step has ended; on its thread */
void kp_torch_poolsize_note(void);   /* in the spool, if it is new */
void kp_torch_poolsize_forget(void); /* a child has a spool of its own */

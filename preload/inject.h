// SPDX-License-Identifier: Apache-2.0
/*
 * inject.h - tells NVTX and the CUDA driver where we are, without a word in the environment
 */
#ifndef KP_INJECT_H
#define KP_INJECT_H

/* Once, from the constructor, after kp_hook_start, where NVTX and CUDA are to be recorded. 0 or -errno: nothing is answered. */
int kp_inject_start(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/* workerframe.h - frames with which a worker process begins, and in which it waits for work (decisions/052) */
#pragma once

#include <stddef.h>

/* The words that stand in tables for time that no line of the program explains. */
#define KP_WORKERFRAME_WAITS "(worker waits for work)"
#define KP_WORKERFRAME_LOOP "(worker's loop, no line of the program)"

enum kp_workerframe {
    KP_WORKERFRAME_NONE,
    KP_WORKERFRAME_START, /* a child of multiprocessing begins: frames around it ran before the fork */
    KP_WORKERFRAME_TAKES, /* the loop of a DataLoader's worker, or of a pool's, which takes work from a queue */
    KP_WORKERFRAME_GET    /* the queue is asked. Directly in such a loop that is the wait for work */
};
enum kp_workerframe kp_workerframe_of(const char *frame, size_t bytes);
/* The bytes of a stack "inner;outer;" up to the frame with which the process began, that frame included. */
size_t kp_workerframe_since_fork(const char *stack, size_t bytes);

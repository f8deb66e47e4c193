// SPDX-License-Identifier: Apache-2.0
/* pywait.h - what a thread waits for in a function of Python, by the function's name (pywait.def) */
#pragma once

#include <stdbool.h>

enum kp_pywait {
    KP_PYWAIT_NONE,
    KP_PYWAIT_SLEEP,
    KP_PYWAIT_QUEUE,
    KP_PYWAIT_LOCK,    /* of another thread, or its end */
    KP_PYWAIT_NETWORK, /* or another descriptor */
    KP_PYWAIT_PROCESS, /* or what a pool computes */
    KP_PYWAIT_FILE,    /* reads or writes: it may also compute */
    KP_PYWAIT_COMM,    /* other ranks, in a collective: that is communication */
    KP_PYWAIT_KINDS
};
/* The name of a call as traces have it: "queue.py(154): get", "<built-in function sleep>". */
enum kp_pywait kp_pywait_of(const char *name);
/* Does a thread do nothing while it is in that function itself? */
bool kp_pywait_is_idle(const char *name);

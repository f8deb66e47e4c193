// SPDX-License-Identifier: Apache-2.0
/* kp_crash.h - the signals by which the kernel ends a program, for a fault of it or for what it took */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Others ask a program to end, and it may. `signal`: 0 of none. */
static inline bool kp_crash_is(int signal)
{
    switch (signal) {
    case SIGKILL:
    case SIGSEGV:
    case SIGBUS:
    case SIGABRT:
    case SIGILL:
    case SIGTRAP:
    case SIGFPE:
    case SIGSYS:
    case SIGXCPU:
    case SIGXFSZ: return true;
    default: return false;
    }
}

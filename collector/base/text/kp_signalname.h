// SPDX-License-Identifier: Apache-2.0
/* kp_signalname.h - names of signals, the same in what the library writes and what kprof says */
#pragma once

#include <stddef.h>

/* Writes "SIGSEGV", or "signal 40". Returns it. Any thread, also in signal handlers. */
const char *kp_signalname_put(int number, char *room, size_t bytes);
/* The number of "SIGSEGV", or of "SIGSEGV at train.py:41 main"; 0: none with a name. */
int kp_signalname_number(const char *text);

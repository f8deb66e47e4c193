// SPDX-License-Identifier: Apache-2.0
/* hangrests.h - whether a program of no job rests: its main thread waits, and nothing works that could end the wait */
#pragma once

#include "export/answers/hang/hangread.h"

/*
 * By two looks at a process. True: its main thread waits for another thread or a child, and no thread or child of it
 * works or may wait for a disk, a socket or a device; writes "feeder.py:41 next, waits for another thread (futex)".
 */
bool kp_hang_rests(const struct kp_hang_process *now, const struct kp_hang_process *before, char *where, size_t bytes);

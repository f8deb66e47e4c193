// SPDX-License-Identifier: Apache-2.0
/* hangidle.h - a main thread that waits for what no other thread can bring */
#pragma once

#include <stdio.h>

#include "export/answers/hang/hangread.h"

/*
 * Continues a sentence about a process whose main thread waits for an event, a queue or a result. If all threads of
 * Python, beside idle ones of pools, wait for queues: "; the main thread and thread 101 (tapes.py:19 fill) all wait in
 * get() of queues: ..". If all others are idle ones of pools, or are none: "; no other thread runs code of Python ..".
 * Else nothing.
 */
void kp_hang_idle_say(FILE *out, const struct kp_hang_process *process);

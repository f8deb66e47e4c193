// SPDX-License-Identifier: Apache-2.0
/* hangchild.h - the child processes of one that stands: what they do, and which were killed */
#pragma once

#include <stdio.h>

#include "export/answers/hang/hangread.h"

/*
 * Continues a sentence about a process by the child that may be why it stands: one that was killed, that its main
 * thread waits for, or that waits for a lock, "; its child process 31 (python) was killed by SIGKILL". Nothing where
 * there is none.
 */
void kp_hang_child_say(FILE *out, const struct kp_hang_process *process);
void kp_hang_children_print(FILE *out, const struct kp_hang_process *process); /* a line each */
/* "reader.py:88 fetch" */
void kp_hang_frame_put(FILE *out, const struct kp_hang_frame *frame);
void kp_hang_frames_print(FILE *out, const struct kp_hang_thread *thread); /* a line each, the innermost first */
/* "waits for the lock of a file (flock: /data/x.lock)"; nothing where the call is not known. */
void kp_hang_call_put(FILE *out, const struct kp_hang_call *call);

// SPDX-License-Identifier: Apache-2.0
/* hangprint.h - prints where processes stand, and who waits for whom */
#pragma once

#include <stdio.h>

#include "export/answers/hang/hangjudge.h"

/* Prints every thread of a process. */
void kp_hang_threads_print(FILE *out, const struct kp_hang_process *process);
/* Prints the verdict, then the processes it accuses, then the others, those together that stand at one place. */
void kp_hang_print(FILE *out, const struct kp_hang *hang, const struct kp_hang_verdict *verdict);
/* hangjson.c: the same as one line of JSON. */
void kp_hang_json(FILE *out, const struct kp_hang *hang, const struct kp_hang_verdict *verdict);
extern const struct kp_fields *const kp_hang_schema;

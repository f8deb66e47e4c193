// SPDX-License-Identifier: Apache-2.0
/* doctor_steps.h - runs a program to see what counts its steps */
#pragma once

#include <stddef.h>

/* Runs the program under `library` with a schedule that waits for ever. `out` gets what the library said about steps,
 * a line a process. Returns 0 or -errno. */
int kp_doctor_steps(const char *library, char *const argv[], char *out, size_t bytes);

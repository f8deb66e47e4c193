// SPDX-License-Identifier: Apache-2.0
/* written.h - what a command wrote, as a line of JSON on standard output (--json) */
#pragma once

#include <stdint.h>

/* Begins a line with the file's name and bytes; `path`: where it is now. Members follow, and the last call ends it. */
void kp_written_begin(const char *name, const char *path);
void kp_written_number(const char *key, uint64_t value);
void kp_written_bool(const char *key, int value);
void kp_written_end(void);
/* Whether a command with --json may write to `out`. Standard output has the JSON; then the message is out. */
int kp_written_check(const char *command, const char *out);

// SPDX-License-Identifier: Apache-2.0
/* formats.h - `kprof export --format`: traces and spools in formats of other tools */
#pragma once

#include <stdbool.h>

bool kp_formats_knows(const char *format);
/* Writes each trace behind the paths to `out` ("-": standard output), or beside it where out is NULL. An exit code. */
int kp_formats_write(const char *format, const char *out, bool is_json, char **paths, int count);

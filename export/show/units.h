// SPDX-License-Identifier: Apache-2.0
/* units.h - prints times, shares, bytes and steps; a function with `out` returns it */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/base/text/kp_units.h"

/* Writes "1.234ms". unit: 's', 'm', 'u', or 0 to choose by size */
char *kp_units_time(char *out, size_t bytes, double us, char unit);
/* Writes "12 us" or "1.23 ms": a number of ns (unit 0) or us (1) in the unit that it reaches. */
char *kp_units_scaled(char *out, size_t bytes, double value, unsigned unit);
/* Writes a time in a sentence, with three digits that count: "1.23 ms", "123 ms", "12.3 s" or "4.50 us". */
char *kp_units_span(char *out, size_t bytes, int64_t ns);
/* The same in a room of its own, valid until it is called a fifth time. Not for threads. */
const char *kp_units_ms(double ns);
char *kp_units_share(char *out, size_t bytes, double us, double total_us);
char *kp_units_torch_bytes(char *out, size_t bytes, int64_t amount); /* "1.50 KB", of 1024, as torch writes it */
/* Bytes as KiB, MiB and so on, in a room of its own, valid until it is called a fifth time. Not for threads. */
const char *kp_units_size(int64_t amount);
/* Writes "step 5" or "steps 5 to 7". */
char *kp_units_steps(char *out, size_t bytes, long first, long last);

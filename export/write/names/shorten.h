// SPDX-License-Identifier: Apache-2.0
/* shorten.h - makes a function's name short enough for a stack */
#pragma once

#include <stddef.h>

/*
 * Removes return type, parameters and ';' from a demangled name, and the hash from an old Rust name. In a long name,
 * <...> replaces template arguments. Other names stay. Returns the length. `out` has as much room as `name`.
 */
size_t kp_symbol_short(const char *name, char *out, size_t bytes);

// SPDX-License-Identifier: Apache-2.0
/* shorten.h - a function's name short enough for a stack */
#ifndef KP_SYMBOLNAME_H
#define KP_SYMBOLNAME_H

#include <stddef.h>

/*
 * Of a demangled name: without what it returns and takes; where it is long, with <...> for what templates are made
 * with; without ';'. Of an old Rust name: without its hash. Other names stay. Returns the length; `out` has room for as
 * much as `name`.
 */
size_t kp_symbol_short(const char *name, char *out, size_t bytes);

#endif

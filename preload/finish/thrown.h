// SPDX-License-Identifier: Apache-2.0
/* thrown.h - says which exception of C++ ends the program */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * `caller` calls abort(). Writes "std::runtime_error "no space"" if that is libstdc++ for an exception that nothing
 * caught, "std::terminate()" if it is for another reason, as a thread that is destroyed while it runs; "": another
 * caller. On the thread that aborts.
 */
void kp_thrown_put(char *out, size_t bytes, const void *caller);
/* "St13runtime_error" becomes "std::runtime_error". A name with templates, or of no class, stays as it is. */
void kp_thrown_name(char *out, size_t bytes, const char *mangled);

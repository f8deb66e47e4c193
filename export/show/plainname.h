// SPDX-License-Identifier: Apache-2.0
/* plainname.h - demangles names of C++ and Rust functions */
#pragma once

#include <stdbool.h>

bool kp_plainname_can(void); /* false: built without libiberty */
/*
 * Demangles C++ and Rust (old and new). Valid until the next call. NULL: another name, damaged, or longer than 64 KB
 * when demangled.
 */
const char *kp_plainname(const char *mangled);
const char *kp_plainname_cpp(const char *mangled); /* C++ only */

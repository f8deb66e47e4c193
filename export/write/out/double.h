// SPDX-License-Identifier: Apache-2.0
/* double.h - a double as text, exactly as C's "%.17g" prints it in the C locale */
#pragma once

#include <stddef.h>

#define KP_DOUBLE_TEXT 32
size_t kp_double_text(char out[KP_DOUBLE_TEXT], double value); /* length; NUL-terminated */

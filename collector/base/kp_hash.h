// SPDX-License-Identifier: Apache-2.0
/*
 * kp_hash.h - 64-bit hash of short byte strings (op names: 10 to 60 bytes)
 *
 * Part of the file format (kp_str.hash), so the value for given bytes never changes, on any machine. Each round folds
 * in eight bytes by a 64x64->128 multiplication. Not for hostile input.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_hot.h"

KP_HOT uint64_t kp_hash64(const void *bytes, size_t len);

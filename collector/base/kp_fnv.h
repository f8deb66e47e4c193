// SPDX-License-Identifier: Apache-2.0
/* kp_fnv.h - FNV-1a, for tables in memory whose keys come in parts; kp_hash.h is faster for whole strings */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KP_FNV32 2166136261u
#define KP_FNV64 UINT64_C(0xcbf29ce484222325)

/* `hash`: of what came before, or the constant above. */
static inline uint32_t kp_fnv32(uint32_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

static inline uint64_t kp_fnv64(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * hash.c - 64-bit hash of short byte strings
 *
 * Called by: hooks that meet a name (warm), the readers of a spool
 * Safe in:   signal handlers yes; after fork yes (pure)
 */
#include "collector/base/kp_hash.h"

#include <string.h>

#include "collector/base/kp_poison.h"

/* odd numbers without a pattern, half of their bits set: digits of pi, e and sqrt(2) */
#define KP_HASH_PI 0x243f6a8885a308d3u
#define KP_HASH_E 0xb7e151628aed2a6bu
#define KP_HASH_ROOT 0x6a09e667f3bcc909u

__extension__ typedef unsigned __int128 wide;

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    wide m = (wide)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t word_get(const uint8_t *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* The last 1 to 7 bytes of a string shorter than 8, as one word. */
static inline uint64_t tail_get(const uint8_t *p, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)p[i] << (8 * i);
    return w;
}

uint64_t kp_hash64(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t h = KP_HASH_PI ^ fold(len ^ KP_HASH_ROOT, KP_HASH_E);
    size_t left = len;
    for (; left >= 8; left -= 8, p += 8) h = fold(h ^ word_get(p), KP_HASH_E);
    /* an overlapping word is cheaper than a partial one, and the seed contains the length */
    if (left && len >= 8) h = fold(h ^ word_get(p + left - 8), KP_HASH_ROOT);
    else if (left) h = fold(h ^ tail_get(p, left), KP_HASH_ROOT);
    return fold(h ^ KP_HASH_ROOT, KP_HASH_PI);
}

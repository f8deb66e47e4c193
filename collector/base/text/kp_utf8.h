// SPDX-License-Identifier: Apache-2.0
/* kp_utf8.h - measures and writes UTF-8 characters */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed UTF-8 sequence of more than one byte at s (no overlong form, no surrogate), or 0. */
static inline size_t kp_utf8_length(const unsigned char *s, size_t left)
{
    size_t n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    if (!n || left < n) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)) return 0;
    return n;
}

/* Writes a code point (below 2^21) and returns its length, 1 to 4. */
static inline size_t kp_utf8_put(char out[4], uint32_t c)
{
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    const size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (size_t i = more; i; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[more] | c);
    return more + 1;
}

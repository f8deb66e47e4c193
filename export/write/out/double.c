// SPDX-License-Identifier: Apache-2.0
/*
 * double.c - writes doubles as text without stdio, locale or libm
 *
 * A double is m * 2^e. For e >= 0 that is a whole number; for e < 0 it is (m * 5^-e) / 10^-e. Either way it is a whole
 * number of at most 767 decimal digits, and a place for the point. So 17 digits are cut and rounded exactly.
 */
#include "export/write/out/double.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/kp_poison.h"

enum { LIMBS = 90, DIGITS = LIMBS * 9, SIGNIFICANT = 17 };
#define LIMB 1000000000u

struct number {
    uint32_t limb[LIMBS]; /* base 10^9, lowest first */
    int count;
};

static void multiply(struct number *n, uint32_t by)
{
    uint64_t carry = 0;
    for (int i = 0; i < n->count; i++) {
        carry += (uint64_t)n->limb[i] * by;
        n->limb[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    for (; carry; carry /= LIMB) n->limb[n->count++] = (uint32_t)(carry % LIMB);
}

static void multiply_power(struct number *n, uint32_t base, uint32_t chunk, uint32_t chunk_power, int power)
{
    for (; power >= (int)chunk_power; power -= (int)chunk_power) multiply(n, chunk);
    for (; power > 0; power--) multiply(n, base);
}

/* Writes all digits, highest first. Returns how many. */
static int digits_get(const struct number *n, char *out)
{
    int used = 0;
    for (int i = n->count - 1; i >= 0; i--) {
        uint32_t v = n->limb[i];
        char part[9];
        for (int d = 8; d >= 0; d--, v /= 10) part[d] = (char)('0' + v % 10);
        int skip = 0;
        while (!used && skip < 9 && part[skip] == '0') skip++;
        memcpy(out + used, part + skip, (size_t)(9 - skip));
        used += 9 - skip;
    }
    return used;
}

/* Rounds to 17 digits, to even on a tie. True: a carry added a place (999.. -> 1000..). */
static bool digits_round(char *d, int *count)
{
    if (*count <= SIGNIFICANT) return false;
    bool up = d[SIGNIFICANT] > '5' || (d[SIGNIFICANT] == '5' && (d[SIGNIFICANT - 1] - '0') % 2);
    for (int i = SIGNIFICANT + 1; i < *count && !up && d[SIGNIFICANT] == '5'; i++) up = d[i] != '0';
    *count = SIGNIFICANT;
    if (!up) return false;
    int i = SIGNIFICANT - 1;
    while (i >= 0 && d[i] == '9') d[i--] = '0';
    if (i >= 0) {
        d[i]++;
        return false;
    }
    d[0] = '1';
    return true;
}

/* digits d (no trailing zeros), value d[0].d[1..] * 10^exponent, in the form %g chooses */
static size_t form(char *out, const char *d, int count, int exponent)
{
    char *p = out;
    if (exponent < -4 || exponent >= SIGNIFICANT) {
        *p++ = d[0];
        if (count > 1) *p++ = '.';
        for (int i = 1; i < count; i++) *p++ = d[i];
        *p++ = 'e';
        *p++ = exponent < 0 ? '-' : '+';
        int e = exponent < 0 ? -exponent : exponent;
        if (e >= 100) *p++ = (char)('0' + e / 100);
        *p++ = (char)('0' + e / 10 % 10);
        *p++ = (char)('0' + e % 10);
        return (size_t)(p - out);
    }
    if (exponent < 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = -1; i > exponent; i--) *p++ = '0';
    }
    for (int i = 0; i < count || i <= exponent; i++) {
        if (i && i == exponent + 1) *p++ = '.';
        *p++ = i < count ? d[i] : '0';
    }
    return (size_t)(p - out);
}

static size_t finite_text(char *out, uint64_t mantissa, int e)
{
    struct number n = {.count = 0};
    char digits[DIGITS];
    int point = 0;
    for (uint64_t m = mantissa; m; m /= LIMB) n.limb[n.count++] = (uint32_t)(m % LIMB);
    if (e >= 0) {
        multiply_power(&n, 2, 1u << 29, 29, e);
    } else {
        multiply_power(&n, 5, 1220703125u, 13, -e);
        point = -e;
    }
    int count = digits_get(&n, digits);
    int exponent = count - 1 - point;
    if (digits_round(digits, &count)) exponent++;
    while (count > 1 && digits[count - 1] == '0') count--;
    return form(out, digits, count, exponent);
}

size_t kp_double_text(char out[KP_DOUBLE_TEXT], double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int e = (int)(bits >> 52 & 0x7ff);
    size_t len = 0;
    if (bits >> 63) out[len++] = '-';
    if (e == 0x7ff || (e == 0 && mantissa == 0)) {
        const char *word = e == 0 ? "0" : mantissa ? "nan" : "inf";
        size_t n = strlen(word);
        memcpy(out + len, word, n);
        len += n;
    } else {
        if (e) mantissa |= UINT64_C(1) << 52;
        else e = 1;
        len += finite_text(out + len, mantissa, e - 1075);
    }
    out[len] = 0;
    return len;
}

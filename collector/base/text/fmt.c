// SPDX-License-Identifier: Apache-2.0
/*
 * fmt.c - the formatter of the log: no heap, no locale, no stdio; bytes as KiB to TiB (kp_units_bytes)
 *
 * Safe in: signal handlers yes; after fork yes (touches nothing but its arguments)
 */
#include <stdint.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/text/kp_units.h"
#include "collector/base/kp_poison.h"

struct sink {
    char *buf;
    size_t size, len; /* len: bytes needed so far */
};

static void sink_put(struct sink *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++, s->len++)
        if (s->len + 1 < s->size) s->buf[s->len] = text[i];
}

/* Writes a number, with leading zeros up to `width` digits. */
static void number_put(struct sink *s, unsigned long long v, unsigned base, size_t width)
{
    char digits[24];
    size_t at = sizeof digits;
    do digits[--at] = "0123456789abcdef"[v % base];
    while ((v /= base) != 0);
    while (sizeof digits - at < width && at) digits[--at] = '0';
    sink_put(s, digits + at, sizeof digits - at);
}

static void signed_put(struct sink *s, long long v)
{
    if (v < 0) sink_put(s, "-", 1);
    number_put(s, v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v, 10, 0);
}

enum { KP_FMT_INT, KP_FMT_LONG, KP_FMT_LLONG };

static int length_get(const char **p)
{
    if (**p == 'z') return (*p)++, KP_FMT_LONG;
    if (**p != 'l') return KP_FMT_INT;
    (*p)++;
    if (**p != 'l') return KP_FMT_LONG;
    (*p)++;
    return KP_FMT_LLONG;
}

/* The width N of %0Nx and %0Nu, a single digit, or 0. */
static size_t width_get(const char **p)
{
    if (**p != '0' || (*p)[1] < '1' || (*p)[1] > '9') return 0;
    *p += 2;
    return (size_t)((*p)[-1] - '0');
}

/* The bound of %.*s, or SIZE_MAX. */
static size_t bound_get(const char **p, va_list *args)
{
    if (strncmp(*p, ".*s", 3) != 0) return SIZE_MAX;
    *p += 2;
    const int bound = va_arg(*args, int);
    return bound < 0 ? SIZE_MAX : (size_t)bound;
}

/* Formats a conversion, with p behind the '%'. An unknown conversion is copied and takes no argument. */
static const char *conversion_put(struct sink *s, const char *p, va_list *args)
{
    const char *begin = p, *text;
    const size_t width = width_get(&p), bound = bound_get(&p, args);
    int length = length_get(&p);
    char one;
    unsigned long long v;
    switch (*p) {
    case 'd':
        if (length == KP_FMT_INT) signed_put(s, va_arg(*args, int));
        else if (length == KP_FMT_LONG) signed_put(s, va_arg(*args, long));
        else signed_put(s, va_arg(*args, long long));
        return p + 1;
    case 'u':
    case 'x':
        if (length == KP_FMT_INT) v = va_arg(*args, unsigned);
        else if (length == KP_FMT_LONG) v = va_arg(*args, unsigned long);
        else v = va_arg(*args, unsigned long long);
        number_put(s, v, *p == 'u' ? 10 : 16, width);
        return p + 1;
    case 's':
        text = va_arg(*args, const char *);
        if (text == NULL) text = "(null)";
        sink_put(s, text, strnlen(text, bound));
        return p + 1;
    case 'c':
        one = (char)va_arg(*args, int);
        sink_put(s, &one, 1);
        return p + 1;
    case 'p':
        sink_put(s, "0x", 2);
        number_put(s, (unsigned long long)(size_t)va_arg(*args, void *), 16, 0);
        return p + 1;
    case '%': sink_put(s, "%", 1); return p + 1;
    default: sink_put(s, "%", 1); return begin;
    }
}

size_t kp_vfmt(char *buf, size_t size, const char *format, va_list args)
{
    struct sink s = {buf, size, 0};
    va_list own;
    va_copy(own, args);
    for (const char *p = format; *p;) {
        size_t plain = strcspn(p, "%");
        sink_put(&s, p, plain);
        p += plain;
        if (*p == '%') p = conversion_put(&s, p + 1, &own);
    }
    va_end(own);
    if (size) buf[s.len < size ? s.len : size - 1] = '\0';
    return s.len;
}

size_t kp_fmt(char *buf, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t n = kp_vfmt(buf, size, format, args);
    va_end(args);
    return n;
}

/* Half of a hundredth is rounded up, as units.js does. */
char *kp_units_bytes(char *out, size_t bytes, int64_t amount)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB"};
    const uint64_t most = amount < 0 ? -(uint64_t)amount : (uint64_t)amount;
    int unit = (int)(sizeof names / sizeof *names) - 1;
    if (most < 1024) {
        kp_fmt(out, bytes, "%ld B", (long)amount);
        return out;
    }
    while (unit && most < UINT64_C(1024) << 10 * unit) unit--;
    const uint64_t size = UINT64_C(1024) << 10 * unit;
    const uint64_t hundredths = most / size * 100 + (most % size * 100 + size / 2) / size;
    kp_fmt(out, bytes, "%s%lu.%02lu %s", amount < 0 ? "-" : "", (unsigned long)(hundredths / 100),
           (unsigned long)(hundredths % 100), names[unit]);
    return out;
}

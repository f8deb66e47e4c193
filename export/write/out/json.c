// SPDX-License-Identifier: Apache-2.0
/*
 * json.c - writes JSON text into a buffer, which hands full pieces to a flush function
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    one mapped buffer per writer.
 * On fail:   keeps the first error of the sink, drops the rest.
 */
#include "export/write/out/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/text/kp_utf8.h"
#include "collector/base/kp_poison.h"

#define NUMBER 24u  /* bytes of the longest number, and some */
#define SLICE 4096u /* bytes of a string escaped at once: at most six times as many come out */

int kp_json_init(struct kp_json *j, kp_json_flush_fn flush, void *context)
{
    *j = (struct kp_json){.flush = flush, .context = context};
    j->buf = kp_map_alloc(KP_JSON_BUFFER);
    return j->buf ? 0 : -ENOMEM;
}

void kp_json_fini(struct kp_json *j)
{
    if (j->buf) kp_map_free(j->buf, KP_JSON_BUFFER);
    j->buf = NULL;
}

int kp_json_flush(struct kp_json *j)
{
    if (!j->error && j->used) j->error = j->flush(j->context, j->buf, j->used);
    j->used = 0;
    return j->error;
}

/* Room for `bytes` (far less than the buffer) at its end. */
static inline char *need(struct kp_json *j, size_t bytes)
{
    if (__builtin_expect(j->used + bytes > KP_JSON_BUFFER, 0)) kp_json_flush(j);
    return j->buf + j->used;
}

void kp_json_raw(struct kp_json *j, const char *text, size_t bytes)
{
    while (bytes) {
        size_t n = bytes < KP_JSON_BUFFER ? bytes : KP_JSON_BUFFER;
        memcpy(need(j, n), text, n);
        j->used += n, text += n, bytes -= n;
    }
}

void kp_json_char(struct kp_json *j, char c)
{
    *need(j, 1) = c;
    j->used++;
}

/* --- numbers: two digits at a time, from the back --- */

static const char digit_pairs[201] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                     "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                     "8081828384858687888990919293949596979899";

/* Writes v so that it ends at `end`; returns where it begins. */
static char *digits_back(char *end, uint64_t v)
{
    while (v >= 100) {
        end -= 2;
        memcpy(end, digit_pairs + 2 * (v % 100), 2);
        v /= 100;
    }
    if (v >= 10) {
        end -= 2;
        memcpy(end, digit_pairs + 2 * v, 2);
    } else {
        *--end = (char)('0' + v);
    }
    return end;
}

/* Puts a number, which lies before the middle of a text of twice NUMBER bytes: a copy of a fixed size needs no call. */
static void number_put(struct kp_json *j, const char *at, const char *end)
{
    memcpy(need(j, NUMBER), at, NUMBER);
    j->used += (size_t)(end - at);
}

void kp_json_u64(struct kp_json *j, uint64_t v)
{
    char text[2 * NUMBER], *end = text + NUMBER;
    number_put(j, digits_back(end, v), end);
}

void kp_json_i64(struct kp_json *j, int64_t v)
{
    if (v < 0) kp_json_char(j, '-');
    kp_json_u64(j, v < 0 ? 0u - (uint64_t)v : (uint64_t)v);
}

void kp_json_us(struct kp_json *j, uint64_t ns)
{
    char text[2 * NUMBER], *end = text + NUMBER;
    uint32_t rest = (uint32_t)(ns % 1000);
    end[-1] = (char)('0' + rest % 10);
    end[-2] = (char)('0' + rest / 10 % 10);
    end[-3] = (char)('0' + rest / 100);
    end[-4] = '.';
    number_put(j, digits_back(end - 4, ns / 1000), end);
}

/* --- strings --- */

/* The character needs no escape. */
static inline bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

/* Writes a character that is not plain. Returns how many bytes of s it took. */
static size_t escape_one(char **out, const unsigned char *s, size_t left)
{
    static const char hex[] = "0123456789abcdef";
    char *o = *out;
    size_t n;
    if (s[0] < 0x80) {
        char brief = s[0] == '"'    ? '"'
                     : s[0] == '\\' ? '\\'
                     : s[0] == '\n' ? 'n'
                     : s[0] == '\t' ? 't'
                     : s[0] == '\r' ? 'r'
                                    : 0;
        if (brief) {
            *out = o + 2;
            o[0] = '\\', o[1] = brief;
            return 1;
        }
        memcpy(o, "\\u00", 4);
        o[4] = hex[s[0] >> 4], o[5] = hex[s[0] & 15];
        *out = o + 6;
        return 1;
    }
    n = kp_utf8_length(s, left);
    memcpy(o, n ? (const char *)s : "\xef\xbf\xbd", n ? n : 3); /* U+FFFD for a byte that is not UTF-8 */
    *out = o + (n ? n : 3);
    return n ? n : 1;
}

/* is_plain for eight bytes at once. A byte's highest bit is set where it is not ASCII, is below a blank, or is one of
 * the three. A difference borrows of the next byte only where a bit is set already. */
static bool are_plain(const unsigned char *s)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t w;
    memcpy(&w, s, sizeof w);
    const uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\'), del = w ^ (ones * 0x7f);
    return !((w | (w - ones * ' ') | (quote - ones) | (slash - ones) | (del - ones)) & high);
}

static void escape_slice(struct kp_json *j, const unsigned char *s, size_t bytes)
{
    char *o = need(j, bytes * 6);
    const unsigned char *end = s + bytes;
    while (s < end) {
        if (end - s >= 8 && are_plain(s)) {
            memcpy(o, s, 8);
            o += 8, s += 8;
        } else if (is_plain(*s)) *o++ = (char)*s++;
        else s += escape_one(&o, s, (size_t)(end - s));
    }
    j->used = (size_t)(o - j->buf);
}

void kp_json_text(struct kp_json *j, const char *text, size_t bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    while (bytes > SLICE) {
        size_t n = SLICE;
        while (n > SLICE - 4 && (s[n] & 0xc0) == 0x80) n--; /* not inside a character */
        escape_slice(j, s, n);
        s += n, bytes -= n;
    }
    escape_slice(j, s, bytes);
}

void kp_json_string(struct kp_json *j, const char *text, size_t bytes)
{
    kp_json_char(j, '"');
    kp_json_text(j, text, bytes);
    kp_json_char(j, '"');
}

void kp_json_cstring(struct kp_json *j, const char *text) { kp_json_string(j, text, strlen(text)); }

/* --- texts with values in them --- */

/* Writes the value that the text behind a % asks for. Returns where the format goes on. */
static const char *value_write(struct kp_json *j, const char *kind, va_list *args)
{
    const char *text;
    int bytes;
    switch (*kind) {
    case 'u': kp_json_u64(j, va_arg(*args, unsigned)); return kind + 1;
    case 'd': kp_json_i64(j, va_arg(*args, int)); return kind + 1;
    case 'c': kp_json_char(j, (char)va_arg(*args, int)); return kind + 1;
    case 'j': kp_json_us(j, va_arg(*args, uint64_t)); return kind + 2;
    case 's':
        text = va_arg(*args, const char *);
        kp_json_text(j, text, strlen(text));
        return kind + 1;
    case '.':
        bytes = va_arg(*args, int);
        kp_json_text(j, va_arg(*args, const char *), (size_t)bytes);
        return kind + 3;
    default: /* l */
        if (kind[1] == 'u') kp_json_u64(j, va_arg(*args, uint64_t));
        else kp_json_i64(j, va_arg(*args, int64_t));
        return kind + 2;
    }
}

void kp_json_fmt(struct kp_json *j, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    while (*format) {
        const size_t plain = (size_t)(strchrnul(format, '%') - format);
        memcpy(need(j, SLICE), format, plain);
        j->used += plain;
        format = format[plain] ? value_write(j, format + plain + 1, &args) : format + plain;
    }
    va_end(args);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * plain.c - makes text of a trace or a spool safe for a terminal
 *
 * Called by: the tables, stacks and pages, and each command, for names, labels, frames, paths and messages
 * Memory:    none
 *
 * Names of ops may hold any bytes. On a terminal ESC ] 52 sets the clipboard, ESC [ 2 J clears the screen, and 0x9b
 * equals ESC [. A newline in an op's name forges a line of `kprof events`. torch's tables write such letters as they
 * are. The tables of kprof differ only there.
 */
#include "export/show/plain.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/text/kp_utf8.h"

enum { SHOWN = 8 }; /* enough for one letter as shown, with its NUL */

struct letter {
    size_t taken;  /* bytes of the text */
    unsigned code; /* of a control letter or a bad byte */
    bool is_plain, is_bad;
};

static struct letter letter_at(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80) return (struct letter){1, s[0], s[0] >= 0x20 && s[0] != 0x7f, false};
    const size_t n = kp_utf8_length(s, left);
    if (!n) return (struct letter){1, s[0], false, true};
    const bool is_c1 = n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
    return (struct letter){n, s[1], !is_c1, false};
}

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* Returns how many bytes at the beginning are plain ASCII. Most texts are, so words of eight are looked at. */
static size_t ascii_run(const char *text, size_t bytes)
{
    size_t n = 0;
    for (uint64_t word; bytes - n >= sizeof word; n += sizeof word) {
        memcpy(&word, text + n, sizeof word);
        if ((word | (word - ONES * 0x20) | ((word ^ ONES * 0x7f) - ONES)) & HIGHS) break;
    }
    while (n < bytes && text[n] >= 0x20 && text[n] < 0x7f) n++;
    return n;
}

/* Returns how many bytes at the beginning stay as they are. */
static size_t plain_run(const char *text, size_t bytes, bool is_quoted)
{
    size_t n = is_quoted ? 0 : ascii_run(text, bytes);
    while (n < bytes) {
        const struct letter c = letter_at((const unsigned char *)text + n, bytes - n);
        if (!c.is_plain || (is_quoted && (text[n] == '"' || text[n] == '\\'))) break;
        n += c.taken;
    }
    return n;
}

bool kp_plain_is(const char *text, size_t bytes) { return plain_run(text, bytes, false) == bytes; }

size_t kp_plain_text(char *out, size_t room, const char *text, size_t bytes)
{
    static const char hex[] = "0123456789abcdef";
    size_t all = 0, used = 0;
    for (size_t i = 0; i < bytes;) {
        const size_t run = ascii_run(text + i, bytes - i);
        if (run && used == all && used + 1 < room) {
            const size_t fits = run < room - 1 - used ? run : room - 1 - used;
            memcpy(out + used, text + i, fits);
            used += fits;
        }
        all += run;
        i += run;
        if (i == bytes) break;
        const struct letter c = letter_at((const unsigned char *)text + i, bytes - i);
        const char escape[] = {'\\', 'x', hex[c.code >> 4 & 15], hex[c.code & 15]};
        const char *const shown = c.is_plain ? text + i : escape;
        const size_t n = c.is_plain ? c.taken : sizeof escape;
        if (used == all && used + n < room) {
            memcpy(out + used, shown, n);
            used += n;
        }
        all += n;
        i += c.taken;
    }
    if (room) out[used] = 0;
    return all;
}

void kp_plain_put(FILE *out, const char *text)
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        char shown[SHOWN];
        n = plain_run(text, left, false);
        if (n) {
            fwrite(text, 1, n, out);
            continue;
        }
        const struct letter c = letter_at((const unsigned char *)text, left);
        n = c.taken;
        fwrite(shown, 1, kp_plain_text(shown, sizeof shown, text, n), out);
    }
}

void kp_plain_fmt(FILE *out, const char *format, ...)
{
    char spec[16];
    va_list values;
    va_start(values, format);
    for (size_t n; *format; format += n) {
        n = *format == '%' ? strcspn(format, "sdufc") + 1 : strcspn(format, "%");
        if (*format != '%') fwrite(format, 1, n, out);
        else if (format[1] == '%') fputc('%', out), n = 2;
        else if (format[n - 1] == 's') kp_plain_put(out, va_arg(values, const char *));
        else if (format[n - 1] == 'c') fputc(va_arg(values, int), out);
        else if (snprintf(spec, sizeof spec, "%.*s", (int)n, format), format[n - 1] == 'f')
            fprintf(out, spec, va_arg(values, double));
        else if (strpbrk(spec, "lz")) fprintf(out, spec, va_arg(values, long));
        else fprintf(out, spec, va_arg(values, int));
    }
    va_end(values);
}

static void json_letters(FILE *out, const char *text, bool is_raw)
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = plain_run(text, left, !is_raw);
        if (n) {
            fwrite(text, 1, n, out);
            continue;
        }
        const struct letter c = letter_at((const unsigned char *)text, left);
        n = c.taken;
        if (c.is_bad) fputs("\xef\xbf\xbd", out);
        else if (c.is_plain) fprintf(out, "\\%c", (int)c.code);
        else if (is_raw && strchr("\n\r\t", (int)c.code)) fputc((int)c.code, out);
        else fprintf(out, "\\u%04x", c.code);
    }
}

void kp_plain_json(FILE *out, const char *text)
{
    if (!text) {
        fputs("null", out);
        return;
    }
    fputc('"', out);
    json_letters(out, text, false);
    fputc('"', out);
}

void kp_plain_json_raw(FILE *out, const char *text) { json_letters(out, text, true); }

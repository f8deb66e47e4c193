// SPDX-License-Identifier: Apache-2.0
/* letters.c - measures and shortens texts by the columns that they take on a terminal */
#include "export/show/letters.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/text/kp_utf8.h"
#include "export/show/plain.h"

/* Unicode's East Asian Width W and F, and combining marks, by blocks. */
static size_t columns_of(uint32_t code)
{
    static const struct {
        uint32_t from, to;
        size_t columns;
    } blocks[] = {{0x300, 0x36f, 0},     {0x1100, 0x115f, 2},   {0x200b, 0x200f, 0},  {0x2e80, 0x303e, 2},
                  {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},  {0xfe00, 0xfe0f, 0},
                  {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},  {0x1f300, 0x1f64f, 2},
                  {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && blocks[i].from <= code; i++)
        if (code <= blocks[i].to) return blocks[i].columns;
    return 1;
}

/* Returns the bytes of the first letter. */
static size_t letter_read(const char *text, size_t *columns)
{
    const unsigned char *const b = (const unsigned char *)text;
    const size_t n = b[0] < 0x80 ? 1 : kp_utf8_length(b, strnlen(text, 4));
    uint32_t code = n < 2 ? b[0] : b[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) code = code << 6 | (b[i] & 0x3f);
    *columns = n ? columns_of(code) : 1;
    return n ? n : 1;
}

size_t kp_letters_columns(const char *text)
{
    size_t all = 0;
    for (size_t columns; *text; all += columns) text += letter_read(text, &columns);
    return all;
}

const char *kp_letters_skip(const char *text, size_t columns)
{
    while (*text) {
        size_t its;
        const size_t bytes = letter_read(text, &its);
        if (its > columns) break;
        columns -= its;
        text += bytes;
    }
    return text;
}

/* Returns the end of a text that fits in so many columns. */
static const char *end_of(const char *text, size_t columns)
{
    for (size_t all = kp_letters_columns(text), its; all > columns; all -= its) text += letter_read(text, &its);
    return text;
}

char *kp_letters_fit(char *out, size_t bytes, const char *text, size_t most, size_t head, const char *dots)
{
    const size_t room = 4 * strlen(text) + 1, dotted = strlen(dots);
    char *const safe = malloc(room);
    if (safe) kp_plain_text(safe, room, text, strlen(text));
    *out = 0;
    if (!safe) return out;
    if (kp_letters_columns(safe) <= most) kp_plain_text(out, bytes, safe, strlen(safe));
    else if (most <= dotted) kp_plain_text(out, bytes, safe, (size_t)(kp_letters_skip(safe, most) - safe));
    else
        snprintf(out, bytes, "%.*s%s%s", (int)(kp_letters_skip(safe, head) - safe), safe, dots,
                 end_of(safe, most - dotted - head));
    free(safe);
    return out;
}

void kp_letters_pad(FILE *out, const char *text, int width)
{
    const int blanks = abs(width) - (int)kp_letters_columns(text);
    fprintf(out, "%*s%s%*s", width > 0 && blanks > 0 ? blanks : 0, "", text, width < 0 && blanks > 0 ? blanks : 0, "");
}

void kp_letters_name_put(FILE *out, const char *name, size_t width, size_t head)
{
    char shown[1024];
    kp_letters_pad(out, kp_letters_fit(shown, sizeof shown, name, width, head, ".."), -(int)width);
}

// SPDX-License-Identifier: Apache-2.0
/* viewtext.c - the text of a cell, and a text cut to columns of a terminal */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "export/show/units.h"
#include "export/answers/view/viewparts.h"

static const char *time_text(char *out, size_t bytes, double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t at = 0;
    for (; (ns >= 1000 || ns <= -1000) && at + 1 < sizeof units / sizeof *units; at++) ns /= 1000;
    snprintf(out, bytes, at ? "%.2f %s" : "%.0f %s", ns, units[at]);
    return out;
}

static const char *counted(char *out, size_t bytes, double value)
{
    char digits[32];
    const int n = snprintf(digits, sizeof digits, "%.0f", value);
    size_t used = 0;
    for (int i = 0; i < n && used + 2 < bytes; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-') out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = 0;
    return out;
}

const char *kp_view_cell(char *out, size_t bytes, enum kp_view_kind kind, double value)
{
    *out = 0;
    if (kind == KP_VIEW_SHARE) snprintf(out, bytes, "%.1f %%", 100 * value);
    else if (value > 0 || value < 0 || kind == KP_VIEW_COUNT) {
        if (kind == KP_VIEW_TIME) return time_text(out, bytes, value);
        if (kind == KP_VIEW_BYTES) return kp_units_bytes(out, bytes, (int64_t)value);
        return counted(out, bytes, value);
    }
    return out;
}

/* Reads one letter of checked UTF-8; *wide is its columns. Returns its bytes. */
static size_t letter_of(const char *text, size_t *wide)
{
    const unsigned char *b = (const unsigned char *)text;
    const size_t n = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    uint32_t code = b[0] < 0x80 ? b[0] : b[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (!b[i]) {
            *wide = 0;
            return i;
        }
        code = code << 6 | (b[i] & 0x3f);
    }
    const int columns = wcwidth((wchar_t)code);
    *wide = columns < 0 ? 1 : (size_t)columns;
    return n;
}

/* Of a text: bytes of its letters in at most `columns`, whose number *used gets. */
static size_t fitting(const char *text, size_t columns, bool utf8, size_t *used)
{
    size_t at = 0;
    *used = 0;
    while (text[at]) {
        size_t wide;
        const size_t n = letter_of(text + at, &wide);
        if (!utf8) wide = 1;
        if (*used + wide > columns) break;
        *used += wide;
        at += n;
    }
    return at;
}

size_t kp_view_cut(char *out, size_t bytes, const char *text, size_t columns, bool utf8)
{
    size_t used, whole = fitting(text, columns, utf8, &used), filled = 0;
    const bool is_cut = text[whole] && columns > 2;
    if (is_cut) whole = fitting(text, columns - 2, utf8, &used);
    for (size_t at = 0; at < whole;) {
        size_t wide;
        const size_t n = letter_of(text + at, &wide), kept = utf8 ? n : 1;
        if (filled + kept + 3 > bytes) break;
        if (utf8) memcpy(out + filled, text + at, n);
        else out[filled] = n > 1 ? '?' : text[at];
        filled += kept;
        at += n;
    }
    memcpy(out + filled, is_cut ? ".." : "", is_cut ? 3 : 1);
    return used + (is_cut ? 2 : 0);
}

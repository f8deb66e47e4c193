// SPDX-License-Identifier: Apache-2.0
/* viewtext.c - the text of a cell, and a text cut to columns of a terminal */
#include <stdio.h>

#include "export/show/letters.h"
#include "export/show/units.h"
#include "export/answers/view/viewparts.h"

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
        if (kind == KP_VIEW_TIME) return kp_units_scaled(out, bytes, value, 0);
        if (kind == KP_VIEW_BYTES) return kp_units_bytes(out, bytes, (int64_t)value);
        return counted(out, bytes, value);
    }
    return out;
}

/* A terminal without UTF-8 gets '?' for a letter that is not ASCII. */
size_t kp_view_cut(char *out, size_t bytes, const char *text, size_t columns, bool utf8)
{
    kp_letters_fit(out, bytes, text, columns, columns > 2 ? columns - 2 : 0, "..");
    char *to = out;
    for (const char *at = out; !utf8 && *at; at++)
        if (((unsigned char)*at & 0xc0) != 0x80) *to++ = (unsigned char)*at < 0x80 ? *at : '?';
    if (!utf8) *to = 0;
    return kp_letters_columns(out);
}

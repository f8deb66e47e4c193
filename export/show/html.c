// SPDX-License-Identifier: Apache-2.0
/* html.c - writes text into HTML and SVG */
#include "export/show/html.h"

#include <string.h>

#include "export/show/plain.h"

static void letters_put(FILE *out, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
}

/* Goes line by line, since kp_plain_text() would escape line breaks. */
void kp_html_text(FILE *out, const char *text)
{
    enum { PIECE = 256 };
    while (*text) {
        char shown[4 * PIECE + 1];
        size_t n = strcspn(text, "\n");
        for (size_t at = 0, part; at < n; at += part) {
            part = n - at < PIECE ? n - at : PIECE;
            while (part > PIECE - 4 && ((unsigned char)text[at + part] & 0xc0) == 0x80)
                part--; /* not inside a letter */
            kp_plain_text(shown, sizeof shown, text + at, part);
            letters_put(out, shown);
        }
        text += n;
        if (*text) fputc(*text++, out);
    }
}

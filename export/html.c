// SPDX-License-Identifier: Apache-2.0
/* html.c - text inside HTML and SVG */
#include "export/html.h"

void kp_html_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default:
            if ((unsigned char)*text >= 0x20 || *text == '\n')
                fputc(*text, out);
        }
}

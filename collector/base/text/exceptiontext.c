// SPDX-License-Identifier: Apache-2.0
/* exceptiontext.c - what is kept of the text of an exception: one line, see decisions/186 */
#include "collector/base/text/kp_exceptiontext.h"

#include <stdbool.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

enum { DOTS = 4 }; /* "..." and its end */

static const char *said_of(const char *text)
{
    const char *const end = *text == '[' ? strstr(text, "] ") : NULL, *const source = end ? strstr(text, ".c") : NULL;
    if (!source || source > end) return text;
    const char *const condition = strncmp(text, "[enforce fail at ", 17) == 0 ? strstr(end, ". ") : NULL;
    return condition && condition[2] ? condition + 2 : end + 2;
}

void kp_exceptiontext_copy(char *out, size_t bytes, const char *text)
{
    text = said_of(text + strspn(text, " \t\r\n"));
    size_t n = strcspn(text, "\r\n");
    const bool is_cut = n > bytes - DOTS;
    if (is_cut) n = bytes - DOTS;
    while (is_cut && n && ((unsigned char)text[n] & 0xc0) == 0x80) n--;
    kp_fmt(out, bytes, "%.*s%s", (int)n, text, is_cut ? "..." : "");
    for (char *c = out; *c; c++)
        if (*c == '\t') *c = ' ';
}

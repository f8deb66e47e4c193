// SPDX-License-Identifier: Apache-2.0
/* diffnames.c - names under which rows of two runs meet */
#include "export/answers/diff/diff.h"

#include <string.h>

enum { NAME_BYTES = 4096 };

/* The end of "(12)" before ": ", or NULL. */
static const char *line_end(const char *text)
{
    if (*text != '(') return NULL;
    const size_t digits = strspn(text + 1, "0123456789");
    return digits && strncmp(text + 1 + digits, "): ", 3) == 0 ? text + digits + 2 : NULL;
}

uint32_t kp_diff_name(struct kp_strings *strings, const char *name)
{
    static const char step[] = "ProfilerStep#";
    char out[NAME_BYTES];
    size_t bytes = 0;
    if (strncmp(name, step, sizeof step - 1) == 0) return kp_strings_put(strings, step, sizeof step - 2);
    while (*name && bytes < sizeof out) {
        const char *end = line_end(name);
        if (end) {
            name = end;
        } else {
            out[bytes++] = *name++;
        }
    }
    return kp_strings_put(strings, out, bytes);
}

// SPDX-License-Identifier: Apache-2.0
/* hierarchy.c - an op's modules of TorchScript (Module Hierarchy) as a call stack, which readers by module know */
#include "export/read/kineto/kineto_words.h"

#include <string.h>

#define FRAME "nn.Module: "
#define ITSELF "SELF(" /* another method of the module around */

/* Returns the begin of the last part of text[0..end), "NAME(CLASS)::METHOD". A class may have points and colons in
 * it. */
static size_t part_begin(const char *text, size_t end)
{
    size_t depth = 0, at = end;
    for (; at > 0 && (depth || text[at - 1] != '.'); at--) {
        depth += text[at - 1] == ')';
        depth -= text[at - 1] == '(' && depth;
    }
    return at;
}

/* The length of "NAME(CLASS)" of a part; 0: it has no class. */
static size_t module_length(const char *part, size_t bytes)
{
    while (bytes && part[bytes - 1] != ')') bytes--;
    return bytes;
}

size_t kp_hierarchy_stack(char *out, size_t room, const char *text, size_t bytes)
{
    const size_t frame = sizeof FRAME - 1, itself = sizeof ITSELF - 1;
    size_t used = 0;
    for (size_t end = bytes; end > 0;) {
        if (text[end - 1] == '.') end--;
        const size_t at = part_begin(text, end), length = module_length(text + at, end - at);
        end = at;
        if (!length || (length > itself && memcmp(text + at, ITSELF, itself) == 0)) continue;
        if (used + 1 + frame + length >= room) return 0;
        if (used) out[used++] = ';';
        memcpy(out + used, FRAME, frame);
        memcpy(out + used + frame, text + at, length);
        used += frame + length;
    }
    return used;
}

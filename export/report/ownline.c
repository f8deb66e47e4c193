// SPDX-License-Identifier: Apache-2.0
/*
 * ownline.c - finds the program's own line, and its nn.Modules, in a call stack
 *
 * torch cuts the folder of a package off its file names, so "torch/nn/functional.py" is left of site-packages. Then
 * the first part of the path tells whose file it is: installed.def names Python's own and well-known packages.
 */
#include "export/report/ownline.h"

#include <stdlib.h>
#include <string.h>

#include "export/report/kineto.h"

enum { LINE_BYTES = 400, MODULES_MOST = 24 };

static const char *const installed[] = {
#define KP_INSTALLED(name) #name,
#include "export/report/installed.def"
#undef KP_INSTALLED
};

static bool has_part(const char *text, size_t bytes, const char *part)
{
    return memmem(text, bytes, part, strlen(part)) != NULL;
}

/* Finds "(12): " behind a file's name. Returns the bracket's offset, or 0. */
static size_t bracket_find(const char *frame, size_t bytes)
{
    for (size_t at = 1; at < bytes; at++) {
        if (frame[at] != '(') continue;
        size_t end = at + 1;
        while (end < bytes && frame[end] >= '0' && frame[end] <= '9') end++;
        if (end > at + 1 && end + 2 < bytes && memcmp(frame + end, "): ", 3) == 0) return at;
    }
    return 0;
}

static bool is_installed(const char *file, size_t bytes)
{
    size_t part = 0;
    while (part < bytes && file[part] != '/') part++;
    if (part == bytes && bytes > 3 && memcmp(file + bytes - 3, ".py", 3) == 0) part -= 3;
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (strlen(installed[i]) == part && memcmp(installed[i], file, part) == 0) return true;
    return has_part(file, bytes, "site-packages/") || has_part(file, bytes, "dist-packages/") ||
           has_part(file, bytes, "/lib/python3") || has_part(file, bytes, "/lib64/python3");
}

bool kp_frame_is_own(const char *frame, size_t bytes)
{
    const size_t file = frame[0] == '<' ? 0 : bracket_find(frame, bytes);
    return file && !is_installed(frame, file);
}

/* Writes "train.py(12): forward" as "train.py:12 forward". */
static uint32_t line_put(struct kp_kineto *trace, const char *frame, size_t bytes)
{
    const size_t file = bracket_find(frame, bytes);
    size_t digits = file + 1, n = 0;
    char line[LINE_BYTES];
    if (bytes >= sizeof line) bytes = sizeof line - 1;
    while (digits < bytes && frame[digits] != ')') digits++;
    for (size_t i = 0; i < bytes; i++) {
        if (i == digits || i == digits + 1) continue; /* "): " becomes " " */
        line[n++] = i == file ? ':' : frame[i];
    }
    return kp_strings_put(trace->strings, line, n);
}

static uint32_t line_search(struct kp_kineto *trace, const char *stack)
{
    while (*stack) {
        const size_t bytes = strcspn(stack, ";");
        if (kp_frame_is_own(stack, bytes)) return line_put(trace, stack, bytes);
        stack += bytes + (stack[bytes] == ';');
    }
    return 0;
}

static uint32_t modules_search(struct kp_kineto *trace, const char *stack)
{
    const char *modules[MODULES_MOST];
    size_t count = 0, n = 0;
    char path[LINE_BYTES];
    while (*stack) {
        const size_t bytes = strcspn(stack, ";");
        if (strncmp(stack, "nn.Module: ", 11) == 0 && count < MODULES_MOST) modules[count++] = stack + 11;
        stack += bytes + (stack[bytes] == ';');
    }
    while (count--) {
        const size_t bytes = strcspn(modules[count], ";");
        if (n + bytes + 1 >= sizeof path) break;
        if (n) path[n++] = '.';
        memcpy(path + n, modules[count], bytes);
        n += bytes;
    }
    return n ? kp_strings_put(trace->strings, path, n) : 0;
}

static uint32_t search(struct kp_ownlines *found, struct kp_kineto *trace, uint32_t stack,
                       uint32_t (*of)(struct kp_kineto *, const char *))
{
    if (stack >= found->count) {
        found->of = kp_kineto_grow(found->of, &found->capacity, (size_t)stack + 1, sizeof *found->of);
        memset(found->of + found->count, 0, (found->capacity - found->count) * sizeof *found->of);
        found->count = found->capacity;
    }
    if (!found->of[stack]) found->of[stack] = of(trace, kp_kineto_text(trace, stack)) + 1;
    return found->of[stack] - 1;
}

uint32_t kp_ownline_of(struct kp_ownlines *found, struct kp_kineto *trace, uint32_t stack)
{
    return search(found, trace, stack, line_search);
}

uint32_t kp_ownline_modules(struct kp_ownlines *found, struct kp_kineto *trace, uint32_t stack)
{
    return search(found, trace, stack, modules_search);
}

void kp_ownlines_fini(struct kp_ownlines *found) { free(found->of); }

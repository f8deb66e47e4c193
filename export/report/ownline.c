// SPDX-License-Identifier: Apache-2.0
/*
 * ownline.c - finds the program's own line, and its nn.Modules, in a call stack
 *
 * torch cuts the folder of a package off its file names, so "torch/nn/functional.py" is left of site-packages. Then
 * the first part of the path tells whose file it is. Our own traces list the parts that came from Python's folders
 * (kprof.installed). For others installed.def names Python's own and well-known packages. See decisions/076.
 */
#include "export/report/ownline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/report/kineto.h"

enum { LINE_BYTES = 400, MODULES_MOST = 24 };

static const struct {
    const char *name;
    size_t bytes;
} installed[] = {
#define KP_INSTALLED(name) {#name, sizeof #name - 1},
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

/* The first part of a path, without ".py": the package of a file whose folder was cut off. */
static size_t part_of(const char *file, size_t bytes)
{
    size_t part = 0;
    while (part < bytes && file[part] != '/') part++;
    return part == bytes && bytes > 3 && memcmp(file + bytes - 3, ".py", 3) == 0 ? part - 3 : part;
}

static bool is_well_known(const char *part, size_t bytes)
{
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (installed[i].bytes == bytes && memcmp(installed[i].name, part, bytes) == 0) return true;
    return false;
}

/* Searches a list with commas. */
static bool is_listed(const char *list, const char *part, size_t bytes)
{
    while (*list) {
        const size_t n = strcspn(list, ",");
        if (n == bytes && memcmp(list, part, n) == 0) return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* `list`: what the trace says is installed, or NULL. */
static bool is_installed(const char *list, const char *file, size_t bytes)
{
    const size_t part = part_of(file, bytes);
    if (list ? is_listed(list, file, part) : is_well_known(file, part)) return true;
    return has_part(file, bytes, "site-packages/") || has_part(file, bytes, "dist-packages/") ||
           has_part(file, bytes, "/lib/python3") || has_part(file, bytes, "/lib64/python3");
}

bool kp_ownline_is_file(const char *file)
{
    return file[0] && file[0] != '<' && !is_installed(NULL, file, strlen(file));
}

static const char *list_of(const struct kp_kineto *trace) { return kp_kineto_fact(trace, "kprof.installed"); }

/* The bytes of a frame's file; 0: it has none, as a function made in C. */
static size_t file_of(const char *frame, size_t bytes) { return frame[0] == '<' ? 0 : bracket_find(frame, bytes); }

/* ---- a program that is installed itself ---- */

/* The package of a file that is of no well-known package; NULL: of one, or of Python's library. */
static const char *package_of(const char *file, size_t bytes, size_t *part)
{
    const char *folder = memmem(file, bytes, "-packages/", 10);
    if (!folder && has_part(file, bytes, "/lib/python3")) return NULL;
    const char *from = folder ? folder + 10 : file;
    *part = part_of(from, bytes - (size_t)(from - file));
    return is_well_known(from, *part) ? NULL : from;
}

/* The package of a frame, as package_of. */
static const char *package_at(const char *frame, size_t bytes, size_t *part)
{
    const size_t file = file_of(frame, bytes);
    return file ? package_of(frame, file, part) : NULL;
}

/* Of a program that is installed itself, the package of the outermost frame is the program. */
static const char *package_frame(const char *stack, size_t *bytes)
{
    const char *outermost = NULL, *package;
    size_t part = 0, its = 0, n;
    for (const char *at = stack; *at; at += n + (at[n] == ';'))
        if ((package = package_at(at, n = strcspn(at, ";"), &its))) outermost = package, part = its;
    for (const char *at = stack; outermost && *at; at += *bytes + (at[*bytes] == ';')) {
        package = package_at(at, *bytes = strcspn(at, ";"), &its);
        if (package && its == part && memcmp(package, outermost, part) == 0) return at;
    }
    return NULL;
}

const char *kp_ownline_frame(const struct kp_kineto *trace, const char *stack, size_t *bytes)
{
    const char *const list = list_of(trace);
    for (const char *at = stack; *at; at += *bytes + (at[*bytes] == ';')) {
        const size_t file = file_of(at, *bytes = strcspn(at, ";"));
        if (file && !is_installed(list, at, file)) return at;
    }
    return package_frame(stack, bytes);
}

/* Writes "train.py(12): forward" as "train.py:12 forward", or without the line where none is wanted or known (0). */
static uint32_t line_put(struct kp_kineto *trace, const char *frame, size_t bytes, bool with_line)
{
    const size_t file = bracket_find(frame, bytes);
    const char *digits = frame + file + 1, *function = memchr(digits, ' ', bytes - file - 1);
    const int shown = with_line && strtol(digits, NULL, 10) > 0 ? (int)strspn(digits, "0123456789") : 0;
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof line, "%.*s%s%.*s%.*s", (int)file, frame, shown ? ":" : "", shown, digits,
                     (int)(frame + bytes - function), function);
    if (n >= (int)sizeof line) n = sizeof line - 1;
    return kp_strings_put(trace->strings, line, (size_t)n);
}

static uint32_t function_search(struct kp_kineto *trace, const char *name)
{
    const size_t file = file_of(name, strlen(name));
    return file && !is_installed(list_of(trace), name, file) ? line_put(trace, name, strlen(name), false) : 0;
}

static uint32_t line_search(struct kp_kineto *trace, const char *stack)
{
    size_t bytes;
    const char *frame = kp_ownline_frame(trace, stack, &bytes);
    return frame ? line_put(trace, frame, bytes, true) : 0;
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

uint32_t kp_ownline_function(struct kp_ownlines *found, struct kp_kineto *trace, uint32_t name)
{
    return search(found, trace, name, function_search);
}

uint32_t kp_ownline_modules(struct kp_ownlines *found, struct kp_kineto *trace, uint32_t stack)
{
    return search(found, trace, stack, modules_search);
}

void kp_ownlines_fini(struct kp_ownlines *found) { free(found->of); }

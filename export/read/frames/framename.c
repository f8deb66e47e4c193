// SPDX-License-Identifier: Apache-2.0
/* framename.c - takes names of frames apart and puts them together with other lines */
#include "export/read/frames/framename.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_path.h"
#include "export/read/kineto/kineto.h"
#include "export/show/plain.h"

struct parts { /* of "FILE(LINE): FUNCTION" */
    size_t file_bytes, line_bytes;
    const char *line, *function;
};

static bool is_line(const char *text, size_t bytes) { return bytes && strspn(text, "0123456789") >= bytes; }

/* The last "(LINE): " counts: a file name may hold brackets. */
static bool frame_parse(const char *frame, struct parts *out)
{
    for (const char *end = strstr(frame, "): "); end; end = strstr(end + 1, "): ")) {
        const char *line = end;
        while (line > frame && line[-1] >= '0' && line[-1] <= '9') line--;
        if (line == end || line == frame || line[-1] != '(') continue;
        *out = (struct parts){(size_t)(line - 1 - frame), (size_t)(end - line), line, end + 3};
        return true;
    }
    return false;
}

static char *room_for(struct kp_frametext *text, size_t bytes)
{
    text->data = kp_kineto_grow(text->data, &text->capacity, bytes + 1, 1);
    return text->data;
}

void kp_frametext_fini(struct kp_frametext *text)
{
    free(text->data);
    *text = (struct kp_frametext){0};
}

/* The line of `from`, if that is of the same file; else NULL. */
static const char *line_called(const char *frame, const struct parts *p, const char *from)
{
    if (strncmp(from, frame, p->file_bytes) != 0 || from[p->file_bytes] != ':') return NULL;
    const char *line = from + p->file_bytes + 1;
    return is_line(line, strlen(line)) ? line : NULL;
}

const char *kp_framename_bare(const char *function)
{
    return strncmp(function, KP_FRAMENAME_DEF, sizeof KP_FRAMENAME_DEF - 1) == 0
               ? function + sizeof KP_FRAMENAME_DEF - 1
               : function;
}

bool kp_framename_has_def(const char *function) { return strncmp(function, "<module>", 8) != 0; }

bool kp_framename_starts_recording(const char *frame)
{
    static const char file[] = "torch/autograd/profiler.py";
    const size_t bytes = sizeof file - 1;
    struct parts p;
    if (!frame_parse(frame, &p) || strcmp(p.function, "_start_trace") != 0 || p.file_bytes < bytes) return false;
    return strncmp(frame + p.file_bytes - bytes, file, bytes) == 0;
}

/* A function without a known line keeps that of its `def`, and the word. `unknown`: what a module's code has. */
static void def_put(char *text, size_t room, const char *frame, const struct parts *p, const char *unknown)
{
    const bool is_def = kp_framename_has_def(p->function) && strtol(p->line, NULL, 10) > 0;
    const char *const word = p->function[0] == '<' ? "" : KP_FRAMENAME_DEF; /* "<lambda>" has none */
    if (is_def)
        snprintf(text, room, "%.*s(%.*s): %s%s", (int)p->file_bytes, frame, (int)p->line_bytes, p->line, word,
                 kp_framename_bare(p->function));
    else snprintf(text, room, "%.*s%s: %s", (int)p->file_bytes, frame, unknown, p->function);
}

/* `unknown`: what stands for a line that neither `from` nor a `def` tells, with its brackets. */
static const char *frame_with_line(struct kp_frametext *out, const char *frame, const char *from, const char *unknown)
{
    struct parts p;
    if (!frame_parse(frame, &p)) return frame;
    const size_t room = strlen(frame) + strlen(from) + sizeof KP_FRAMENAME_DEF;
    char *text = room_for(out, room);
    const char *line = line_called(frame, &p, from);
    if (line) snprintf(text, room, "%.*s(%s): %s", (int)p.file_bytes, frame, line, p.function);
    else def_put(text, room, frame, &p, unknown);
    return text;
}

const char *kp_framename_called(struct kp_frametext *out, const char *frame, const char *from)
{
    return frame_with_line(out, frame, from, "");
}

const char *kp_framename_at_line(struct kp_frametext *out, const char *frame, const char *from)
{
    return frame_with_line(out, frame, from, "(0)");
}

const char *kp_framename_unlined(struct kp_frametext *out, const char *frame)
{
    struct parts p;
    if (!frame_parse(frame, &p)) return frame;
    const size_t room = strlen(frame) + sizeof "(0): ";
    char *text = room_for(out, room);
    snprintf(text, room, "%.*s(0): %s", (int)p.file_bytes, frame, p.function);
    return text;
}

const char *kp_framename_between(struct kp_frametext *out, const char *a, const char *b)
{
    struct parts p, q;
    if (strcmp(a, b) == 0) return a;
    if (!frame_parse(a, &p) || !frame_parse(b, &q)) return NULL;
    if (p.file_bytes != q.file_bytes || memcmp(a, b, p.file_bytes) != 0 || strcmp(p.function, q.function) != 0)
        return NULL;
    const size_t room = strlen(a) + q.line_bytes + 3;
    char *text = room_for(out, room);
    snprintf(text, room, "%.*s(%.*s->%.*s): %s", (int)p.file_bytes, a, (int)p.line_bytes, p.line, (int)q.line_bytes,
             q.line, p.function);
    return text;
}

struct lasting { /* a text that is written without what differs from run to run */
    char *data;
    size_t used;
};

/* The type that pybind11 names behind its module is left out: ".pybind11_detail_function_record_v1_...". */
static void lasting_add(struct lasting *l, const char *at, const char *end)
{
    static const char record[] = ".pybind11_detail_function_record_";
    const char *found;
    while ((found = memmem(at, (size_t)(end - at), record, sizeof record - 1))) {
        memcpy(l->data + l->used, at, (size_t)(found - at));
        l->used += (size_t)(found - at);
        for (at = found; at < end && *at != ' ' && *at != '>' && *at != ';';) at++;
    }
    memcpy(l->data + l->used, at, (size_t)(end - at));
    l->used += (size_t)(end - at);
}

/* Finds " at 0x" by its rarest letter, which costs less than memmem() does. */
static const char *address_find(const char *from, const char *end)
{
    static const char before[] = " at 0";
    enum { BYTES = sizeof before - 1 };
    for (const char *at = from; (at = memchr(at, 'x', (size_t)(end - at))); at++)
        if (at - from >= BYTES && memcmp(at - BYTES, before, BYTES) == 0) return at - BYTES;
    return NULL;
}

const char *kp_framename_lasting(struct kp_frametext *out, const char *text, size_t *bytes)
{
    enum { BYTES = sizeof " at 0x" - 1 };
    const char *const end = text + *bytes, *at = text;
    const char *found = memchr(text, '>', *bytes) ? address_find(text, end) : NULL;
    if (!found) return text;
    struct lasting l = {room_for(out, *bytes + 1), 0};
    for (; found; found = address_find(at, end)) {
        const char *behind = found + BYTES;
        while (behind < end && isxdigit((unsigned char)*behind)) behind++;
        lasting_add(&l, at, behind > found + BYTES ? found : behind);
        at = behind;
    }
    lasting_add(&l, at, end);
    l.data[l.used] = 0;
    *bytes = l.used;
    return l.data;
}

const char *kp_framename_shown(struct kp_frametext *out, const char *frame)
{
    const size_t bytes = strlen(frame), room = 4 * bytes + 1;
    char *text = room_for(out, room);
    kp_plain_text(text, room, frame, bytes);
    kp_path_shorten(text);
    for (char *p = text; *p; p++)
        if (*p == ';') *p = ',';
    return text;
}

const char *kp_framename_module(const char *frame)
{
    static const char head[] = "nn.Module: ";
    return strncmp(frame, head, sizeof head - 1) == 0 ? frame + sizeof head - 1 : NULL;
}

const char *kp_framename_part(const char *name)
{
    const char *const colon = strstr(name, "): ");
    return colon ? kp_framename_bare(colon + 3) : kp_framename_module(name);
}

bool kp_framename_is_meant(const char *pattern, const char *name)
{
    const char *const part = kp_framename_part(name);
    return fnmatch(pattern, name, 0) == 0 || (part && fnmatch(pattern, part, 0) == 0);
}

bool kp_framename_is_interpreter(const char *frame)
{
    if (strncmp(frame, "libpython", 9) == 0 || strstr(frame, ": __libc_start_")) return true;
    return strncmp(frame, "python", 6) == 0 && frame[6 + strspn(frame + 6, "0123456789.")] == ':';
}

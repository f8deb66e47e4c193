// SPDX-License-Identifier: Apache-2.0
/*
 * traceback.c - the text of a traceback as Python prints it
 *
 *   Traceback (most recent call last):
 *     File "/x/train.py", line 18, in main
 *       step(batch)
 *   ValueError: its text
 *
 * Called by: lastexception.c, with the GIL; readers of files. Cold.
 * Owns:      nothing
 * Locks:     none
 * Memory:    none
 * On fail:   there is no traceback
 * Safe in:   signal handlers yes
 */
#include "collector/base/text/kp_traceback.h"

#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

#define FRAME "  File \""

static const char *line_next(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* False: it is no line of a frame. */
static bool frame_read(struct kp_traceback *out, const char *line)
{
    static const char number[] = "\", line ", function[] = ", in ";
    const char *const end = line + strcspn(line, "\n"), *const file = line + sizeof FRAME - 1;
    if (strncmp(line, FRAME, sizeof FRAME - 1) != 0) return false;
    const char *at = memchr(file, '"', (size_t)(end - file));
    if (!at || strncmp(at, number, sizeof number - 1) != 0) return false;
    kp_fmt(out->file, sizeof out->file, "%.*s", (int)(at - file), file);
    at += sizeof number - 1;
    out->line = 0;
    for (; *at >= '0' && *at <= '9' && out->line < 100000000; at++) out->line = 10 * out->line + (*at - '0');
    const bool is_named = strncmp(at, function, sizeof function - 1) == 0;
    if (is_named) at += sizeof function - 1;
    kp_fmt(out->function, sizeof out->function, "%.*s", is_named ? (int)(end - at) : 0, at);
    return true;
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           (c & 128);
}

/* "torch.multiprocessing.spawn.ProcessRaisedException: its text", or a name alone. */
static bool exception_read(struct kp_traceback *out, const char *line)
{
    const char *name = line, *end = line;
    for (; is_of_name(*end); end++)
        if (*end == '.') name = end + 1;
    if (end == name || (*name >= '0' && *name <= '9') || (*end && *end != ':' && *end != '\n' && *end != '\r'))
        return false;
    kp_fmt(out->type, sizeof out->type, "%.*s", (int)(end - name), name);
    out->text = *end == ':' ? end + 1 : "";
    out->text += strspn(out->text, " ");
    return true;
}

bool kp_traceback_next(const char **at, struct kp_traceback *out, bool (*is_own)(const char *file))
{
    struct kp_traceback frame;
    bool has_own = false;
    const char *line = *at;
    while (*line && strncmp(line, FRAME, sizeof FRAME - 1) != 0) line = line_next(line);
    for (*out = (struct kp_traceback){.text = ""}; *line == ' '; line = line_next(line)) {
        if (!frame_read(&frame, line) || (has_own && !is_own(frame.file))) continue;
        has_own = is_own(frame.file);
        frame.text = "";
        frame.type[0] = '\0';
        *out = frame;
    }
    *at = line;
    return out->file[0] && exception_read(out, line);
}

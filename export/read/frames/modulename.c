// SPDX-License-Identifier: Apache-2.0
/*
 * modulename.c - puts the names that the program gives its modules in place of torch.profiler's, or beside them
 *
 * A name goes from the outermost module on, so the innermost named module of a path tells the modules around it, too.
 */
#include "export/read/frames/modulename.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define CALL "nn.Module: "
enum { PART_MOST = 256 };

void kp_modulename_carry(struct kp_kineto *to, const struct kp_kineto *from)
{
    for (uint32_t id = 1; id < kp_strings_count(from->strings); id++) {
        if (!kp_strings_has_module(from->strings, id)) continue;
        const uint32_t call = kp_strings_put_from(to->strings, from->strings, id);
        kp_strings_module_from(to->strings, call, from->strings, id);
    }
}

/* The name of a module that Kineto calls `part`, or NULL. */
static const char *name_of(struct kp_kineto *trace, const char *part, size_t bytes)
{
    char call[sizeof CALL + PART_MOST];
    if (bytes > PART_MOST) return NULL;
    const int used = snprintf(call, sizeof call, CALL "%.*s", (int)bytes, part);
    const uint32_t name = kp_strings_module(trace->strings, kp_strings_put(trace->strings, call, (size_t)used));
    return name ? kp_kineto_text(trace, name) : NULL;
}

static char *room_for(struct kp_frametext *out, size_t bytes)
{
    return out->data = kp_kineto_grow(out->data, &out->capacity, bytes, 1);
}

const char *kp_modulename_frame(struct kp_frametext *out, struct kp_kineto *trace, const char *frame)
{
    const char *const module = kp_framename_module(frame), *const name =
                                                               module ? name_of(trace, module, strlen(module)) : NULL;
    if (!name) return frame;
    const size_t room = sizeof CALL + strlen(name) + strlen(module) + 4;
    snprintf(room_for(out, room), room, CALL "%s (%s)", name, module);
    return out->data;
}

static bool is_within(const char *name, const char *around)
{
    const size_t bytes = strlen(around);
    return strncmp(name, around, bytes) == 0 && name[bytes] == '.';
}

static uint32_t id_of(struct kp_kineto *trace, struct kp_frametext *text, const char *shown)
{
    const uint32_t id = kp_strings_put(trace->strings, shown, strlen(shown));
    kp_frametext_fini(text);
    return id;
}

uint32_t kp_modulename_frame_id(struct kp_kineto *trace, uint32_t frame)
{
    struct kp_frametext text = {0};
    if (!kp_strings_module(trace->strings, frame)) return frame;
    return id_of(trace, &text, kp_modulename_frame(&text, trace, kp_kineto_text(trace, frame)));
}

bool kp_modulename_is_meant(const struct kp_kineto *trace, const char *pattern, uint32_t name)
{
    if (kp_framename_is_meant(pattern, kp_kineto_text(trace, name))) return true;
    const uint32_t its = kp_strings_module(trace->strings, name);
    return its && fnmatch(pattern, kp_kineto_text(trace, its), 0) == 0;
}

/* The begin of the last named part of a path, and its name. NULL: no part has one. A module that is also called
 * elsewhere has its name of there, and none here. */
static const char *named_part(struct kp_kineto *trace, const char *path, const char **name)
{
    const char *found = NULL;
    for (const char *part = path; *part; part += *part == '.') {
        const size_t bytes = strcspn(part, ".");
        const char *const its = name_of(trace, part, bytes);
        if (its && (!found || is_within(its, *name))) found = part, *name = its;
        part += bytes;
    }
    return found;
}

const char *kp_modulename_path(struct kp_frametext *out, struct kp_kineto *trace, const char *path)
{
    const char *name = NULL, *const part = named_part(trace, path, &name);
    if (!part) return path;
    const size_t bytes = strcspn(part, "."), outer = strcspn(path, "."), room = strlen(path) + strlen(name) + 8;
    const bool has_outer = part > path && !name_of(trace, path, outer);
    char *const text = room_for(out, room);
    size_t used = has_outer ? (size_t)snprintf(text, room, "%.*s.", (int)outer, path) : 0;
    used += (size_t)snprintf(text + used, room - used, "%s", name);
    if (part[bytes]) snprintf(text + used, room - used, "%s", part + bytes);
    else snprintf(text + used, room - used, " (%s)", part);
    return text;
}

uint32_t kp_modulename_path_id(struct kp_kineto *trace, uint32_t path)
{
    struct kp_frametext text = {0};
    return path ? id_of(trace, &text, kp_modulename_path(&text, trace, kp_kineto_text(trace, path))) : 0;
}

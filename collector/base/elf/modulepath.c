// SPDX-License-Identifier: Apache-2.0
/*
 * modulepath.c - finds the file that is mapped at an address, and where another process has it
 *
 * Called by: codemap.c, once a module, inside a hook; task.c, of memory in which a thread waits; pywhere.c, of a child
 * Owns:      nothing
 * Locks:     none
 * Memory:    5 KB of stack
 * On fail:   false or 0: no /proc, or no file lies there
 * Safe in:   signal handlers yes; after fork yes
 *
 * A program may load "./libx.so" and change its folder later. /proc/PID/maps has the path of the file itself.
 */
#include "collector/base/elf/kp_modulepath.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

enum { LINE = 2048, PIECE = 1024 };

static bool line_parse(const char *line, struct kp_mapping *m)
{
    const char *at = line;
    m->low = kp_digits_hex(&at);
    if (*at++ != '-') return false;
    m->high = kp_digits_hex(&at);
    if (*at != ' ' || strlen(at) < 6) return false;
    m->is_writable = at[2] == 'w';
    m->file = at + 6;
    m->offset = kp_digits_hex(&m->file);
    m->path = strchr(m->file, '/');
    return true;
}

/* Looks through whole lines of text; what is left of the last moves to the front. */
static bool lines_look(char *text, size_t *used, kp_mapping_fn visit, void *of)
{
    struct kp_mapping m;
    char *line = text;
    text[*used] = 0;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (line_parse(line, &m) && visit(&m, of)) return true;
    }
    *used -= (size_t)(line - text);
    memmove(text, line, *used);
    if (*used >= LINE - PIECE) *used = 0; /* a line too long to have a path that fits */
    return false;
}

int kp_mappings_look(const char *maps, kp_mapping_fn visit, void *of)
{
    char text[LINE];
    size_t used = 0;
    bool is_found = false;
    const int fd = kp_io_open(maps, O_RDONLY, 0);
    if (fd < 0) return fd;
    for (ssize_t n; !is_found && (n = kp_io_read(fd, text + used, PIECE - 1)) > 0;) {
        used += (size_t)n;
        is_found = lines_look(text, &used, visit, of);
    }
    kp_io_close(fd);
    return is_found;
}

/* ---- the path ---- */

struct path_wish {
    uintptr_t at;
    char *out;
    size_t bytes;
};

static bool path_take(const struct kp_mapping *m, void *of)
{
    const struct path_wish *const w = of;
    const size_t n = m->path && w->at >= m->low && w->at < m->high ? strlen(m->path) : w->bytes;
    if (n >= w->bytes) return false;
    memcpy(w->out, m->path, n + 1);
    return true;
}

bool kp_modulepath_find(uintptr_t at, char *out, size_t bytes)
{
    struct path_wish wish = {at, out, bytes};
    return kp_mappings_look("/proc/self/maps", path_take, &wish) > 0;
}

/* ---- another process ---- */

struct file_place {
    uintptr_t at, offset; /* in the file */
    bool is_writable;
    char file[PIECE];
};

static bool place_take(const struct kp_mapping *m, void *of)
{
    struct file_place *const p = of;
    if (!m->path || p->at < m->low || p->at >= m->high || strlen(m->file) >= sizeof p->file) return false;
    memcpy(p->file, m->file, strlen(m->file) + 1);
    p->is_writable = m->is_writable;
    p->offset = m->offset + (p->at - m->low);
    return true;
}

static bool place_match(const struct kp_mapping *m, void *of)
{
    struct file_place *const p = of;
    const bool is_it = m->path && m->is_writable == p->is_writable && p->offset >= m->offset &&
                       p->offset - m->offset < m->high - m->low && strcmp(m->file, p->file) == 0;
    if (is_it) p->at = m->low + (p->offset - m->offset);
    return is_it;
}

uintptr_t kp_modulepath_there(uint32_t pid, uintptr_t at)
{
    char maps[32];
    struct file_place place = {.at = at};
    kp_fmt(maps, sizeof maps, "/proc/%u/maps", pid);
    if (kp_mappings_look("/proc/self/maps", place_take, &place) <= 0) return 0;
    return kp_mappings_look(maps, place_match, &place) > 0 ? place.at : 0;
}

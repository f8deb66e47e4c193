// SPDX-License-Identifier: Apache-2.0
/*
 * modulepath.c - finds the file that is mapped at an address, as a module that the loader knows by a relative path
 *
 * Called by: codemap.c, once a module, inside a hook; task.c, of memory in which a thread waits
 * Owns:      nothing
 * Locks:     none
 * Memory:    3 KB of stack
 * On fail:   false: no /proc, or no file lies there
 * Safe in:   signal handlers yes; after fork yes
 *
 * A program may load "./libx.so" and change its folder later. /proc/self/maps has the path of the file itself.
 */
#include "collector/base/kp_modulepath.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_poison.h"

enum { LINE = 2048, PIECE = 1024 };

static const char *hex_read(const char *at, uintptr_t *out)
{
    for (*out = 0;; at++) {
        const char c = *at;
        if (c >= '0' && c <= '9') *out = *out << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f') *out = *out << 4 | (uintptr_t)(c - 'a' + 10);
        else return at;
    }
}

/* "LOW-HIGH PERMISSIONS OFFSET DEVICE INODE  /PATH". NULL: `at` is not in it, or it has no file. */
static const char *path_of_line(const char *line, uintptr_t at)
{
    uintptr_t low, high;
    line = hex_read(line, &low);
    if (*line != '-') return NULL;
    (void)hex_read(line + 1, &high);
    return at >= low && at < high ? strchr(line, '/') : NULL;
}

/* Looks through whole lines of text; what is left of the last moves to the front. */
static bool lines_look(char *text, size_t *used, uintptr_t at, char *out, size_t bytes)
{
    char *line = text;
    text[*used] = 0;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        const char *const path = path_of_line(line, at);
        const size_t n = path ? strlen(path) : bytes;
        if (n >= bytes) continue;
        memcpy(out, path, n + 1);
        return true;
    }
    *used -= (size_t)(line - text);
    memmove(text, line, *used);
    if (*used >= LINE - PIECE) *used = 0; /* a line too long to have a path that fits */
    return false;
}

bool kp_modulepath_find(uintptr_t at, char *out, size_t bytes)
{
    char text[LINE];
    size_t used = 0;
    bool is_found = false;
    const int fd = kp_io_open("/proc/self/maps", O_RDONLY, 0);
    if (fd < 0) return false;
    for (ssize_t n; !is_found && (n = kp_io_read(fd, text + used, PIECE - 1)) > 0;) {
        used += (size_t)n;
        is_found = lines_look(text, &used, at, out, bytes);
    }
    kp_io_close(fd);
    return is_found;
}

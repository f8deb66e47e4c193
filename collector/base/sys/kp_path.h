// SPDX-License-Identifier: Apache-2.0
/* kp_path.h - parts of paths */
#pragma once

#include <stdbool.h>
#include <string.h>

/* The file's name: what follows the last '/', or the whole path. Signal handlers: yes. */
static inline const char *kp_path_base(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Writes the folder of a path, "." of a bare name, as much of it as there is room for. Signal handlers: yes. */
static inline void kp_path_folder(char *out, size_t bytes, const char *path)
{
    const char *const slash = strrchr(path, '/');
    size_t n = slash && slash != path ? (size_t)(slash - path) : 1;
    if (n >= bytes) n = bytes - 1;
    memcpy(out, slash ? path : ".", n);
    out[n] = '\0';
}

/*
 * Cuts folders that a path leaves at once: "job/../train.py" becomes "train.py". Text behind the path stays. Only names
 * are read: beyond a symlink the result is another folder. Signal handlers: yes.
 */
static inline void kp_path_shorten(char *path)
{
    for (char *up = path; (up = strstr(up, "/../")) != NULL;) {
        char *from = up;
        while (from > path && from[-1] != '/') from--;
        const bool is_folder = from < up && strncmp(from, "../", 3) != 0 && strncmp(from, "./", 2) != 0;
        if (is_folder) memmove(from, up + 4, strlen(up + 4) + 1), up = path;
        else up++;
    }
}

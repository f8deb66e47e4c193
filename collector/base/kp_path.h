// SPDX-License-Identifier: Apache-2.0
/* kp_path.h - parts of paths */
#pragma once

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

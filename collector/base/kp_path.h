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

// SPDX-License-Identifier: Apache-2.0
/* kp_path.h - parts of paths */
#ifndef KP_PATH_H
#define KP_PATH_H

#include <string.h>

/* The file's name: what follows the last '/', or the whole path. Signal handlers: yes. */
static inline const char *kp_path_base(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/* reader_open.h - opens a reader on a spool by its name, for tests; the product opens the file itself */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/read/kp_read.h"

static inline int test_reader_open(struct kp_reader **out, const char *path, char *why, size_t why_bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = NULL;
    if (fd < 0) {
        const int rc = -errno;
        snprintf(why, why_bytes, "cannot be opened: %s", strerror(-rc));
        return rc;
    }
    const int rc = kp_reader_open_fd(out, fd, path, why, why_bytes);
    close(fd);
    return rc;
}

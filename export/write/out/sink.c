// SPDX-License-Identifier: Apache-2.0
/*
 * sink.c - writes a file under a temporary name, and renames it when it is whole
 *
 * Called by: export.c (export thread inside the host, CLI)
 * On fail:   -errno; the temporary file is removed. The final name is only given to a complete file, and never replaces
 *            another file.
 */
#include "export/write/out/sink.h"

#include <errno.h>
#include <fcntl.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "export/kp_export.h"
#include "collector/base/kp_poison.h"

int kp_sink_open(struct kp_sink *s, const char *dir, const char *name, const struct kp_export_owner *owner)
{
    int rc = kp_io_mkdirs(dir, KP_IO_FOLDER_MODE);
    s->fd = -1;
    s->owner = owner;
    s->room = (struct kp_room){0};
    s->is_room_left = false;
    s->temporary[0] = 0;
    if (rc) return rc;
    if (kp_fmt(s->temporary, sizeof s->temporary, "%s/.%s.part", dir, name) >= sizeof s->temporary) {
        s->temporary[0] = 0;
        return -ENAMETOOLONG;
    }
    s->fd = kp_io_open(s->temporary, O_WRONLY | O_CREAT | O_EXCL, owner ? 0600 : KP_IO_FILE_MODE);
    if (s->fd >= 0) return 0;
    s->temporary[0] = 0;
    return s->fd;
}

int kp_sink_write(struct kp_sink *s, const void *data, size_t bytes)
{
    s->is_room_left = !kp_room_take(&s->room, s->fd, bytes);
    if (s->is_room_left) return -ENOSPC;
    ssize_t n = kp_io_write_all(s->fd, data, bytes);
    return n < 0 ? (int)n : 0;
}

int kp_sink_commit(struct kp_sink *s, const char *path)
{
    int rc;
    if (s->fd >= 0) {
        rc = s->owner ? kp_io_give(s->fd, s->owner->uid, s->owner->gid, s->owner->mode) : 0;
        if (rc) return rc;
        rc = kp_io_fsync(s->fd);
        if (rc && rc != -EINVAL && rc != -EROFS) return rc; /* some file systems have nothing to sync */
        rc = kp_io_close(s->fd);
        s->fd = -1;
        if (rc) return rc;
    }
    rc = kp_io_rename_new(s->temporary, path);
    if (!rc) s->temporary[0] = 0;
    return rc;
}

void kp_sink_drop(struct kp_sink *s)
{
    if (s->fd >= 0) kp_io_close(s->fd);
    if (s->temporary[0]) kp_io_unlink(s->temporary);
    s->fd = -1;
    s->temporary[0] = 0;
}

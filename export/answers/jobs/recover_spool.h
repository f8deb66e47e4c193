// SPDX-License-Identifier: Apache-2.0
/* recover_spool.h - writes the traces of a dead process's spool in a child process, and then removes the spool */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "export/read/folder/spool_export.h"

struct kp_recover {
    struct kp_spool_export_options wish;
    bool keep, force;
    unsigned traces, removed, left, bad, empty,
        untold; /* counts so far; empty: spools without an event; untold: their ends */
};
/* The place of a spool. Files are reached through `dir`, since a path may lead elsewhere by now. */
struct kp_recover_folder {
    int dir;
    struct stat st;
    const char *path;
};
/* `listed`: from a folder's listing, not from the user. Then a link, or another user's file, is reported and kept. */
void kp_recover_spool(struct kp_recover *r, const struct kp_recover_folder *folder, const char *name, bool listed);
/* Removes files from an open folder, by begin and end of their names. `wanted` accepts the rest, or is NULL. */
void kp_recover_names_remove(int dir, const char *begin, const char *end,
                             bool (*wanted)(const void *context, const char *rest), const void *context);

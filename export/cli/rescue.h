// SPDX-License-Identifier: Apache-2.0
/* rescue.h - the traces of one spool that its process left, made in a process of their own, and the spool's end */
#ifndef KP_RESCUE_H
#define KP_RESCUE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "export/cli/spool_export.h"

struct kp_rescue {
    struct kp_spool_export_options wish;
    bool keep, force;
    unsigned traces, removed, left, bad; /* how many so far */
};
/* Where a spool is. Files are reached through `dir`, since a path may lead elsewhere by now. */
struct kp_rescue_folder {
    int dir;
    struct stat st;
    const char *path;
};
/* `listed`: nobody named it, so it may be a link that somebody put there, or another user's; such are left alone, and
 * told. */
void kp_rescue_spool(struct kp_rescue *r, const struct kp_rescue_folder *folder, const char *name, bool listed);
/* Removes what is not a folder from an open one, where the name begins and ends so and `wanted` (NULL: always) says
 * so. */
void kp_rescue_names_remove(int dir, const char *begin, const char *end, bool (*wanted)(const char *rest));

#endif

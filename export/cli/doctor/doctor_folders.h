// SPDX-License-Identifier: Apache-2.0
/* doctor_folders.h - what the folders of this machine are good for: traces, recordings, records, temporary files */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_fskind.h"

/* kprof makes the first two; the others must be there. */
enum kp_doctor_use { KP_DOCTOR_TRACES, KP_DOCTOR_SPOOL, KP_DOCTOR_RECORDS, KP_DOCTOR_TEMPORARY };

struct kp_doctor_folder {
    enum kp_doctor_use use;
    const char *path;
    uint64_t type;         /* of statfs(2) */
    uint64_t bytes, spare; /* the volume's size, and what this user may still write */
    uint64_t max_mb;       /* KPROF_MAX_MB */
    const char *wrong;     /* NULL, or why no file can be written there */
};

/* Writes the line about it. Returns its level: ok, warn or fail. */
const char *kp_doctor_folder_line(const struct kp_doctor_folder *folder, char *line, size_t bytes);

typedef void kp_doctor_say_fn(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Looks at the folders that the settings name, and says a line of each. */
void kp_doctor_folders(const struct kp_config *config, kp_doctor_say_fn *say);
/* The nearest folder above a path that exists. */
void kp_doctor_existing(const char *path, char *out, size_t bytes);

// SPDX-License-Identifier: Apache-2.0
/* doctor.h - what `kprof doctor` looks at: folders, processors, what counts the steps of a program */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_fskind.h"

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

/* doctor_processors.c: how many processors a program may use here, and how busy they are */
struct kp_processors {
    unsigned count; /* those that the scheduler lets this process use, at least 1 */
    double limit;   /* processors' worth of time that the control group allows, 0: no limit is known */
    double load;    /* the load average of the last minute, 0 where /proc does not tell */
};

/* Reads /proc and /sys/fs/cgroup below `root` ("" is this machine's; tests give a folder). Versions 1 and 2 of control
 * groups are known; of nested groups the lowest limit counts. A folder that cannot be read is left out. */
struct kp_processors kp_processors_read(const char *root);

/* doctor_steps.c: Runs the program under `library` with a schedule that waits for ever. `out` gets what the library
 * said about steps, a line a process. Returns 0 or -errno. */
int kp_doctor_steps(const char *library, char *const argv[], char *out, size_t bytes);

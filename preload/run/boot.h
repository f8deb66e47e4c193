// SPDX-License-Identifier: Apache-2.0
/*
 * boot.h - what the files of preload/ ask of the composition root
 */
#ifndef KP_BOOT_H
#define KP_BOOT_H

#include <stdbool.h>

#include "schedule/kp_schedule.h"

/* False before start, after exit, in a forked child, with KPROF=0. */
bool kp_run_is_active(void);
/* Opens the spool on first use. 0 or -errno (said once, then for good). */
int kp_run_open_spool(void);
bool kp_run_cannot_record(void); /* that failed */
const struct kp_schedule *kp_boot_schedule(void);
/* Whether the host ran any op at all while nothing was recorded: then a closing line is owed. */
bool kp_boot_saw_work(void);

/* The output folder, absolute; and a path as the user would type it from the folder the program was started in. */
const char *kp_run_out_dir(void);
const char *kp_path_display(const char *path);
const char *kp_run_spool_dir(void);

/*
 * A thread of ours, before it steps or opens and closes windows: false when exit has begun, or another is at it. Then it tries again
 * later, as long as kp_run_is_active. Short: exit waits for the end.
 */
bool kp_run_turn_begin(void);
void kp_run_turn_end(void);

/* As at exit, though the program goes on: all is written and said, nothing is recorded afterwards. On a host thread, outside hooks. */
void kp_run_end_early(void);

#endif

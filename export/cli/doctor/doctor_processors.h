// SPDX-License-Identifier: Apache-2.0
/* doctor_processors.h - how many processors a program may use here, and how busy they are */
#pragma once

struct kp_processors {
    unsigned count; /* those that the scheduler lets this process use, at least 1 */
    double limit;   /* processors' worth of time that the control group allows, 0: no limit is known */
    double load;    /* the load average of the last minute, 0 where /proc does not tell */
};

/* Reads /proc and /sys/fs/cgroup below `root` ("" is this machine's; tests give a folder). Versions 1 and 2 of control
 * groups are known; of nested groups the lowest limit counts. What cannot be read is left out. */
struct kp_processors kp_processors_read(const char *root);

// SPDX-License-Identifier: Apache-2.0
/* kp_half.h - where the half of a spool in memory lies, and the header's lines that say so */
#pragma once

/* The half in memory, /dev/shm/kprof.UID/NAME, or a file without a path. Its lines in the header say where both are. */
#define KP_HALF_ROOT "/dev/shm"
#define KP_HALF_FOLDER "/kprof."    /* then the user's number; mode 0700 */
#define KP_HALF_MEMORY_KEY "memory" /* its path, or "-" */
#define KP_HALF_SPOOL_KEY "spool"   /* the path of the half on the disk */

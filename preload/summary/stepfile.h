// SPDX-License-Identifier: Apache-2.0
/* stepfile.h - the file of a line a step, which grows to some MB and then slowly (kp_stepline.h) */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_stepline.h"

/* One thread makes all calls. */
struct kp_stepfile {
    char path[4300];
    struct kp_stephead head;
    uint64_t at;                       /* bytes in the file; 0: it is not there yet */
    uint64_t singles;                  /* lines of a single step */
    uint64_t folded[KP_STEPLINE_FOLD]; /* how long the steps of `open` lasted */
    uint64_t open_ns;                  /* the end of the first of them */
    struct kp_stepline open;           /* stands for several; count 0: none */
    struct kp_stepline out[64];
    size_t out_count;
};

/* Adds a line, which is written by kp_stepfile_flush, or when 64 wait. */
void kp_stepfile_add(struct kp_stepfile *file, const struct kp_stepline *line);
/*
 * Writes what waits, and the head. The first call with a line makes the file, at file->path, which must be new. 0 or
 * -errno: the lines are dropped, and counted in head.lost.
 */
int kp_stepfile_flush(struct kp_stepfile *file, uint64_t now_ns);
int kp_stepfile_end(struct kp_stepfile *file, uint64_t now_ns); /* writes all, and that the program ended */

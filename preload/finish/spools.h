// SPDX-License-Identifier: Apache-2.0
/*
 * spools.h - exports and trims the spools of other processes, which have ended
 */
#pragma once

#include <stdint.h>

struct kp_config;

struct kp_spools_made {
    unsigned traces, failed;
    unsigned bare;  /* spools without a trace: their process ended before what it recorded was on the disk */
    uint64_t bytes; /* on the disk, of the removed spools */
};

/* Called once by the constructor. */
void kp_spools_setup(const struct kp_config *config);
/*
 * Exports all windows of a spool in the open folder `dir` to the folder `out`, and removes the spool. A spool stays if
 * that fails, or if other users may write to it. No process may write to it any more. Adds its results to *made. Not
 * from signal handlers; one thread at a time. Takes as long as an export.
 */
void kp_spools_export(int dir, const char *name, const char *out, struct kp_spools_made *made);
/*
 * Brings what a dead process left in memory to its spool on the disk. Returns how many bytes less it takes then than
 * kp_record_share counts.
 */
uint64_t kp_spools_trim(int dir, const char *name);

/* Writes to this process's spool which process it is, since a pid alone may be used again. */
void kp_spools_note_process(void);
/*
 * At exit of a process that recorded: exports the spools of programs that this process ran before an exec. Removes
 * empty spools, and logs one line. Not from signal handlers.
 */
void kp_spools_replaced(void);

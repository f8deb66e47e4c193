// SPDX-License-Identifier: Apache-2.0
/*
 * spools.h - traces of what other programs left in their spools, made by this process at its exit
 */
#ifndef KP_SPOOLS_H
#define KP_SPOOLS_H

struct kp_config;

struct kp_spools_made {
    unsigned traces, failed;
};

/* Once, by the constructor. */
void kp_spools_setup(const struct kp_config *config);
/*
 * Makes the traces of all windows of a spool in the open folder `dir`, in the folder `out`, and removes it; one that
 * fails stays, and so does one that is not of this user alone. Nobody may write to it any more. Counts what it did. Not
 * from signal handlers; one thread at a time. Takes as long as an export.
 */
void kp_spools_export(int dir, const char *name, const char *out, struct kp_spools_made *made);

/* When this process has a spool: it says in it which process it is, not just its number. */
void kp_spools_note_process(void);
/*
 * At exit of a process that recorded: what the programs left that this process ran before, each replaced by the next
 * (exec). Empty ones go, of others traces are made, and one line tells. Not from signal handlers.
 */
void kp_spools_replaced(void);

#endif

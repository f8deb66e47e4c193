// SPDX-License-Identifier: Apache-2.0
/* spool_export.h - traces out of one spool, for `kprof export` and `kprof recover`, with everything said that was
 * lost */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "collector/read/kp_read.h"

struct kp_spool_export_options {
    const char *command;   /* for the messages */
    const char *dir;       /* NULL: the folder of the spool */
    const char *dir_shown; /* its name in messages, or NULL */
    const char *worker_name;
    int gzip;                            /* 1, 0, or -1 for the spool's own setting */
    const char *exports;                 /* as KPROF_EXPORT, or NULL for the spool's own setting */
    const struct kp_places *places;      /* as in kp_export.h, or NULL */
    const struct kp_export_owner *owner; /* as in kp_export.h */
    uint64_t written_ns;                 /* as in kp_export.h */
    struct kp_export_result *result;     /* of the current trace, for a reader in another process, or NULL */
    bool quiet;                          /* only errors are said */
    bool json;                           /* what was written is a line of JSON (written.h) */
    bool skips_exported;                 /* leaves out windows of which the program itself wrote a trace */
};
struct kp_export_owner;
struct kp_export_result;
enum kp_spool_state { KP_SPOOL_GONE, KP_SPOOL_RUNNING, KP_SPOOL_FOREIGN_HOST };

/* Writes every cycle of an open spool. Returns the number of traces, or -errno with the message said. */
int kp_spool_export_write(struct kp_reader *reader, const char *path, const struct kp_spool_export_options *wish);
/* Says on `to` what is not in the traces: drops by kind and reason, torn records, a cycle cut off. */
void kp_spool_export_losses(const struct kp_reader *reader, FILE *to);
/*
 * Whether the process that writes the spool at `path` still has it mapped. For another user's process that is hidden.
 * Then the answer is whether the process exists. A later process with its pid does not count. A process that executed
 * another program since does.
 */
enum kp_spool_state kp_spool_state(const struct kp_file_head *head, const char *path);

/* A process with that pid runs here, perhaps another process than the spool's. */
bool kp_spool_process_runs(uint32_t pid);

// SPDX-License-Identifier: Apache-2.0
/*
 * kp_export.h - door of the showing side: traces from spools
 *
 * Called by: the export thread inside the host and the CLI. Bounded memory; no malloc of the host's is used.
 */
#ifndef KP_EXPORT_H
#define KP_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/read/kp_read.h"

struct kp_export_options {
    const char *dir;          /* output folder, made when missing */
    const char *worker_name;  /* NULL: HOST_PID of the spool */
    bool gzip;
    const char *metadata;     /* KPROF_METADATA, a JSON object; NULL none; a bad one was refused earlier */
    /* progress, may be NULL: events written so far, and whether the caller wants it to stop (non-zero stops) */
    int (*progress)(void *context, uint64_t events);
    void *context;
};
struct kp_export_result {
    char path[4096];
    uint64_t events, steps, lost;
};
/*
 * Writes cycle `cycle` as DIR/WORKER.TIMESTAMPNS.pt.trace.json[.gz], under a temporary name first, renamed when complete.
 * 0, -ENODATA when the cycle has no event (no file), or -errno.
 */
int kp_export_trace(struct kp_reader *reader, uint32_t cycle, const struct kp_export_options *options,
                    struct kp_export_result *result);

#endif

// SPDX-License-Identifier: Apache-2.0
/* finish.h - closed windows become traces, beside the host or at exit */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/base/kp_config.h"
#include "export/kp_export.h"
#include "schedule/kp_schedule.h"

/* had_activity: did the host run any op? */
void kp_finish_setup(const struct kp_config *config, const struct kp_schedule *schedule, bool (*had_activity)(void));
void kp_finish_forget(void);
/* So far, of closed windows. */
struct kp_finish_totals {
    uint64_t traces, failed, kept; /* written; not written; left in the spool by an exit that waits no longer */
    uint64_t steps, gpu_events, allocations, calls, lost;
    uint64_t events, kept_events;       /* in the traces; in what was left in the spool */
    uint64_t steps_by[KP_STEP_API + 1]; /* by the source that counted them */
    uint64_t whole_steps; /* of those seen, how many were over at the last tick before a record was lost */
    bool cut;             /* the end of the program cut a window short */
};
void kp_finish_look(struct kp_finish_totals *out);
/* kprof_keep(): asks for a trace of the ring. 0, -ENODATA (no ring), -EPERM, -EACCES, -EALREADY. */
int kp_finish_keep(void);
/* kprof-tick, each tick: closes windows and hands them to the export thread. */
void kp_finish_tick(void);
/* At exit: finishes the remaining windows on the calling thread and logs the closing line. */
void kp_finish_exit(void);

/* ---- newest.c: keeps the newest traces of this process (KPROF_KEEP) ---- */

/* A trace was written. Removes the oldest that this process wrote beyond `most`, with the files that were made of it; 0
 * keeps all. By the thread that writes traces. */
void kp_newest_note(const char *path, uint64_t most);
void kp_newest_forget(void); /* in a forked child: the traces are its parent's */

/* ---- tracewrite.c: writes the trace of a cycle of this process's own spool ---- */

/* The facts that all traces of this process have in common. host_waits: at exit, which may take what room is left. */
struct kp_export_options kp_tracewrite_options(const struct kp_config *config, bool host_waits);
/* As kp_export_trace. Logs a failure, once for a reason. */
int kp_tracewrite(uint32_t cycle, const struct kp_export_options *options, struct kp_export_result *result);
/* Whether this rank's turn has come to begin. is_alone: one window waits, and nothing else; else it is due at once. */
bool kp_tracewrite_is_due(bool is_alone);

// SPDX-License-Identifier: Apache-2.0
/* stepends.h - which ranges end the steps of a trace that marks none: an optimizer's, else loads of
 * batches, or backward passes */
#pragma once

#include <string.h>

#include "export/read/kineto/kineto.h"

/* The value of args.step, in a range whose end was that of a step (decisions/010). */
#define KP_STEPENDS_MARK "ended"

#define KP_STEPENDS_STARTUP "start-up" /* the value of args.partial, in a step that the program's start is in */

enum kp_stepends_kind {
    KP_STEPENDS_NONE,
    KP_STEPENDS_OPTIMIZER,
    KP_STEPENDS_BATCH,
    KP_STEPENDS_CALL,
    KP_STEPENDS_PASS
};

/* Whose steps count, of those that are seen in the order of time. All zero: none was seen. */
struct kp_stepends {
    bool is_known;
    enum kp_stepends_kind kind; /* of the last one */
    char name[128];
    int64_t pid, tid; /* -1: the file has names instead */
};

static inline bool kp_stepends_is_optimizer(const char *name) { return strncmp(name, "Optimizer.step#", 15) == 0; }

/* May the event end a step? In our traces those that did are marked. Others do not tell optimizers of a class apart. */
bool kp_stepends_may(const struct kp_kineto *trace, const struct kp_kineto_event *event);
/*
 * Does it, of events that may and come in the order of time? If none is marked, the first one names the optimizer: by
 * its range's name and thread.
 */
bool kp_stepends_counts(struct kp_stepends *ends, const struct kp_kineto *trace, const struct kp_kineto_event *event);
/* " by backward passes", where these end the steps; else "". */
static inline const char *kp_stepends_by(enum kp_stepends_kind kind)
{
    return kind == KP_STEPENDS_PASS ? " by backward passes" : "";
}
/* The mark that ends a step, before its number: "optimizer step", "batch load"; "": the trace marks its steps. */
const char *kp_stepends_what(enum kp_stepends_kind kind);

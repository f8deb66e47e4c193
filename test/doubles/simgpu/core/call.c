// SPDX-License-Identifier: Apache-2.0
/* call.c - brackets every call of both APIs: correlation, times, injected errors, the observer */
#include <stdatomic.h>

#include "test/doubles/simgpu/cbids.h"
#include "test/doubles/simgpu/core/core.h"

enum { MAX_DEPTH = 8 };
static _Atomic uint32_t last_correlation, disturbances;
static _Thread_local struct {
    int depth;
    uint32_t correlation, disturbances; /* those before the outermost call */
    struct simgpu_call *calls[MAX_DEPTH];
    uint32_t alias;
} mine;

/* The next call of the driver on this thread is reported under this number. */
void sim_call_alias(uint32_t cbid) { mine.alias = cbid; }

uint32_t sim_correlation(void) { return mine.depth ? mine.correlation : 0; }

const struct simgpu_call *sim_call_current(void)
{
    return mine.depth > 0 && mine.depth <= MAX_DEPTH ? mine.calls[mine.depth - 1] : NULL;
}

/* The real runtime launches, copies and waits through private tables: CUPTI has no driver record of what a runtime call
 * does (seen in real traces and in the output of CUPTI's own samples, with both kinds enabled). */
static bool is_told(const struct simgpu_call *call)
{
    return mine.depth == 1 || call->domain != SIMGPU_DRIVER || sim_settings()->has_nested_calls;
}

void sim_call_enter(struct simgpu_call *call)
{
    if (mine.alias && call->domain == SIMGPU_DRIVER) {
        call->cbid = mine.alias;
        call->name = sim_cbid_name(SIMGPU_DRIVER, mine.alias);
        mine.alias = 0;
    }
    if (mine.depth == 0) {
        mine.correlation = atomic_fetch_add(&last_correlation, 1) + 1;
        mine.disturbances = atomic_load(&disturbances);
    }
    if (mine.depth < MAX_DEPTH) mine.calls[mine.depth] = call;
    mine.depth++;
    call->correlation = mine.correlation;
    call->exit_ns = 0;
    call->enter_ns = sim_now();
    call->result = sim_fault_of_call(call->name);
    const struct simgpu_observer *o = sim_observer();
    if (o && o->enter && is_told(call)) o->enter(call);
}

void sim_call_exit(struct simgpu_call *call, int result)
{
    call->result = result;
    call->exit_ns = sim_now();
    const struct simgpu_observer *o = sim_observer();
    if (o && o->exit && is_told(call)) o->exit(call);
    sim_truth_call(call);
    const bool is_lost = mine.depth == 1 && mine.disturbances != atomic_load(&disturbances);
    if (mine.depth > 0 && !is_lost) mine.depth--;
}

void sim_calls_disturb(void) { atomic_fetch_add(&disturbances, 1); }

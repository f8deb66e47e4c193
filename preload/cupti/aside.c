// SPDX-License-Identifier: Apache-2.0
/*
 * aside.c - KPROF_CUPTI=yield: the program has CUPTI to itself while it profiles itself
 *
 * Called by: tee.c inside the program's CUPTI calls (stand aside, come back); cuda_thread.c on any thread (how
 *            long still)
 * Owns:      until when we stand aside
 * Locks:     none
 * On fail:   if our last CUPTI call takes too long, the program goes on beside us, as with tee
 * Safe in:   signal handlers no; not called after fork
 *
 *   the program registers callbacks or a clock   it is about to begin: we disable our kinds, and wait 5 s for it
 *   the program enables a kind                   we wait until it has disabled all
 *   the program has disabled all                 it fetches its records: we wait 0.2 s after its flush, or 1 s
 *
 * So we have nothing enabled while the program has, and no clock changes while we have something enabled.
 */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { ABOUT_TO_MS = 5000, FETCHES_MS = 1000, FETCHED_MS = 200, WAIT_MS = 2000, NAP_NS = 200000 };
#define SESSION UINT64_MAX

static _Atomic uint64_t until_ms;   /* 0: we do not; SESSION: while the program has a kind enabled */
static _Atomic(const void *) whose; /* an address in the library that uses CUPTI */

int kp_aside_left_ms(void)
{
    uint64_t until = kp_load_acquire(&until_ms),
             now = kp_clock_ms(); /* pairs with: kp_cupti_stand_aside, kp_cupti_come_back */
    if (until == SESSION) return INT_MAX;
    return until > now ? (int)(until - now) : 0;
}

void kp_cupti_stand_aside(bool is_session, const void *code)
{
    uint64_t seen = kp_load_relaxed(&until_ms), end = kp_clock_ms() + WAIT_MS;
    uint64_t until = is_session ? SESSION : kp_clock_ms() + ABOUT_TO_MS;
    if (code) kp_store_release(&whose, code);                              /* pairs with: name_of_client */
    while (seen != SESSION && !kp_cas_acq_rel(&until_ms, &seen, until)) {} /* pairs with: kp_aside_left_ms */
    kp_cupti_helper_wake();
    while (kp_cupti_state() == KP_CUPTI_STATE_ARMED && !kp_cupti_helper_check() && kp_clock_ms() < end)
        kp_io_nap(NAP_NS);
}

void kp_cupti_come_back(bool is_flushed)
{
    uint64_t seen = kp_load_relaxed(&until_ms);
    if (seen == 0 || (is_flushed && seen == SESSION)) return;
    kp_store_release(&until_ms,
                     kp_clock_ms() + (is_flushed ? FETCHED_MS : FETCHES_MS)); /* pairs with: kp_aside_left_ms */
    kp_cupti_helper_wake();
}

/* ---- log line and note ---- */

static const char *name_of_client(void)
{
    Dl_info info;
    const void *code = kp_load_acquire(&whose); /* pairs with: kp_cupti_stand_aside */
    const char *file = code && dladdr(code, &info) && info.dli_fname ? info.dli_fname : "";
    const char *const name = kp_path_base(file);
    if (strncmp(name, "libtorch", 8) == 0) return "torch.profiler";
    return name[0] ? name : "the program";
}

void kp_aside_say(bool begins)
{
    static uint32_t times;
    char text[16];
    if (!kp_cupti_helper_is_wanted()) return;
    KP_LOG_ONCE(0,
                "%s uses CUPTI itself: GPU work is not recorded until it is done (KPROF_CUPTI=tee records beside it)",
                name_of_client());
    times += begins || times == 0;
    kp_fmt(text, sizeof text, "%u times", (unsigned)times);
    kp_cupti_note("gpu_yielded", text);
    if (kp_run_gpu_backend() == KP_GPU_UNDECIDED) kp_cupti_note("gpu_source", "none (the program uses CUPTI itself)");
}

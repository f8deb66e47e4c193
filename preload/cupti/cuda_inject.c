// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_inject.c - InitializeInjection, by which the driver tells that cuInit is under way
 *
 * Called by: libcuda inside cuInit; it finds us by CUDA_INJECTION64_PATH (from the user, or from preload/hook/getenv.c)
 * On fail:   cuda_thread.c polls the driver until cuInit is over
 *
 * NVIDIA documents this call. It is the only way to see a program with a static cudart before its first launch. If
 * cuDeviceGetCount says that the driver is initialised, CUPTI is armed before we return. Else cuda_thread.c
 * arms soon after:
 * the program then makes its context, which takes a hundred times longer.
 */
#include <errno.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { NAP_NS = 100000, WAIT_NS = 500000000 };

int InitializeInjection(void); /* the driver's name for it */

/* Waits until the thread kprof-cuda has armed. Bounded, since that thread may need a lock that cuInit holds. */
static void wait_until_armed(void)
{
    uint64_t end = kp_clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
    if ((!kp_cupti_helper_is_wanted() && !kp_rules_want_touch()) || !kp_cupti_see_cuinit()) return;
    kp_cupti_helper_wake();
    while ((kp_cupti_state() == KP_CUPTI_STATE_CUINIT_OK || kp_cupti_state() == KP_CUPTI_STATE_FOUND) &&
           kp_clock_ns(CLOCK_MONOTONIC) < end)
        kp_io_nap(NAP_NS);
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    int saved = errno;
    if (!(kp_gate_get() & KP_GATE_ON)) return 1;
    kp_run_modules_changed(); /* the driver, not LD_PRELOAD, loaded us: we see libcuda only now */
    wait_until_armed();
    kp_cupti_helper_wake(); /* if not armed, the thread polls the driver until cuInit is over */
    errno = saved;
    return 1;
}

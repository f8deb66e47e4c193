// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_inject.c - the driver's own word that cuInit is under way: InitializeInjection
 *
 * Called by: libcuda inside cuInit, which finds us by CUDA_INJECTION64_PATH (preload/hook/getenv.c answers it, or the
 *            user set it)
 * On fail:   helper.c asks the driver now and then whether cuInit is through
 *
 * Documented by NVIDIA, and the one way to see programs whose cudart is linked statically before their first launch.
 * CUPTI is armed before we return when cuDeviceGetCount says that the driver is initialised by now. Else helper.c arms
 * as soon as it is:
 * the program makes its context meanwhile, which takes a hundred times longer.
 */
#include <errno.h>
#include <time.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_io.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { NAP_NS = 100000, WAIT_NS = 500000000 };

int InitializeInjection(void); /* the driver's name for it */

/* The thread kprof-cuda arms, where a hang is seen. Should it have to wait for a lock that cuInit holds, cuInit must go
 * on. */
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
    kp_run_modules_changed(); /* loaded by the driver alone, we hear of libcuda only now */
    wait_until_armed();
    kp_cupti_helper_wake(); /* not armed: it asks the driver until cuInit is through */
    errno = saved;
    return 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * absent.c - KPROF_SYMBOLS on a processor without stubs: logs that nothing is recorded
 *
 * Called by: boot.c through source.h
 * On fail:   one line; nothing is hooked
 */
#include "collector/base/kp_config.h"
#include "collector/base/kp_log.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

static const char *globs;

static void setup(const struct kp_config *config) { globs = config->symbols; }

static bool attach(void)
{
    if (globs)
        KP_LOG_ONCE(0, "KPROF_SYMBOLS: not on this processor, only on x86-64: no calls of functions are recorded");
    return false;
}

const struct kp_source kp_calltrace_source = {.name = "symbols", .setup = setup, .attach = attach};

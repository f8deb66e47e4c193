// SPDX-License-Identifier: Apache-2.0
/*
 * nvtx_inject.c - NVTX as a source: gives our handlers to each library that uses NVTX
 *
 * Called by: NVTX's code in a host library, once, on the thread that makes the library's first NVTX call; other
 *            threads that call the same library's NVTX wait for it
 * Owns:      nothing
 * Locks:     none
 * On fail:   0: the library's NVTX calls become empty functions, as they are without any tool
 * Safe in:   after fork: the gate reads 0, so a library that asks in a child gets 0
 *
 * A library never loses the handlers. While nothing is recorded, an NVTX call costs one load.
 */
#include <errno.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_log.h"
#include "preload/nvtx/nvtx.h"
#include "preload/run.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

static bool is_wanted;
static _Atomic bool injected;

static void setup(const struct kp_config *config) { is_wanted = (config->activities & KP_ACTIVITY_CUDA) != 0; }

/* An older NVTX has shorter tables: handlers beyond their ends are not installed. */
static bool install(const struct kp_nvtx_callbacks *callbacks)
{
    unsigned installed = 0;
    if (!callbacks || callbacks->bytes < sizeof *callbacks || !callbacks->table_get) return false;
    for (size_t i = 0; i < kp_nvtx_handler_count; i++) {
        const struct kp_nvtx_handler *h = &kp_nvtx_handlers[i];
        kp_nvtx_fn **table = NULL;
        unsigned count = 0;
        if (!callbacks->table_get((int)h->module, &table, &count) || !table || h->number >= count || !table[h->number])
            continue;
        *table[h->number] = h->fn;
        installed++;
    }
    return installed > 0;
}

/* NVTX looks up this name. Returns 1: our handlers are installed. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(kp_nvtx_export_fn export_get);
int InitializeInjectionNvtx2(kp_nvtx_export_fn export_get)
{
    int saved = errno;
    bool done =
        is_wanted && (kp_gate_get() & KP_GATE_ON) && export_get && install(export_get(KP_NVTX_EXPORT_CALLBACKS));
    if (done) {
        kp_log(1, "a library's NVTX ranges are recorded");
        if (!kp_exchange_acq_rel(&injected, true)) kp_run_modules_changed(); /* makes begin.c attach this source */
    }
    errno = saved;
    return done;
}

static bool is_injected(void) { return kp_load_relaxed(&injected); }

const struct kp_source kp_nvtx_source = {
    .name = "nvtx",
    .setup = setup,
    .attach = is_injected,
    .had_activity = is_injected,
    .forget = kp_nvtx_texts_forget,
};

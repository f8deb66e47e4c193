// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_hooks_source.c - CUDA calls by taps as two sources: the runtime, and the driver that it loads later
 *
 * Called by: boot.c
 * Owns:      nothing
 * Locks:     none
 * On fail:   functions that cannot be tapped are not recorded; that is logged
 *
 * The taps are installed once the backend is KP_GPU_INTERCEPT (no CUPTI): beside CUPTI's records they would count
 * everything twice.
 */
#include "preload/run.h"
#include "preload/source.h"

#include <errno.h>

#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/cuda_hooks/cuda_hooks.h"
#include "collector/base/kp_poison.h"

enum { BUSY_TRIES = 20, BUSY_NAP_NS = 10000000 };

static _Atomic bool is_busy; /* the taps could not be installed during a fork or a long scan */
static bool is_sure;         /* KPROF_CUPTI=off: no need to wait for libcuda to look for CUPTI */

static void setup(const struct kp_config *config)
{
    is_sure = (config->activities & KP_ACTIVITY_CUDA) && (config->cupti & KP_CUPTI_OFF);
}

static bool is_wanted(void) { return is_sure || kp_run_gpu_backend() == KP_GPU_INTERCEPT; }

/* The gate decides at each call, unless kprof_toggle switched CUDA off in a window. */
static void set_mode(enum kp_source_mode mode)
{
    kp_store_relaxed(&kp_call_off, mode != KP_SOURCE_FULL && kp_gate_get() & KP_GATE_RECORD);
    if (mode == KP_SOURCE_FULL) kp_resolve_wake();
}

/* Logs which work such a trace lacks: sums of arithmetic, overlap and communication made from it are wrong. */
static void say(void)
{
    KP_LOG_ONCE(0, "CUDA calls are recorded by hooks, not by CUPTI: kernels of cuBLAS, cuDNN, NCCL, Triton and of "
                   "libraries with a CUDA runtime of their own are missing. The kernels of a CUDA graph are one piece");
}

static int resolver_start(void)
{
    static bool is_started;
    if (is_started) return 0;
    int err = kp_resolve_start();
    is_started = err == 0;
    return err;
}

static bool attached_or_said(int taps, const char *what)
{
    if (taps < 0) {
        kp_store_relaxed(&is_busy, taps == -EBUSY);
        if (taps == -EBUSY) return false; /* tried again by gpu_changed, or when modules change */
        kp_log(0, "calls of %s are not recorded: their slots could not be changed (%s)", what, kp_log_error_text(taps));
    }
    int err = taps > 0 ? resolver_start() : 0;
    if (err) kp_log(0, "no thread for CUDA events (%s): kernels are recorded without times", kp_log_error_text(err));
    if (taps > 0) say();
    return true;
}

/* ---- the runtime ---- */

static bool attach_runtime(void)
{
    static void *library;
    int saved = errno;
    bool done = false;
    if (kp_run_gpu_backend() == KP_GPU_OFF || kp_run_gpu_backend() == KP_GPU_CUPTI) return false;
    if (is_wanted()) kp_hook_early();
    if (!library) library = kp_cuda_hooks_library("libcudart");
    if (library) {
        (void)kp_runtime_tap_registration(library); /* if it fails, names are looked up another way */
        if (is_wanted()) {
            kp_cuda_hooks_fill_runtime(library);
            done = attached_or_said(kp_runtime_tap(library), "libcudart");
        }
    }
    errno = saved;
    return done;
}

static bool attach_runtime_early(const void *inside)
{
    return is_wanted() && kp_library_has("libcudart", inside) && attach_runtime();
}

/* The backend was decided outside a scan: the libraries are mapped already, so no scan would attach this source. */
static void gpu_changed(void)
{
    for (int i = 0; is_wanted() && i < BUSY_TRIES; i++) {
        kp_store_relaxed(&is_busy, false);
        kp_run_modules_changed();
        if (!kp_load_relaxed(&is_busy)) return;
        kp_io_nap(BUSY_NAP_NS);
    }
}

const struct kp_source kp_cuda_hooks_source = {
    .name = "cudart",
    .setup = setup,
    .attach = attach_runtime,
    .attach_early = attach_runtime_early,
    .set_mode = set_mode,
    .had_activity = kp_call_seen,
    .activities = KP_ACTIVITY_CUDA,
    .is_drained = kp_resolve_is_drained,
    .close_cycle = kp_resolve_close,
    .gpu_changed = gpu_changed,
};

/* ---- the driver ---- */

static bool attach_driver(void)
{
    int saved = errno;
    bool done = false;
    void *library = is_wanted() ? kp_cuda_hooks_library("libcuda") : NULL;
    if (library) {
        kp_cuda_hooks_fill_driver(library);
        done = attached_or_said(kp_driver_tap(library), "libcuda");
    }
    errno = saved;
    return done;
}

static bool attach_driver_early(const void *inside)
{
    return is_wanted() && kp_library_has("libcuda", inside) && attach_driver();
}

const struct kp_source kp_driver_source = {
    .name = "cuda driver",
    .attach = attach_driver,
    .attach_early = attach_driver_early,
    .set_mode = set_mode,
    .had_activity = kp_call_seen,
    .activities = KP_ACTIVITY_CUDA,
};

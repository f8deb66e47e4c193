// SPDX-License-Identifier: Apache-2.0
/*
 * cudart_find.c - finds libcudart and libcuda in the link map and the functions that we call, and taps their functions
 *
 * Called by: cuda_hooks_source.c, when modules changed
 * Owns:      the two tables
 * Locks:     the loader's, for moments
 * On fail:   NULL members; callers leave out what needs them
 */
#include <dlfcn.h>
#include <string.h>

#include "preload/cuda_hooks/cuda_hooks.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

struct kp_cudrv kp_cudrv;
struct kp_cudart kp_cudart;

void *kp_cuda_hooks_library(const char *stem)
{
    static char path[4096]; /* no lock: begin.c attaches on one thread at a time */
    if (!kp_library_find(stem, path, sizeof path) || strstr(path, "/stubs/")) return NULL;
    return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

int kp_rows_tap(void *library, const struct kp_tap_row *rows, size_t rows_n, struct kp_tap *taps)
{
    const uint32_t n = kp_hook_rows_find(library, rows, rows_n, taps);
    const int err = n ? kp_hook_add_taps(taps, n) : 0;
    return err ? err : (int)n;
}

void kp_cuda_hooks_fill_runtime(void *library)
{
#define FILL(result, name, arguments) kp_cudart.name = (result(*) arguments)(uintptr_t)dlsym(library, #name);
    KP_RUNTIME_CALLS(FILL)
#undef FILL
}

void kp_cuda_hooks_fill_driver(void *library)
{
#define FILL(result, name, arguments) kp_cudrv.name = (result(*) arguments)(uintptr_t)dlsym(library, #name);
    KP_DRIVER_CALLS(FILL)
#undef FILL
    const struct kp_cudrv *d = &kp_cudrv;
    bool has_events = d->cuCtxGetCurrent && d->cuCtxGetDevice && d->cuCtxPushCurrent_v2 && d->cuCtxPopCurrent_v2 &&
                      d->cuStreamIsCapturing && d->cuThreadExchangeStreamCaptureMode && d->cuStreamCreate &&
                      d->cuEventCreate && d->cuEventDestroy_v2 && d->cuEventRecord && d->cuEventQuery &&
                      d->cuEventElapsedTime;
    kp_store_relaxed(&kp_cudrv.has_events, has_events);
    kp_store_release(&kp_cudrv.is_filled, true); /* pairs with: work.c */
}

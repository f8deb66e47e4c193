// SPDX-License-Identifier: Apache-2.0
/*
 * graphs.c - notices that the program uses CUDA graphs, which the rules of some CUPTIs depend on (cuptirule.def)
 *
 * Called by: cupti_source.c when modules changed (attach); host threads when a capture begins; lane.c (hot)
 * Owns:      the answer, and the taps on the functions that begin a capture
 * Locks:     none
 * On fail:   graphs are seen only in CUPTI's records, while it is armed. That always holds for a static cudart,
 *            driver functions found by dlsym, and graphs that are built node by node.
 * Safe in:   after fork yes: a tap passes the call on
 */
#include <dlfcn.h>
#include <errno.h>

#include "collector/base/kp_log.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

/* One type for all of them, since each takes at most six pointers or integers. */
typedef int (*capture_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

#define RUNTIME(X)            \
    X(cudaStreamBeginCapture) \
    X(cudaStreamBeginCapture_ptsz) X(cudaStreamBeginCaptureToGraph) X(cudaStreamBeginCaptureToGraph_ptsz)
#define DRIVER(X)                \
    X(cuStreamBeginCapture)      \
    X(cuStreamBeginCapture_ptsz) \
    X(cuStreamBeginCapture_v2)   \
    X(cuStreamBeginCapture_v2_ptsz) X(cuStreamBeginCaptureToGraph) X(cuStreamBeginCaptureToGraph_ptsz)

static _Atomic bool are_used;

void kp_graphs_see(void)
{
    if (!kp_load_relaxed(&are_used)) kp_store_relaxed(&are_used, true);
}

bool kp_graphs_are_used(void) { return kp_load_relaxed(&are_used); }

#define TAP(name)                                                                                       \
    static capture_fn real_##name;                                                                      \
    static int tap_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) \
    {                                                                                                   \
        kp_graphs_see();                                                                                \
        return real_##name(a, b, c, d, e, f);                                                           \
    }
RUNTIME(TAP)
DRIVER(TAP)

#define ROW(name) KP_TAP_ROW(#name, name),
static const struct kp_tap_row runtime[] = {RUNTIME(ROW)}, driver[] = {DRIVER(ROW)};
enum { MOST = sizeof driver / sizeof *driver };

static struct library {
    const char *stem;
    const struct kp_tap_row *rows;
    size_t count;
    struct kp_tap taps[MOST];
    uint32_t found;
    bool is_done;
} libraries[] = {{.stem = "libcudart", .rows = runtime, .count = sizeof runtime / sizeof *runtime},
                 {.stem = "libcuda", .rows = driver, .count = sizeof driver / sizeof *driver}};

void kp_graphs_attach(void)
{
    char path[1024];
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        struct library *l = &libraries[i];
        if (l->is_done || !kp_library_find(l->stem, path, sizeof path)) continue;
        void *handle = l->found ? NULL : dlopen(path, RTLD_NOLOAD | RTLD_LAZY); /* never closed: taps call into it */
        if (handle) l->found = kp_hook_rows_find(handle, l->rows, l->count, l->taps);
        else dlerror();
        int err = l->found ? kp_hook_add_taps(l->taps, l->found) : 0;
        l->is_done = (l->found || handle) && err != -EBUSY; /* else the next call tries again */
        if (err && err != -EBUSY)
            kp_log(1, "captures of CUDA graphs through %s are not recorded: its slots could not be changed (%s)",
                   l->stem, kp_log_error_text(err));
    }
}

// SPDX-License-Identifier: Apache-2.0
/*
 * runtime.c - taps on libcudart
 *
 * Called by: any host thread in place of the runtime's functions (hot); cuda_hooks_source.c (installing)
 * Owns:      the pointers to the real functions
 * Locks:     none
 * On fail:   the real function is called and nothing else
 * Safe in:   after fork yes (the gate reads 0 in a child)
 */
#include <dlfcn.h>
#include <string.h>

#include "collector/base/kp_gate.h"
#include "preload/cuda_hooks/tap.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

struct kp_copy3d { /* cudaMemcpy3DParms */
    void *source_array;
    size_t source_place[3];
    struct {
        void *at;
        size_t pitch, width, height;
    } source;
    void *target_array;
    size_t target_place[3];
    struct {
        void *at;
        size_t pitch, width, height;
    } target;
    size_t width, height, depth;
    int kind;
};

/* cudaMemcpyKind: 0 host to host, 1 host to device, 2 device to host, 3 device to device, 4 by place. */
static inline uint8_t kind_of(int kind)
{
    static const uint8_t kinds[] = {KIND_HTOH, KIND_HTOD, KIND_DTOH, KIND_DTOD, KIND_BY_PLACE};
    return (unsigned)kind < sizeof kinds ? kinds[kind] : KIND_BY_PLACE;
}
#define KIND_OF(k) kind_of(k)
#define COPY_3D(c, blocks) \
    ((c) ? COPY_AS((c)->target.at, (c)->source.at, (c)->width * (c)->height * (c)->depth, (c)->kind, blocks) : NOTHING)
/* A symbol is no address, so the kind of a cudaMemcpyDefault depends on the other end alone. */
#define COPY_SYMBOL(d, p, n, k, blocks) COPY_AS(d, p, n, (k) == 4 ? ((d) ? 2 : 1) : (k), blocks)
#define COPY_PEER(n, from, to, blocks)                   \
    ((struct kp_work){.kind = KP_KIND_MEMCPY,            \
                      .is_peer = 1,                      \
                      .bytes = (n),                      \
                      .source_device = (uint32_t)(from), \
                      .target_device = (uint32_t)(to),   \
                      .is_async = !(blocks),             \
                      .is_blocking = (blocks)})

#define KP_TAP(...) KP_TAP_DEFINE(false, __VA_ARGS__)
#include "preload/cuda_hooks/runtime.def"
#undef KP_TAP

/* ---- calls that are not recorded: they register names or destroy contexts ---- */

static int (*real_reset)(void);
static int tap_reset(void)
{
    if (kp_gate_get() & KP_GATE_ON) kp_contexts_forget();
    return real_reset();
}

static int (*real_get_kernel)(void **, const void *);
static int tap_get_kernel(void **kernel, const void *function)
{
    int result = real_get_kernel(kernel, function);
    if (result == 0 && (kp_gate_get() & KP_GATE_ON)) kp_kernel_link(*kernel, function);
    return result;
}

static void (*real_register)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
static void tap_register(void **handle, const char *function, char *device_function, const char *name, int threads,
                         void *tid, void *bid, void *block, void *grid, int *warp_size)
{
    real_register(handle, function, device_function, name, threads, tid, bid, block, grid, warp_size);
    if (kp_gate_get() & KP_GATE_ON) kp_kernel_register(function, name);
}

#define KP_TAP(symbol, ...) KP_TAP_ROW(#symbol, symbol),
static const struct kp_tap_row rows[] = {
#include "preload/cuda_hooks/runtime.def"
    KP_TAP_ROW("cudaDeviceReset", reset),
    KP_TAP_ROW("__cudaGetKernel", get_kernel),
};
#undef KP_TAP
static struct kp_tap taps[sizeof rows / sizeof *rows];

int kp_runtime_tap(void *library) { return kp_rows_tap(library, rows, sizeof rows / sizeof *rows, taps); }

/* Taps registration, which runs when a library is loaded, before the backend is decided. Only for a runtime without
 * another way to names. */
int kp_runtime_tap_registration(void *library)
{
    static struct kp_tap tap = {"__cudaRegisterFunction", NULL, (void *)(uintptr_t)tap_register};
    if (tap.real || dlsym(library, "cudaFuncGetName")) return 0;
    tap.real = dlsym(library, tap.symbol);
    if (!tap.real) return 0;
    memcpy(&real_register, &tap.real, sizeof tap.real);
    return kp_hook_add_taps(&tap, 1);
}

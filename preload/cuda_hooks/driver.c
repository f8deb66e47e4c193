// SPDX-License-Identifier: Apache-2.0
/*
 * driver.c - taps on libcuda, for programs that call it through GOT slots (calls by dlsym pointers are not seen)
 *
 * Called by: any host thread in place of the driver's functions (hot); cuda_hooks_source.c (installing)
 * Owns:      the pointers to the real functions
 * Locks:     none
 * On fail:   the real function is called and nothing else
 * Safe in:   after fork yes (the gate reads 0 in a child)
 */
#include "collector/base/kp_gate.h"
#include "preload/cuda_hooks/tap.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

#define G3 ((D3){gx, gy, gz})
#define B3 ((D3){bx, by, bz})
#define AT(address) ((const void *)(uintptr_t)(address))
#define KIND_OF(k) (k)

#define KP_TAP(...) KP_TAP_DEFINE(true, __VA_ARGS__)
#include "preload/cuda_hooks/driver.def"
#undef KP_TAP

static int (*real_destroy)(void *);
static int tap_destroy(void *context)
{
    if (kp_gate_get() & KP_GATE_ON) kp_contexts_forget();
    return real_destroy(context);
}

static int (*real_primary_reset)(int);
static int tap_primary_reset(int device)
{
    if (kp_gate_get() & KP_GATE_ON) kp_contexts_forget();
    return real_primary_reset(device);
}

static int (*real_primary_release)(int);
static int tap_primary_release(int device)
{
    if (kp_gate_get() & KP_GATE_ON) kp_contexts_forget();
    return real_primary_release(device);
}

#define KP_TAP(symbol, ...) KP_TAP_ROW(#symbol, symbol),
static const struct kp_tap_row rows[] = {
#include "preload/cuda_hooks/driver.def"
    KP_TAP_ROW("cuCtxDestroy_v2", destroy),
    KP_TAP_ROW("cuDevicePrimaryCtxReset_v2", primary_reset),
    KP_TAP_ROW("cuDevicePrimaryCtxRelease_v2", primary_release),
};
#undef KP_TAP
static struct kp_tap taps[sizeof rows / sizeof *rows];

int kp_driver_tap(void *library) { return kp_rows_tap(library, rows, sizeof rows / sizeof *rows, taps); }

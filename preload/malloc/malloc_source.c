// SPDX-License-Identifier: Apache-2.0
/*
 * malloc_source.c - the allocator as a source: finds it and installs the taps
 *
 * Called by: boot.c through source.h
 * Owns:      the two sets of taps; they are never removed and pass calls through while no window records
 * Locks:     none
 * On fail:   the heap is not recorded; one line says why
 * Safe in:   after fork yes (the gate reads 0 in a child; with KPROF_CHILDREN=1 its first allocation begins a run)
 *
 * With KPROF_MALLOC=0 nothing is installed. Else the source attaches in the constructor, so a program without torch
 * has a run too. The allocator is the first module in the loader's search order that defines malloc: glibc, another
 * library or the program. Every tapped function is defined in that module. The taps take calls from all other modules,
 * libc and the loader included, but not the module's own calls. So each allocation is recorded once: libstdc++'s
 * operator new calls malloc and is not tapped, and an allocator's operator new makes no tapped call.
 */
#include <stdint.h>

#include "collector/base/kp_config.h"
#include "collector/base/kp_log.h"
#include "preload/malloc/malloc.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

static struct kp_tap taps[KP_HEAP_TAPS_MAX], map_taps[KP_HEAP_TAPS_MAX];
static uint32_t mode = KP_HEAP_OFF;
static bool is_refused;

static void setup(const struct kp_config *config)
{
    mode = config->heap;
    kp_heap_is_traced = mode == KP_HEAP_TRACE;
    kp_heap_has_python = kp_heap_is_traced && !(config->with_stack & KP_STACK_NONE);
    if (kp_heap_is_traced) kp_unwind_setup();
}

static bool refuse(const char *why)
{
    is_refused = true;
    kp_log(0, "KPROF_MALLOC: %s: allocations are not recorded", why);
    return false;
}

static void install_map_taps(void)
{
    const uint32_t n = kp_heap_map_taps_make(map_taps);
    if (n && kp_hook_add_taps(map_taps, n) != 0)
        KP_LOG_ONCE(0, "mmap could not be hooked: memory that the program maps is not recorded");
}

static bool attach(void)
{
    uintptr_t module;
    if (mode == KP_HEAP_OFF || is_refused) return false;
    const uint32_t n = kp_heap_taps_make(taps, &module);
    if (!n) return refuse("no malloc was found in this program");
    if (kp_heap_put_setup() != 0) return refuse("no memory");
    const int err = kp_hook_add_taps_common(taps, n);
    if (err) return refuse("the calls of malloc could not be hooked");
    kp_hook_tap_loader(taps, n);
    if (kp_hook_answer(taps, n) < n) kp_hook_early();
    if (kp_heap_is_traced) {
        install_map_taps();
        kp_unwind_modules_changed();
    }
    return true;
}

static void modules_changed(void)
{
    if (kp_heap_is_traced) kp_unwind_modules_changed();
}

static void forget(void)
{
    if (mode == KP_HEAP_OFF || is_refused) return;
    kp_heap_put_forget();
    kp_gate_set(kp_gate_get() | KP_GATE_CHILD_PENDING);
}

const struct kp_source kp_heap_source = {
    .name = "heap",
    .setup = setup,
    .attach = attach,
    .modules_changed = modules_changed,
    .forget = forget,
    .starts_active = true,
};

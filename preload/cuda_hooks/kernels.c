// SPDX-License-Identifier: Apache-2.0
/*
 * kernels.c - names of kernels and their registers and memory, from the handle that a launch was given
 *
 * Called by: call.c, outside a hook, after a launch succeeded: find each time (hot), ask once a kernel
 * Owns:      the table of kernels, by host function, kernel handle or CUfunction
 * Locks:     none; an entry is published by one compare-and-swap, its facts by its state
 * Memory:    640 KB, mapped at the first kernel; the texts stay in their library
 * On fail:   the loader's symbol of the host function, or library+offset
 */
#include <dlfcn.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_log.h"
#include "preload/cuda_hooks/cuda_hooks.h"
#include "collector/base/kp_poison.h"

enum { ENTRIES = 16384, PROBES = 64 };
enum { STATIC_SMEM = 1, LOCAL = 3, REGISTERS = 4 }; /* CUfunction_attribute */

static _Atomic(struct kp_kernel *) kernels;

static struct kp_kernel *table_get(void)
{
    struct kp_kernel *have = kp_load_acquire(&kernels); /* pairs with: the exchange below */
    if (have) return have;
    const size_t bytes = ENTRIES * sizeof *have;
    struct kp_kernel *const made = kp_map_alloc(bytes);
    if (!made || kp_cas_acq_rel(&kernels, &have, made)) return made;
    kp_map_free(made, bytes); /* another thread was first */
    return have;
}

struct kp_kernel *kp_kernel_find(const void *key)
{
    struct kp_kernel *const table = table_get();
    uint64_t k = (uint64_t)(uintptr_t)key;
    uint32_t at = (uint32_t)((k >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    for (uint32_t i = 0; table && i < PROBES; i++) {
        struct kp_kernel *e = &table[(at + i) % ENTRIES];
        const void *seen = kp_load_acquire(&e->key); /* pairs with: the exchange below */
        if (seen == key) return e;
        if (!seen && (kp_cas_acq_rel(&e->key, &seen, key) || seen == key)) return e;
    }
    return NULL;
}

/* The newest name wins: a library may be loaded where another was. */
void kp_kernel_register(const void *function, const char *name)
{
    struct kp_kernel *e = kp_kernel_find(function);
    if (!e) return;
    kp_store_release(&e->name, name); /* pairs with: kp_kernel_ask */
    kp_store_release(&e->is_known, false);
}

void kp_kernel_link(const void *kernel, const void *function)
{
    struct kp_kernel *e = kp_kernel_find(kernel);
    if (e) kp_store_release(&e->function, function); /* pairs with: kp_kernel_ask */
}

static void facts_get(struct kp_kernel *e, void *cufunction)
{
    int value;
    if (!kp_cudrv.cuFuncGetAttribute) return;
    if (kp_cudrv.cuFuncGetAttribute(&value, REGISTERS, cufunction) == 0) e->registers = (uint32_t)value;
    if (kp_cudrv.cuFuncGetAttribute(&value, STATIC_SMEM, cufunction) == 0) e->static_smem = (uint32_t)value;
    if (kp_cudrv.cuFuncGetAttribute(&value, LOCAL, cufunction) == 0) e->local = (uint32_t)value;
}

/*
 * Asks the runtime for the name, without changing the error that cudaGetLastError returns to the host. While there is
 * an error it asks nothing; an error of its own call it clears. false: the runtime could not be asked now.
 */
static bool by_runtime(struct kp_kernel *e, const void *function, const char **name)
{
    void *handle = NULL;
    if (!kp_cudart.cudaPeekAtLastError || !kp_cudart.cudaGetLastError) return true;
    if (kp_cudart.cudaPeekAtLastError() != 0) return false;
    int err = kp_cudart.cudaGetFuncBySymbol ? kp_cudart.cudaGetFuncBySymbol(&handle, function) : 0;
    if (!err && handle) facts_get(e, handle);
    if (!*name && kp_cudart.cudaFuncGetName) err |= kp_cudart.cudaFuncGetName(name, function);
    else if (!*name && handle && kp_cudrv.cuFuncGetName) (void)kp_cudrv.cuFuncGetName(name, handle);
    if (err) (void)kp_cudart.cudaGetLastError(); /* clears our error: there was none before */
    return true;
}

static void by_driver(struct kp_kernel *e, enum kp_name_by by, const void *handle, const char **name)
{
    void *h = (void *)(uintptr_t)handle, *function = h;
    if (by == KP_BY_CUFUNCTION && kp_cudrv.cuFuncGetName && kp_cudrv.cuFuncGetName(name, h) == 0) {
        facts_get(e, h);
        return;
    }
    *name = NULL;
    if (kp_cudrv.cuKernelGetName && kp_cudrv.cuKernelGetName(name, h) != 0) *name = NULL;
    if (*name && kp_cudrv.cuKernelGetFunction && kp_cudrv.cuKernelGetFunction(&function, h) == 0)
        facts_get(e, function);
}

static const char *by_place(const void *function, char *room, size_t room_bytes)
{
    Dl_info info;
    if (!dladdr(function, &info)) return NULL;
    const char *file = strrchr(info.dli_fname, '/');
    if (info.dli_sname && info.dli_saddr == function) kp_fmt(room, room_bytes, "%s", info.dli_sname);
    else
        kp_fmt(room, room_bytes, "%s+0x%lx", file ? file + 1 : info.dli_fname,
               (unsigned long)((uintptr_t)function - (uintptr_t)info.dli_fbase));
    return room;
}

const char *kp_kernel_ask(struct kp_kernel *e, enum kp_name_by by, char *room, size_t room_bytes)
{
    const void *function = kp_load_relaxed(&e->key);
    const char *name = kp_load_acquire(&e->name); /* pairs with: kp_kernel_register */
    bool is_known = true;
    if (by != KP_BY_FUNCTION) {
        by_driver(e, by, function, &name);
        if (!name) function = kp_load_acquire(&e->function); /* pairs with: kp_kernel_link */
    }
    if (function && (by == KP_BY_FUNCTION || !name)) is_known = by_runtime(e, function, &name);
    if (name) kp_store_release(&e->name, name);
    /* the driver's functions are not found yet: ask again */
    if (!kp_load_acquire(&kp_cudrv.is_filled)) is_known = false;
    kp_store_release(&e->is_known, is_known); /* pairs with: call.c:kernel_get */
    return name || !function ? name : by_place(function, room, room_bytes);
}

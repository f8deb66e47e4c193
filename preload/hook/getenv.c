// SPDX-License-Identifier: Apache-2.0
/*
 * getenv.c - gives NVTX and the CUDA driver this library's path, without setting an environment variable
 *
 * Called by: boot.c (constructor); any host thread that calls getenv or secure_getenv
 * Owns:      the taps on getenv and secure_getenv
 * Locks:     none; dladdr takes the loader's, only when the driver's variable is asked for
 * On fail:   no tap: no NVTX ranges, and the driver is noticed later
 * Safe in:   after fork: a child's gate is shut, so the taps return the environment's value
 *
 * NVTX and the driver load a tool by a path in an environment variable. If we set these variables, the host would see
 * them, and so would each program it starts, even one that is started without LD_PRELOAD. So the variables stay unset,
 * and the taps return this library's path where the host has set nothing (decisions/013).
 */
#include "preload/hook/getenv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "collector/base/kp_gate.h"
#include "preload/hook/hook.h"
#include "collector/base/kp_poison.h"

typedef char *(*ask_fn)(const char *name);

static ask_fn real_get, real_secure_get;
static char *own_path; /* the loader's path, so that dlopen finds the mapped library even after the host's chdir */

/* Kineto in libtorch_cpu also reads the variable, and changes its behaviour if it is set. Only the driver gets it. */
static __attribute__((noinline)) bool is_driver(void *caller)
{
    int saved = errno;
    Dl_info info;
    const char *file = dladdr(caller, &info) ? strrchr(info.dli_fname, '/') : NULL;
    errno = saved;
    return file && strncmp(file, "/libcuda.so", 11) == 0;
}

static char *answer(const char *name, char *value, void *caller)
{
    if (value || !name || !(kp_gate_get() & KP_GATE_ON)) return value;
    if (name[0] == 'N' && strcmp(name, "NVTX_INJECTION64_PATH") == 0) return own_path;
    if (name[0] == 'C' && strcmp(name, "CUDA_INJECTION64_PATH") == 0 && is_driver(caller)) return own_path;
    return value;
}

static char *tap_get(const char *name) { return answer(name, real_get(name), __builtin_return_address(0)); }

static char *tap_secure_get(const char *name)
{
    return answer(name, real_secure_get(name), __builtin_return_address(0));
}

enum { MORE_MOST = 4 };
static const struct kp_tap_row own_rows[] = {
    KP_TAP_ROW("getenv", get),
    KP_TAP_ROW("secure_getenv", secure_get),
};
static struct kp_tap taps[sizeof own_rows / sizeof *own_rows + MORE_MOST];
static uint32_t tap_count;

static int find(const struct kp_tap_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *real = dlsym(RTLD_DEFAULT, rows[i].symbol);
        if (!real) return -ENOENT;
        *rows[i].real = real;
        taps[tap_count++] = (struct kp_tap){rows[i].symbol, real, rows[i].tap};
    }
    return 0;
}

int kp_getenv_start(bool answers, const struct kp_tap_row *more, uint32_t count)
{
    Dl_info self;
    int err = count <= MORE_MOST ? find(more, count) : -ENOSPC;
    if (!err && answers && (!dladdr((void *)(uintptr_t)kp_getenv_start, &self) || !self.dli_fname[0])) err = -ENOENT;
    if (!err && answers) err = find(own_rows, sizeof own_rows / sizeof *own_rows);
    if (err) return err;
    if (answers) own_path = (char *)(uintptr_t)self.dli_fname;
    return kp_hook_add_taps(taps, tap_count);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * callnames.c - the names of CUDA calls by CUPTI's numbers, and which calls are recorded
 *
 * Called by: control.c (fill, once), lane.c (look-ups, hot)
 * Owns:      kp_calls, one entry a call; all but `id` is constant once filled
 * On fail:   a runtime call whose name CUPTI does not give is recorded without one
 *
 * Noise is not recorded: the runtime calls that torch.profiler leaves out too, which are frequent and tell little. Only
 * launches and the virtual-memory calls of the driver's calls are kept.
 */
#include <string.h>

#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { RUNTIME_DOMAIN = 2, DRIVER_DOMAIN = 1, VERSION_DIGITS = 4 };

struct kp_cupti_call kp_calls[2][KP_CALLS];

size_t kp_call_length(const char *name)
{
    size_t len = strlen(name), digits = 0;
    while (digits < len && name[len - 1 - digits] >= '0' && name[len - 1 - digits] <= '9') digits++;
    if (digits < VERSION_DIGITS || len < digits + 2) return len; /* cuMemAlloc_v2 is a function's real name */
    return memcmp(name + len - digits - 2, "_v", 2) == 0 ? len - digits - 2 : len;
}

static bool is_one_of(const char *const *list, const char *name, size_t len)
{
    for (; *list; list++)
        if (strlen(*list) == len && memcmp(*list, name, len) == 0) return true;
    return false;
}

static bool begins(const char *name, size_t len, const char *with)
{
    size_t n = strlen(with);
    return len >= n && memcmp(name, with, n) == 0;
}

uint32_t kp_call_sort(bool is_driver, const char *name, size_t len)
{
    static const char *const noise[] = {"cudaGetDevice",
                                        "cudaSetDevice",
                                        "cudaGetLastError",
                                        "cudaEventCreate",
                                        "cudaEventCreateWithFlags",
                                        "cudaEventDestroy",
                                        NULL};
    static const char *const driver[] = {"cuMemCreate",
                                         "cuMemMap",
                                         "cuMemUnmap",
                                         "cuMemRelease",
                                         "cuMemExportToShareableHandle",
                                         "cuMemImportFromShareableHandle",
                                         NULL};
    /* stubs of nvcc 13 call __cudaLaunchKernel */
    static const char *const launches[] = {"cudaLaunchKernel",
                                           "__cudaLaunchKernel",
                                           "cudaLaunchKernelExC",
                                           "cudaLaunchCooperativeKernel",
                                           "cuLaunchKernel",
                                           "cuLaunchKernelEx",
                                           NULL};
    size_t bare = len > 5 && memcmp(name + len - 5, "_ptsz", 5) == 0 ? len - 5 : len;
    if (is_one_of(launches, name, bare)) return KP_CALL_LAUNCH;
    if (is_driver) return is_one_of(driver, name, len) ? 0 : KP_CALL_NOISE;
    /* whether the GPU is done: no sign that the program goes on */
    if (begins(name, len, "cudaEventQuery") || begins(name, len, "cudaStreamQuery")) return KP_CALL_ASKS;
    if (begins(name, len, "cudaStreamBeginCapture")) return KP_CALL_CAPTURE_BEGINS;
    if (begins(name, len, "cudaStreamEndCapture")) return KP_CALL_CAPTURE_ENDS;
    return is_one_of(noise, name, len) ? KP_CALL_NOISE : 0;
}

void kp_calls_fill(void)
{
    for (int driver = 0; driver < 2; driver++)
        for (uint32_t cbid = 1; cbid < KP_CALLS; cbid++) {
            struct kp_cupti_call *call = &kp_calls[driver][cbid];
            const char *name = NULL;
            if (call->name) continue;
            if (kp_cupti.get_callback_name(driver ? DRIVER_DOMAIN : RUNTIME_DOMAIN, cbid, &name) != 0 || !name) {
                call->what = driver ? KP_CALL_NOISE : 0;
                continue;
            }
            call->len = (uint16_t)kp_call_length(name);
            call->what = (uint16_t)kp_call_sort(driver, name, call->len);
            call->name = name;
        }
}

// SPDX-License-Identifier: Apache-2.0
/*
 * other_tool.c - finds the name of the tool that has CUPTI, when CUPTI refused us
 *
 * Called by: control.c, after CUPTI refused us
 * Memory:    none; the name goes into the caller's buffer
 * On fail:   "another profiler"
 *
 * From CUDA 13.0 on a failed cuptiSubscribe names the tool that is subscribed. If it succeeds after all, it is undone
 * at once. Older versions name no tool: then the environment variables that profilers' launchers set are read.
 */
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_log.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { NAME_BYTES = 64 };

/* The parameters of cuptiSubscribe_v2 as of 13.0; `size` tells later releases apart. */
struct subscriber_params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
};

static void on_call(void *data, int domain, uint32_t cbid, const void *info)
{
    (void)data, (void)domain, (void)cbid, (void)info; /* never enabled */
}

static bool holder(char name[NAME_BYTES])
{
    struct subscriber_params params = {sizeof params, "libkprof", name, NAME_BYTES};
    void *seat = NULL;
    if (!kp_cupti.subscribe_v2 || !kp_cupti.unsubscribe || !kp_watchdog_call_begins()) return false;
    if (kp_cupti.subscribe_v2(&seat, on_call, NULL, &params) == 0 && seat) (void)kp_cupti.unsubscribe(seat);
    kp_watchdog_call_ends();
    name[NAME_BYTES - 1] = 0;
    return name[0] != 0;
}

static bool is_setting(const char *entry, const char *name) { return strncmp(entry, name, strlen(name)) == 0; }

/* Skips injection variables that name this library. */
static const char *tool_in(char *const *environment)
{
    for (char *const *e = environment; e && *e; e++) {
        if (is_setting(*e, "NSYS_")) return "Nsight Systems";
        if (is_setting(*e, "NV_COMPUTE_PROFILER")) return *e;
        if ((is_setting(*e, "CUDA_INJECTION64_PATH=") || is_setting(*e, "NVTX_INJECTION64_PATH=")) &&
            !strstr(*e, "/libkprof"))
            return *e;
    }
    return "another profiler";
}

void kp_other_tool(char *out, size_t bytes)
{
    char name[NAME_BYTES] = "";
    kp_fmt(out, bytes, "%s", holder(name) ? name : tool_in(environ));
}

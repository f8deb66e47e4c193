// SPDX-License-Identifier: Apache-2.0
/*
 * exports.c - every name that this libcudart exports; those that nobody wrote here answer "not supported" and are
 * logged
 *
 * The stand-ins are weak: where another file defines the function, that one is linked.
 */
#include "test/doubles/simgpu/cudart/rt.h"

enum { V11 = 1, V12 = 2, V13 = 4 };

static int unmodelled(const char *name)
{
    struct simgpu_call call = {.domain = SIMGPU_RUNTIME, .cbid = sim_cbid_find(SIMGPU_RUNTIME, name)};
    if (rt_core() == NULL) return rt_without_driver(name);
    rt_core()->note("unmodelled", name);
    if (call.cbid == 0) return RT_NOT_SUPPORTED;
    call.name = sim_cbid_name(SIMGPU_RUNTIME, call.cbid);
    int error = rt_begin(&call, RT_DRIVER);
    return rt_end(&call, error ? error : RT_NOT_SUPPORTED);
}

#define SIM_EXPORT(name, versions)           \
    __attribute__((weak)) RT_API name(void); \
    __attribute__((weak)) RT_API name(void) { return unmodelled(#name); }
#include "test/doubles/simgpu/cudart_exports.def"
#undef SIM_EXPORT

// SPDX-License-Identifier: Apache-2.0
/*
 * exports.c - every name that libcuda.so.1 exports; those that nobody wrote here answer "not supported" and are logged
 *
 * The stand-ins are weak: where another file defines the function, that one is linked.
 */
#include <string.h>

#include "test/doubles/simgpu/cuda/cu.h"

static int unmodelled(const char *name)
{
    sim_truth_note("unmodelled", name);
    return SIM_NOT_SUPPORTED;
}

#define SIM_EXPORT(name)                                         \
    int name(void) __attribute__((weak, visibility("default"))); \
    int name(void) { return unmodelled(#name); }
#include "test/doubles/simgpu/cuda_exports.def"
#undef SIM_EXPORT

/* Sorted by name, as the table is. */
static const struct cu_export exports[] = {
#define SIM_EXPORT(name) {#name, (void *)name},
#include "test/doubles/simgpu/cuda_exports.def"
#undef SIM_EXPORT
};

void *cu_export_find(const char *name)
{
    size_t low = 0, high = sizeof exports / sizeof *exports;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(name, exports[mid].name);
        if (order == 0) return exports[mid].fn;
        if (order < 0) high = mid;
        else low = mid + 1;
    }
    return NULL;
}

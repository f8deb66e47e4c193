// SPDX-License-Identifier: Apache-2.0
/* fault.c - SIMGPU_FAIL and SIMGPU_HANG: the n-th call fails, the n-th kernel breaks its context or never ends */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/core/core.h"

enum { MAX_FAULTS = 16 };
static struct fault {
    char name[64];
    uint64_t at;
    int error;
    _Atomic uint64_t seen;
} faults[MAX_FAULTS];
static int fault_count;
static _Atomic uint64_t kernels;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int default_error(const char *name)
{
    return strcmp(name, "kernel") == 0 ? SIM_ILLEGAL_ADDRESS : SIM_OUT_OF_MEMORY;
}

static void parse(void)
{
    const char *text = sim_settings()->fail;
    while (text != NULL && *text && fault_count < MAX_FAULTS) {
        size_t length = strcspn(text, ":,");
        struct fault *f = &faults[fault_count];
        if (length > 0 && length < sizeof f->name) {
            memcpy(f->name, text, length);
            char *end = (char *)text + length;
            f->at = *end == ':' ? strtoull(end + 1, &end, 10) : 1;
            f->error = *end == ':' ? (int)strtol(end + 1, &end, 10) : default_error(f->name);
            fault_count++;
        }
        text += strcspn(text, ",");
        if (*text == ',') text++;
    }
}

/* "cudaMalloc" names the callback "cudaMalloc_v3020" too. */
static bool is_same(const char *asked, const char *name)
{
    size_t length = strlen(asked);
    if (strncmp(asked, name, length) != 0) return false;
    const char *rest = name + length;
    return *rest == '\0' || (rest[0] == '_' && rest[1] == 'v' && strspn(rest + 2, "0123456789") >= 4);
}

int sim_fault_of_call(const char *name)
{
    pthread_once(&once, parse);
    for (int i = 0; i < fault_count; i++)
        if (is_same(faults[i].name, name) && atomic_fetch_add(&faults[i].seen, 1) + 1 == faults[i].at)
            return faults[i].error;
    return 0;
}

int sim_fault_of_kernel(bool *is_hanging)
{
    uint64_t n = atomic_fetch_add(&kernels, 1) + 1;
    *is_hanging = n == sim_settings()->hang_at;
    return sim_fault_of_call("kernel");
}

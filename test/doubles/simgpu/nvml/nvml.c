// SPDX-License-Identifier: Apache-2.0
/*
 * nvml.c - libnvidia-ml.so.1: the little that PyTorch asks before it maps memory or counts devices
 *
 * The same settings as the driver's (SIMGPU_DEVICES, ...): it works before any CUDA call, as the real one does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/doubles/simgpu/core/settings.h"

#define NVML_API __attribute__((visibility("default"))) int

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };

/* A handle is the address of its device's number. */
static int numbers[16];

static bool has_driver(void) { return !sim_settings()->is_stub; }
static int count(void) { return sim_settings()->has_no_device ? 0 : sim_settings()->devices; }

NVML_API nvmlInit_v2(void) { return has_driver() ? OK : DRIVER_NOT_LOADED; }
NVML_API nvmlInit(void) { return nvmlInit_v2(); }
NVML_API nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return nvmlInit_v2();
}
NVML_API nvmlShutdown(void) { return OK; }

NVML_API nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = sim_settings()->driver_version;
    return OK;
}

NVML_API nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    snprintf(text, length, "999.00");
    return OK;
}

NVML_API nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = (unsigned)count();
    return OK;
}

NVML_API nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    if (index >= (unsigned)count()) return INVALID_ARGUMENT;
    numbers[index] = (int)index;
    *handle = &numbers[index];
    return OK;
}

/* The bus number is the device's plus one, as cuDeviceGetPCIBusId has it. */
NVML_API nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **handle)
{
    unsigned domain, bus;
    if (sscanf(id, "%x:%x", &domain, &bus) != 2 || bus == 0) return INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, handle) == OK ? OK : NOT_FOUND;
}

NVML_API nvmlDeviceGetIndex(const int *handle, unsigned *index)
{
    *index = (unsigned)*handle;
    return OK;
}

NVML_API nvmlDeviceGetUUID(const int *handle, char *text, unsigned length)
{
    snprintf(text, length, "GPU-73696d75-6c61-7465-6420-6770752020%02x", (unsigned)*handle);
    return OK;
}

NVML_API nvmlDeviceGetName(const int *handle, char *text, unsigned length)
{
    (void)handle;
    snprintf(text, length, "NVIDIA H100 80GB HBM3 (simulated)");
    return OK;
}

struct memory {
    unsigned long long total, free, used;
};

NVML_API nvmlDeviceGetMemoryInfo(const int *handle, struct memory *memory)
{
    (void)handle;
    *memory = (struct memory){sim_settings()->memory_bytes, sim_settings()->memory_bytes, 0};
    return OK;
}

NVML_API nvmlDeviceGetComputeRunningProcesses_v3(const int *handle, unsigned *n, void *processes)
{
    (void)handle, (void)processes;
    *n = 0;
    return OK;
}

NVML_API nvmlDeviceGetComputeRunningProcesses(const int *handle, unsigned *n, void *processes)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(handle, n, processes);
}

/* No fabric and no links: the caller takes the plain way. */
NVML_API nvmlDeviceGetGpuFabricInfoV(const int *handle, void *info)
{
    (void)handle, (void)info;
    return NOT_SUPPORTED;
}

NVML_API nvmlDeviceGetNvLinkRemoteDeviceType(const int *handle, unsigned link, void *type)
{
    (void)handle, (void)link, (void)type;
    return NOT_SUPPORTED;
}

NVML_API nvmlDeviceGetNvLinkRemotePciInfo_v2(const int *handle, unsigned link, void *pci)
{
    (void)handle, (void)link, (void)pci;
    return NOT_SUPPORTED;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int error)
{
    return error == OK ? "Success" : error == NOT_SUPPORTED ? "Not Supported" : "error of the simulated NVML";
}

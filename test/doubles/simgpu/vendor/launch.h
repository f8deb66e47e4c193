// SPDX-License-Identifier: Apache-2.0
/*
 * launch.h - how the doubles of cuBLAS, cuDNN and NCCL put work on the simulated GPU
 *
 * The real ones carry a static cudart: they reach the driver through dlopen and dlsym, so no symbol that a preloaded
 * library exports is ever called, and only CUPTI sees their launches. Here likewise: libcuda.so.1 is opened and asked
 * for simgpu_core (runtime calls are bracketed as cudart does it) and cuLaunchKernel(Ex).
 */
#pragma once

#include "test/doubles/simgpu/simgpu.h"

#define SIM_EXPORT __attribute__((visibility("default")))

struct sim_launch {
    const char *kernel; /* mangled, lives as long as the process */
    uint32_t grid[3], block[3], dynamic_smem;
    void *stream;
    bool is_driver;            /* cuLaunchKernelEx without a runtime call around it, as cublasLt does */
    void (*before)(void *arg); /* or NULL: between the call's beginning and the launch */
    void *arg;
};

const struct simgpu_core *sim_core(void);               /* NULL: no simulated GPU in this process */
void *sim_driver(const char *symbol);                   /* of libcuda.so.1; NULL: not there */
int sim_vendor_launch(const struct sim_launch *launch); /* 0, or a CUDA error number */
uint32_t sim_tiles(int64_t items, int64_t per_tile);    /* at least 1 */

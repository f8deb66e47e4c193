// SPDX-License-Identifier: Apache-2.0
/* cbids.h - CUPTI's number and name of each call (cbids.def): SIM_CBID_cuLaunchKernel, SIM_CBID_cudaMalloc */
#pragma once

#include <stdint.h>

enum sim_cbid {
#define SIM_DRIVER(number, key, name) SIM_CBID_##key = number,
#define SIM_RUNTIME(number, key, name) SIM_CBID_##key = number,
#include "test/doubles/simgpu/cbids.def"
#undef SIM_DRIVER
#undef SIM_RUNTIME
};

/* NULL: no such callback. domain: enum simgpu_domain */
const char *sim_cbid_name(int domain, uint32_t cbid);
/* 0: CUPTI does not report this call. name: as exported ("cudaMalloc") */
uint32_t sim_cbid_find(int domain, const char *name);

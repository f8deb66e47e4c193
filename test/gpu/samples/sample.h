// SPDX-License-Identifier: Apache-2.0
/*
 * sample.h - what the CUDA samples share: checks of results, and the count of what each did
 *
 * A sample ends with one line, "NAME kernels=N memcpys=N memsets=N", that a trace of it must agree with. With --check
 * it also verifies the numbers (a real GPU computes; the simulated one does not).
 */
#pragma once

#include <atomic>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static std::atomic<int> sample_kernels, sample_memcpys, sample_memsets;

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)

static inline bool sample_has_check(int argc, char **argv) { return argc > 1 && strcmp(argv[1], "--check") == 0; }

static inline void sample_expect(bool is_good, const char *what)
{
    if (is_good) return;
    fprintf(stderr, "wrong result: %s\n", what);
    exit(1);
}

static inline int sample_end(const char *name)
{
    printf("%s kernels=%d memcpys=%d memsets=%d\n", name, sample_kernels.load(), sample_memcpys.load(),
           sample_memsets.load());
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* runtime.h - the CUDA runtime's calls that both programs here use, declared by hand as nvcc's code has them */
#include <stddef.h>

typedef struct {
    unsigned x, y, z;
} dim3;
typedef struct {
    int magic, version;
    const void *data;
    void *unused;
} fatbin_t;

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaMalloc(void **, size_t), cudaDeviceSynchronize(void);

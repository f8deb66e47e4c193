// SPDX-License-Identifier: Apache-2.0
/* managed.cu - unified memory: written by the host, by a kernel, read by the host again (no more than 1 MB of it) */
#include "sample.h"

enum { N = 1 << 16 };

__global__ void square(int n, float *a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] *= a[i];
}

int main(int argc, char **argv)
{
    float *a;
    CHECK(cudaMallocManaged(&a, N * sizeof *a, cudaMemAttachGlobal));
    for (int i = 0; i < N; i++)
        a[i] = 3;
    for (int i = 0; i < 2; i++, sample_kernels++)
        square<<<N / 256, 256>>>(N, a);
    CHECK(cudaDeviceSynchronize());
    if (sample_has_check(argc, argv))
        sample_expect(a[0] == 81 && a[N - 1] == 81, "a");
    CHECK(cudaFree(a));
    return sample_end("managed");
}

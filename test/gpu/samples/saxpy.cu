// SPDX-License-Identifier: Apache-2.0
/* saxpy.cu - the smallest program: copy in, fill, a kernel a few times, copy out */
#include "sample.h"

enum { N = 1 << 16, TIMES = 5 };

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

int main(int argc, char **argv)
{
    static float host[N];
    for (int i = 0; i < N; i++)
        host[i] = 1;
    float *x, *y;
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&y, sizeof host));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(y, 0, sizeof host));
    sample_memsets++;
    for (int i = 0; i < TIMES; i++, sample_kernels++)
        saxpy<<<(N + 255) / 256, 256>>>(N, 2, x, y);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
    sample_memcpys += 2;
    if (sample_has_check(argc, argv))
        sample_expect(host[0] == 2 * TIMES && host[N - 1] == 2 * TIMES, "y");
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    return sample_end("saxpy");
}

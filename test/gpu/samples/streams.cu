// SPDX-License-Identifier: Apache-2.0
/* streams.cu - two streams, one waits for an event of the other; asynchronous copies from pinned memory; elapsed times */
#include "sample.h"

enum { N = 1 << 18, ROUNDS = 4 };

__global__ void produce(int n, float *a, float value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = value;
}

__global__ void consume(int n, const float *a, float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        b[i] += a[i];
}

int main(int argc, char **argv)
{
    size_t bytes = N * sizeof(float);
    cudaStream_t first, second;
    cudaEvent_t ready, begin, end;
    float *a, *b, *host;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaHostAlloc((void **)&host, bytes, cudaHostAllocDefault));
    CHECK(cudaMemsetAsync(b, 0, bytes, second));
    sample_memsets++;
    CHECK(cudaEventRecord(begin, first));
    for (int i = 0; i < ROUNDS; i++) {
        produce<<<N / 256, 256, 0, first>>>(N, a, (float)i);
        CHECK(cudaEventRecord(ready, first));
        CHECK(cudaStreamWaitEvent(second, ready, 0));
        consume<<<N / 256, 256, 1024, second>>>(N, a, b);
        CHECK(cudaEventRecord(ready, second));
        CHECK(cudaStreamWaitEvent(first, ready, 0));
        sample_kernels += 2;
    }
    CHECK(cudaMemcpyAsync(host, b, bytes, cudaMemcpyDeviceToHost, second));
    CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, second));
    sample_memcpys += 2;
    CHECK(cudaStreamSynchronize(second));
    CHECK(cudaEventRecord(end, first));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    sample_expect(milliseconds > 0, "elapsed time");
    if (sample_has_check(argc, argv))
        sample_expect(host[0] == 0 + 1 + 2 + 3, "b");
    CHECK(cudaDeviceSynchronize());
    return sample_end("streams");
}

// SPDX-License-Identifier: Apache-2.0
/* threads.cu - eight threads launch at once, each on a stream of its own, two of them on the same */
#include "sample.h"

#include <thread>
#include <vector>

enum { THREADS = 8, LAUNCHES = 50, N = 4096 };

__global__ void count(int *cells)
{
    atomicAdd(&cells[threadIdx.x], 1);
}

static void work(cudaStream_t stream, int *cells)
{
    for (int i = 0; i < LAUNCHES; i++, sample_kernels++)
        count<<<4, 64, 0, stream>>>(cells);
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
    int *cells, host[64];
    std::vector<cudaStream_t> streams(THREADS);
    std::vector<std::thread> threads;
    CHECK(cudaMalloc(&cells, sizeof host));
    CHECK(cudaMemset(cells, 0, sizeof host));
    sample_memsets++;
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < THREADS; i++)
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(work, streams[i == 1 ? 0 : i], cells);
    for (auto &thread : threads)
        thread.join();
    CHECK(cudaMemcpy(host, cells, sizeof host, cudaMemcpyDeviceToHost));
    sample_memcpys++;
    if (sample_has_check(argc, argv))
        sample_expect(host[0] == THREADS * LAUNCHES * 4, "cells");
    return sample_end("threads");
}

// SPDX-License-Identifier: Apache-2.0
/* graph.cu - a captured graph (copy, two kernels, memset, copy back), launched several times */
#include "sample.h"

enum { N = 1 << 16, LAUNCHES = 6 };

__global__ void scale(int n, float *a, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] *= by;
}

__global__ void shift(int n, float *a, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] += by;
}

int main(int argc, char **argv)
{
    size_t bytes = N * sizeof(float);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    float *a, *scratch, *host;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&scratch, bytes));
    CHECK(cudaMallocHost((void **)&host, bytes));
    for (int i = 0; i < N; i++)
        host[i] = 1;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, stream));
    scale<<<N / 128, 128, 0, stream>>>(N, a, 3);
    shift<<<N / 128, 128, 0, stream>>>(N, a, 1);
    CHECK(cudaMemsetAsync(scratch, 0, bytes, stream));
    CHECK(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < LAUNCHES; i++) {
        CHECK(cudaGraphLaunch(executable, stream));
        sample_kernels += 2;
        sample_memcpys += 2;
        sample_memsets++;
    }
    CHECK(cudaStreamSynchronize(stream));
    if (sample_has_check(argc, argv))
        sample_expect(host[0] == 1093, "a"); /* x -> 3x + 1, six times from 1 */
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return sample_end("graph");
}

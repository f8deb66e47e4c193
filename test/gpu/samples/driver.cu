// SPDX-License-Identifier: Apache-2.0
/* driver.cu - no runtime API at all: the driver loads a kernel written in PTX and launches it, as Triton does */
#include "sample.h"

#include <cuda.h>

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add_one(.param .u64 a)\n{\n"
    "  .reg .b32 %r<3>;\n  .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [a];\n  cvta.to.global.u64 %rd2, %rd1;\n"
    "  mov.u32 %r1, %tid.x;\n  mul.wide.u32 %rd3, %r1, 4;\n  add.s64 %rd4, %rd2, %rd3;\n"
    "  ld.global.u32 %r2, [%rd4];\n  add.s32 %r2, %r2, 1;\n  st.global.u32 [%rd4], %r2;\n  ret;\n}\n";

enum { THREADS = 128, TIMES = 3 };

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, (int)result);
    exit(1);
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUdeviceptr memory;
    int host[THREADS];
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
    must(cuModuleGetFunction(&function, module, "add_one"), "cuModuleGetFunction");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuMemAlloc(&memory, sizeof host), "cuMemAlloc");
    must(cuMemsetD32Async(memory, 0, THREADS, stream), "cuMemsetD32Async");
    sample_memsets++;
    void *arguments[] = { &memory };
    for (int i = 0; i < TIMES; i++, sample_kernels++)
        must(cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL), "cuLaunchKernel");
    must(cuMemcpyDtoHAsync(host, memory, sizeof host, stream), "cuMemcpyDtoHAsync");
    sample_memcpys++;
    must(cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (sample_has_check(argc, argv))
        sample_expect(host[0] == TIMES && host[THREADS - 1] == TIMES, "memory");
    must(cuMemFree(memory), "cuMemFree");
    must(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
    return sample_end("driver");
}

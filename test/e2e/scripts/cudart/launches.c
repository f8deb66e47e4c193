// SPDX-License-Identifier: Apache-2.0
/*
 * launches.c - a program of the CUDA runtime without nvcc: launches in every form, copies, fills, a graph, errors
 *
 * Prints what every call answered, the error that the runtime keeps and errno after it: the same line by line whoever
 * watches. Declares what it uses itself; kernels are registered by hand, as nvcc's code does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime.h"

typedef struct {
    dim3 grid, block;
    size_t smem;
    void *stream;
    void *attributes;
    unsigned count;
} config_t;

int cudaLaunchKernelExC(const config_t *, const void *, void **);
int cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, void *);
int __cudaGetKernel(void **, const void *);
int __cudaLaunchKernel(void *, dim3, dim3, void **, size_t, void *);
int cudaFree(void *), cudaMallocHost(void **, size_t), cudaFreeHost(void *);
int cudaMemcpy(void *, const void *, size_t, int), cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMemset(void *, int, size_t), cudaMemsetAsync(void *, int, size_t, void *);
int cudaStreamCreate(void **), cudaStreamSynchronize(void *), cudaStreamDestroy(void *);
int cudaEventCreate(void **), cudaEventRecord(void *, void *), cudaEventSynchronize(void *),
    cudaStreamWaitEvent(void *, void *, unsigned);
int cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **), cudaGraphLaunch(void *, void *);
int cudaGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cudaGetLastError(void), cudaDeviceReset(void), cudaPeekAtLastError(void);

#define SAY(call)                                                                              \
    do {                                                                                       \
        errno = 42;                                                                            \
        int result_ = (call);                                                                  \
        int errno_ = errno;                                                                    \
        printf("%s = %d, kept %d, errno %d\n", #call, result_, cudaPeekAtLastError(), errno_); \
    } while (0)

static void saxpy(void) {}
static void scale(void) {}
static void unregistered(void) {}

static void *a, *b, *host, *stream, *event, *kernel, *graph, *exec, *args[4];
static char plain[4096];

static void work(void)
{
    SAY(cudaMalloc(&a, 1 << 20));
    SAY(cudaMalloc(&b, 1 << 20));
    SAY(cudaMallocHost(&host, 1 << 20));
    SAY(cudaStreamCreate(&stream));
    SAY(cudaEventCreate(&event));
    SAY(cudaMemset(a, 7, 1000));
    SAY(cudaMemsetAsync(b, 0, 2000, stream));
    SAY(cudaMemcpy(a, plain, sizeof plain, 1));
    SAY(cudaMemcpyAsync(b, host, 65536, 1, stream));
    SAY(cudaLaunchKernel((const void *)saxpy, (dim3){128, 2, 1}, (dim3){256, 1, 1}, args, 512, NULL));
    SAY(cudaLaunchKernel((const void *)saxpy, (dim3){64, 1, 1}, (dim3){32, 4, 2}, args, 0, stream));
    SAY(cudaEventRecord(event, stream));
    SAY(cudaStreamWaitEvent(NULL, event, 0));
    SAY(cudaLaunchKernelExC(&(config_t){{3, 1, 1}, {64, 1, 1}, 16, stream, NULL, 0}, (const void *)scale, args));
    SAY(cudaLaunchCooperativeKernel((const void *)scale, (dim3){4, 1, 1}, (dim3){96, 1, 1}, args, 0, stream));
#ifndef OLD_RUNTIME
    SAY(__cudaGetKernel(&kernel, (const void *)scale));
    SAY(__cudaLaunchKernel(kernel, (dim3){5, 1, 1}, (dim3){128, 1, 1}, args, 0, stream));
#endif
    SAY(cudaMemcpyAsync(host, b, 65536, 2, stream));
    SAY(cudaMemcpyAsync(a, b, 4096, 4, stream));
    SAY(cudaStreamSynchronize(stream));
}

static void errors(void)
{
    /* errors stay the program's, also when our own questions come between */
    SAY(cudaLaunchKernel((const void *)unregistered, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL));
    SAY(cudaLaunchKernel((const void *)saxpy, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
    SAY(cudaGetLastError());
    SAY(cudaLaunchKernel((const void *)saxpy, (dim3){0, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL));
    SAY(cudaGetLastError());
    SAY(cudaMemcpy(NULL, plain, 16, 77));
    SAY(cudaGetLastError());
    SAY(cudaLaunchKernelExC(NULL, (const void *)scale, args));
    SAY(cudaGetLastError());
}

static void graphs(void)
{
    /* a graph: captured, not run; then run twice */
    const char *hold_us = getenv("HOLD"); /* how long, beside a kernel that has just been launched */
    if (hold_us) SAY(cudaLaunchKernel((const void *)scale, (dim3){10, 1, 1}, (dim3){32, 1, 1}, args, 0, NULL));
    SAY(cudaStreamBeginCapture(stream, 0));
    if (hold_us) usleep((useconds_t)atoi(hold_us));
    SAY(cudaLaunchKernel((const void *)saxpy, (dim3){11, 1, 1}, (dim3){32, 1, 1}, args, 0, stream));
    SAY(cudaMemsetAsync(b, 1, 64, stream));
    SAY(cudaStreamEndCapture(stream, &graph));
    SAY(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    SAY(cudaGraphLaunch(exec, stream));
    SAY(cudaGraphLaunch(exec, stream));
}

static int reset(void)
{
    SAY(cudaLaunchKernel((const void *)scale, (dim3){21, 1, 1}, (dim3){32, 1, 1}, args, 0, stream));
    SAY(cudaDeviceReset());
    SAY(cudaMalloc(&a, 4096));
    SAY(cudaLaunchKernel((const void *)scale, (dim3){22, 1, 1}, (dim3){32, 1, 1}, args, 0, NULL));
    SAY(cudaDeviceSynchronize());
    return 0;
}

int main(void)
{
    static fatbin_t fatbin = {0x466243b1, 1, "", NULL};
    void **module = __cudaRegisterFatBinary(&fatbin);
    __cudaRegisterFunction(module, (const char *)saxpy, (char *)"_Z5saxpyifPfS_", "_Z5saxpyifPfS_", -1, NULL, NULL,
                           NULL, NULL, NULL);
    __cudaRegisterFunction(module, (const char *)scale, (char *)"_Z5scalePff", "_Z5scalePff", -1, NULL, NULL, NULL,
                           NULL, NULL);
    __cudaRegisterFatBinaryEnd(module);
    if (getenv("LEAVE")) return cudaLaunchKernel((const void *)saxpy, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL);
    work();
    errors();
    graphs();
    SAY(cudaEventRecord(event, stream));
    SAY(cudaEventSynchronize(event));
    for (int i = 0, n = getenv("LAUNCHES") ? atoi(getenv("LAUNCHES")) : 0; i < n; i++)
        if (cudaLaunchKernel((const void *)scale, (dim3){1, 1, 1}, (dim3){32, 1, 1}, args, 0, stream)) return 1;
    SAY(cudaDeviceSynchronize());
    if (getenv("RESET")) return reset();
    if (getenv("FORK")) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            SAY(cudaLaunchKernel((const void *)scale, (dim3){1, 1, 1}, (dim3){32, 1, 1}, args, 0, stream));
            return 0;
        }
        waitpid(child, NULL, 0);
    }
    SAY(cudaStreamDestroy(stream));
    SAY(cudaFree(a));
    SAY(cudaFree(b));
    SAY(cudaFreeHost(host));
    return 0;
}

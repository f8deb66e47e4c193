// SPDX-License-Identifier: Apache-2.0
/*
 * smoke.c - a CUDA program that links no CUDA: loads libcudart by its name, then copies, launches, captures and waits
 *
 * usage: smoke [LIBCUDART] [STEPS]    (default: libcudart.so.13, 3). Says what it did on one line; 1 when a call
 *                                     failed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dim3 {
    unsigned x, y, z;
};

static struct {
#define RT(name, arguments) int(*name) arguments;
#include "test/unit/simgpu/runtime.def"
#undef RT
} rt;

static int load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "smoke: %s\n", dlerror());
        return -1;
    }
#define RT(function, arguments) *(void **)&rt.function = dlsym(library, #function);
#include "test/unit/simgpu/runtime.def"
#undef RT
    return 0;
}

static void must(int error, const char *what)
{
    if (error == 0) return;
    fprintf(stderr, "smoke: %s answered %d\n", what, error);
    exit(1);
}
#define MUST(call) must(rt.call, #call)

enum { BYTES = 1 << 16 };
static char stubs[2];
static char *device, *pinned;
static void *streams[2], *event, *exec;
static int kernels, copies, host_functions;

static void launch(int which, void *stream)
{
    struct dim3 grid = {64, 1, 1}, block = {128, 1, 1};
    MUST(cudaLaunchKernel(&stubs[which], grid, block, NULL, 0, stream));
    kernels++;
}

static void on_host(void *arg) { ++*(int *)arg; }

static void set_up(void)
{
    static void *binary;
    void *graph;
    rt.__cudaRegisterFunction(&binary, &stubs[0], NULL, "_Z11smoke_firstPf", -1, NULL, NULL, NULL, NULL, NULL);
    rt.__cudaRegisterFunction(&binary, &stubs[1], NULL, "_Z12smoke_secondPf", -1, NULL, NULL, NULL, NULL, NULL);
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMallocHost((void **)&pinned, BYTES));
    MUST(cudaStreamCreateWithFlags(&streams[0], 1));
    MUST(cudaStreamCreateWithPriority(&streams[1], 1, -1));
    MUST(cudaEventCreate(&event));
    MUST(cudaStreamBeginCapture(streams[0], 2));
    launch(0, streams[0]);
    launch(1, streams[0]);
    MUST(cudaStreamEndCapture(streams[0], &graph));
    kernels = 0;                                          /* captured, not run */
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0)); /* the one form that all versions share */
}

/* Copy in, a kernel on one stream, another stream behind it by an event, a graph, copy out. */
static void step(int value)
{
    memset(pinned, value, BYTES);
    MUST(cudaMemcpyAsync(device, pinned, BYTES, 1, streams[0]));
    launch(0, streams[0]);
    MUST(cudaEventRecord(event, streams[0]));
    MUST(cudaStreamWaitEvent(streams[1], event, 0));
    launch(1, streams[1]);
    MUST(cudaLaunchHostFunc(streams[1], on_host, &host_functions));
    MUST(cudaStreamSynchronize(streams[1]));
    MUST(cudaGraphLaunch(exec, streams[0]));
    kernels += 2;
    memset(pinned, 0, BYTES);
    MUST(cudaMemcpyAsync(pinned, device, BYTES, 2, streams[0]));
    copies += 2;
    MUST(cudaDeviceSynchronize());
    if (pinned[0] != (char)value || pinned[BYTES - 1] != (char)value) must(-1, "the copy");
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 3;
    if (load(argc > 1 ? argv[1] : "libcudart.so.13") != 0) return 1;
    set_up();
    for (int i = 1; i <= steps; i++) step(i);
    printf("smoke: %d steps, %d kernels, %d copies, %d host functions\n", steps, kernels, copies, host_functions);
    return 0;
}

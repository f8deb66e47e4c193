// SPDX-License-Identifier: Apache-2.0
/*
 * gpu.c - a CUDA program as nvcc would leave it, in many moods: gpu MOOD [STEPS [MS|AT|COUNT]]   MS: how long a slow
 * one waits in each step; COUNT: how many threads (4)
 *
 * Each step launches 10 kernels, one copy, one fill, and waits. Says on stdout how many kernels it launched. graph: its
 * kernels are captured into a graph at step AT, which each step from there on launches as well. GPU_OPENS: a library
 * that is loaded first (torch has libcupti); GPU_PAUSE: a step after which nothing happens for two seconds. handle:
 * launches as stubs of nvcc 13 do. finalize: calls cuptiFinalize at step AT, without a flush.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    unsigned x, y, z;
} dim3;
typedef void *cudaStream_t;
int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream);
int cudaLaunchKernel(const void *fn, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(cudaStream_t *stream);
int cudaStreamSynchronize(cudaStream_t stream);
int cudaStreamBeginCapture(cudaStream_t stream, int mode);
int cudaStreamEndCapture(cudaStream_t stream, void **graph);
int cudaGraphInstantiateWithFlags(void **run, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *run, cudaStream_t stream);
int cudaGetDeviceCount(int *count);
int cudaGetDevice(int *device);
int cudaDeviceReset(void);
__attribute__((weak)) int cuptiFinalize(void); /* of gpu_cupti alone, as torch is linked */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                            void *bid, void *block, void *grid, int *size);

enum { KERNELS = 10, BYTES = 1 << 20, THREADS = 4, THREADS_MOST = 4000 };
static struct {
    int magic, version;
    void *data, *file;
} binary = {0x466243b1, 1, NULL, NULL};
static void saxpy(void) {}
static void *device_memory;
static char host_memory[BYTES];
static int (*step)(void);
static _Atomic unsigned launched;
static void *handle_of_saxpy;
static int (*launch_by_handle)(void *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);

static void must(int code, const char *what)
{
    if (code == 0) return;
    printf("%s: error %d\n", what, code);
    exit(3);
}

static void nap_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void launch(cudaStream_t stream)
{
    static int n = 1000;
    static float a = 2;
    void *args[] = {&n, &a, &device_memory, &device_memory};
    int device;
    must(cudaGetDevice(&device), "cudaGetDevice");
    const dim3 grid = {4, 1, 1}, block = {256, 1, 1};
    if (launch_by_handle) must(launch_by_handle(handle_of_saxpy, grid, block, args, 0, stream), "__cudaLaunchKernel");
    else must(cudaLaunchKernel((const void *)saxpy, grid, block, args, 0, stream), "cudaLaunchKernel");
    launched++;
}

static void one_step(cudaStream_t stream)
{
    must(cudaMemcpy(device_memory, host_memory, BYTES, 1), "cudaMemcpy");
    must(cudaMemsetAsync(device_memory, 0, BYTES, stream), "cudaMemsetAsync");
    for (int i = 0; i < KERNELS; i++) launch(stream);
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (step) step();
}

static void graph_step(bool captures)
{
    static cudaStream_t stream;
    static void *graph, *run;
    if (captures) {
        must(cudaStreamCreate(&stream), "cudaStreamCreate");
        must(cudaStreamBeginCapture(stream, 0), "cudaStreamBeginCapture");
        for (int i = 0; i < KERNELS; i++) launch(stream);
        must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
        must(cudaGraphInstantiateWithFlags(&run, graph, 0), "cudaGraphInstantiateWithFlags");
        launched -= KERNELS;
    }
    if (!run) return;
    must(cudaGraphLaunch(run, stream), "cudaGraphLaunch");
    launched += KERNELS;
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

static void *many_steps(void *steps)
{
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    for (int i = 0; i < *(int *)steps; i++) one_step(stream);
    return NULL;
}

/* All have called CUDA before one of them ends. */
static pthread_barrier_t together;

static void *many_steps_together(void *steps)
{
    one_step(NULL);
    pthread_barrier_wait(&together);
    return many_steps(steps);
}

static void with_threads(int steps, int count)
{
    static pthread_t threads[THREADS_MOST];
    pthread_attr_t small;
    step = NULL;
    if (count > THREADS_MOST) exit(3);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&together, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        must(pthread_create(&threads[i], &small, many_steps_together, &steps), "pthread_create");
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* A child that inherits CUDA: it may not use it, and ends in each of the ways. */
static void with_children(int steps)
{
    for (int i = 0; i < steps; i++) {
        one_step(NULL);
        pid_t child = fork();
        if (child == 0) {
            int count, code = cudaGetDeviceCount(&count);
            if (i % 2) _exit(code != 0);
            exit(code != 0);
        }
        int status;
        waitpid(child, &status, 0);
        if (i == 0) printf("child: %d\n", status);
    }
}

/* Cudarts before 13 do not have these two functions. */
static void with_handle(void)
{
    int (*get)(void **kernel, const void *function);
    *(void **)&get = dlsym(RTLD_DEFAULT, "__cudaGetKernel");
    *(void **)&launch_by_handle = dlsym(RTLD_DEFAULT, "__cudaLaunchKernel");
    must(!get || !launch_by_handle || get(&handle_of_saxpy, (const void *)saxpy), "__cudaGetKernel");
}

static void finalize(void) { must(!cuptiFinalize || cuptiFinalize(), "cuptiFinalize"); }

static void prepare(void)
{
    int count = 0;
    must(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    must(cudaMalloc(&device_memory, BYTES), "cudaMalloc");
}

int main(int argc, char **argv)
{
    const char *mood = argc > 1 ? argv[1] : "plain";
    int steps = argc > 2 ? atoi(argv[2]) : 10, count;
    if (getenv("GPU_OPENS")) dlopen(getenv("GPU_OPENS"), RTLD_NOW);
    void **handle = __cudaRegisterFatBinary(&binary);
    __cudaRegisterFunction(handle, (const char *)saxpy, (char *)"saxpy", "_Z5saxpyifPfS_", -1, NULL, NULL, NULL, NULL,
                           NULL);
    *(void **)&step = dlsym(RTLD_DEFAULT, "kprof_step");
    if (strcmp(mood, "count") == 0) {
        int code = cudaGetDeviceCount(&count);
        printf("devices: error %d\n", code);
        return 0;
    }
    prepare();
    if (strcmp(mood, "handle") == 0) with_handle();
    if (strcmp(mood, "threads") == 0) with_threads(steps, argc > 3 ? atoi(argv[3]) : THREADS);
    else if (strcmp(mood, "children") == 0) with_children(steps);
    else
        for (int i = 0; i < steps; i++) {
            if (strcmp(mood, "graph") == 0) graph_step(argc > 3 && i == atoi(argv[3]));
            one_step(NULL);
            if (getenv("GPU_PAUSE") && i == atoi(getenv("GPU_PAUSE"))) nap_ms(2000);
            if (strcmp(mood, "finalize") == 0 && i == atoi(argv[3])) finalize();
            if (strcmp(mood, "finalize") == 0) nap_ms(20);
            if (strcmp(mood, "slow") == 0) nap_ms(argc > 3 ? atoi(argv[3]) : 20);
            if (strcmp(mood, "graph") == 0) nap_ms(20);
            if (strcmp(mood, "idle") == 0 && i == steps / 2) nap_ms(300);
            if (strcmp(mood, "reset") == 0 && i == steps / 2) {
                must(cudaDeviceReset(), "cudaDeviceReset");
                prepare();
            }
        }
    if (strcmp(mood, "pending") == 0)
        for (int i = 0; i < 100; i++) launch(NULL);
    printf("launched %u\n", launched);
    fflush(stdout);
    if (strcmp(mood, "_exit") == 0) {
        nap_ms(1500);
        _exit(0);
    }
    return 0;
}

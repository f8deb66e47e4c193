// SPDX-License-Identifier: Apache-2.0
/*
 * sim_test.h - tests of the simulated GPU: each body runs in a child process of its own with its own settings
 *
 * The parent never loads the doubles: settings are read once a process, and a process that used the GPU cannot fork.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/doubles/simgpu/simgpu.h"

struct dim3 {
    unsigned x, y, z;
};
struct location {
    int type, id;
};

struct driver {
#define DRV(name, arguments) int(*name) arguments;
#include "test/doubles/simgpu/cudart/rt_driver.def"
#include "test/unit/simgpu/driver_more.def"
#undef DRV
};
struct runtime {
#define RT(name, arguments) int(*name) arguments;
#include "test/unit/simgpu/runtime.def"
#undef RT
};

static __attribute__((unused)) struct driver cu;
static __attribute__((unused)) struct runtime rt;
static const struct simgpu_core *core;
static __attribute__((unused)) char sim_folder[PATH_MAX];

/* In a child: says where it went wrong and ends. */
#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                               \
        }                                                                           \
    } while (0)
#define CHECK_IS(value, wanted)                                                                         \
    do {                                                                                                \
        long long is_ = (long long)(value), wanted_ = (long long)(wanted);                              \
        if (is_ != wanted_) {                                                                           \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #value, is_, wanted_); \
            _exit(1);                                                                                   \
        }                                                                                               \
    } while (0)

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* build/<arch>/test/unit/simgpu/test_x -> build/<arch>/simgpu */
static inline void *sim_open(const char *name)
{
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(n > 0);
    self[n] = '\0';
    for (int i = 0; i < 4; i++) *strrchr(self, '/') = '\0';
    snprintf(sim_folder, sizeof sim_folder, "%s", self);
    snprintf(path, sizeof path, "%s/simgpu/%s", self, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    return library;
}

static inline void sim_load_driver(void)
{
    const struct simgpu_core *(*get)(void);
    void *library = sim_open("libcuda.so.1");
#define DRV(name, arguments) *(void **)&cu.name = dlsym(library, #name);
#include "test/doubles/simgpu/cudart/rt_driver.def"
#include "test/unit/simgpu/driver_more.def"
#undef DRV
    *(void **)&get = dlsym(library, "simgpu_core");
    core = get();
}

static inline void *sim_load_runtime(const char *name)
{
    void *library = sim_open(name);
#define RT(name, arguments) *(void **)&rt.name = dlsym(library, #name);
#include "test/unit/simgpu/runtime.def"
#undef RT
    return library;
}

/* A kernel as nvcc registers it: a host stub's address stands for the name. */
static char stub_a, stub_b;
static inline void sim_register_kernels(void)
{
    static void *handle;
    rt.__cudaRegisterFunction(&handle, &stub_a, NULL, "_Z6kernelPf", -1, NULL, NULL, NULL, NULL, NULL);
    rt.__cudaRegisterFunction(&handle, &stub_b, NULL, "_Z5otherPf", -1, NULL, NULL, NULL, NULL, NULL);
}

static inline void sim_start(void)
{
    sim_load_driver();
    sim_load_runtime("libcudart.so.13");
    sim_register_kernels();
}

static inline int sim_launch(const void *stub, void *stream)
{
    struct dim3 grid = {2, 1, 1}, block = {64, 1, 1};
    return rt.cudaLaunchKernel(stub, grid, block, NULL, 0, stream);
}

/* What the observer was told, in order. The tests that look at it have one thread of their own. */
enum { MAX_SEEN = 512 };
static __attribute__((unused)) struct simgpu_work seen[MAX_SEEN], done[MAX_SEEN];
static __attribute__((unused)) struct simgpu_sync synced[MAX_SEEN];
static __attribute__((unused)) struct simgpu_call calls[MAX_SEEN];
static int seen_count, sync_count, query_count, call_count;
static _Atomic int done_count;

static void on_work(struct simgpu_work *w) { seen[seen_count++ % MAX_SEEN] = *w; }
static void on_done(struct simgpu_work *w)
{
    done[done_count % MAX_SEEN] = *w;
    done_count++; /* last: the test waits for it */
}
static void on_sync(const struct simgpu_sync *s)
{
    if (s->is_query) query_count++; /* no wait */
    else synced[sync_count++ % MAX_SEEN] = *s;
}
static void on_exit_call(struct simgpu_call *c) { calls[call_count++ % MAX_SEEN] = *c; }
static const struct simgpu_observer observer = {
    .work_enqueued = on_work, .work_done = on_done, .synced = on_sync, .exit = on_exit_call};

static inline void sim_watch(void) { core->observe(&observer); }

/* settings: "NAME=value", ... , NULL */
static inline void in_child(void (*body)(void), const char *const *settings)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(120);
        for (; settings && *settings; settings++) putenv((char *)*settings);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) fprintf(stderr, "the child died of signal %d\n", WTERMSIG(status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define WITH(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SIM_TEST(name, ...)                                        \
    static void name(void **state)                                 \
    {                                                              \
        (void)state;                                               \
        in_child(name##_body, (const char *const[]){__VA_ARGS__}); \
    }

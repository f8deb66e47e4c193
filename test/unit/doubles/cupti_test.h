// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_test.h - plays the driver above and the client below the simulated libcupti
 *
 * A case runs in a child process, so that each has settings and state of its own: in_child() sets the environment,
 * loads the fake driver and libcupti.so.13 (or .12, .11.8) from beside the test, and runs the case. CHECK() tells what
 * failed and ends the child.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/doubles/simgpu/simgpu.h"

#define CHECK(is_true)                                                            \
    do {                                                                          \
        if (!(is_true)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #is_true); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)
#define CHECK_IS(a, b)                                                                        \
    do {                                                                                      \
        long long a_ = (long long)(a), b_ = (long long)(b);                                   \
        if (a_ != b_) {                                                                       \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, a_, b_); \
            _exit(1);                                                                         \
        }                                                                                     \
    } while (0)

static void *cupti, *fake;

/* A function of libcupti, by its name; the types are the caller's business. */
static inline void *cupti_symbol(const char *name)
{
    void *function = dlsym(cupti, name);
    if (!function) fprintf(stderr, "no %s\n", name);
    CHECK(function);
    return function;
}
#define CUPTI(name, ...) (((int (*)())(uintptr_t)cupti_symbol("cupti" #name))(__VA_ARGS__))

static inline void load_library(void **at, const char *name)
{
    char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(n > 0);
    path[n] = 0;
    char *root = strstr(path, "/test/unit/");
    CHECK(root);
    snprintf(root, sizeof path - (size_t)(root - path), "/%s", name);
    *at = dlopen(path, RTLD_NOW);
    if (!*at) fprintf(stderr, "%s\n", dlerror());
    CHECK(*at);
}

static inline void set_up_driver(bool is)
{
    void (*set)(bool) = NULL;
    *(void **)&set = dlsym(fake, "fake_set_up");
    set(is);
}

static inline const struct simgpu_observer *observer(void)
{
    const struct simgpu_observer *(*get)(void) = NULL;
    *(void **)&get = dlsym(fake, "fake_observer");
    CHECK(get());
    return get();
}

/* library: "13", "12", "11.8"; settings: "A=1 B=2" */
static inline int run_child(void (*run)(void), const char *library, const char *settings, bool has_driver)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        char *text = strdup(settings), *rest = text;
        for (char *word; (word = strsep(&rest, " "));)
            if (*word) putenv(word);
        char name[64];
        snprintf(name, sizeof name, "simgpu/libcupti.so.%s", library);
        if (has_driver) {
            load_library(&fake, "simgpu/fake/libcuda.so.1");
            set_up_driver(true);
        }
        load_library(&cupti, name);
        run();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}
static inline void in_child(void (*run)(void), const char *library, const char *settings)
{
    assert_int_equal(run_child(run, library, settings, true), 0);
}

/* --- the client --- */

enum { BUFFER_BYTES = 8192, MAX_RECORDS = 4096 };
static struct {
    size_t size; /* of the buffers handed out; 0: NULL */
    int requests, completions;
    pthread_t requester, completer;
    uint8_t records[MAX_RECORDS][256];
    int count, end; /* how the last walk ended */
    uint8_t *kept;  /* the last buffer, when is_keeping */
    bool is_keeping;
    uint32_t buffer_of[MAX_RECORDS]; /* which completion a record came with */
} client = {.size = BUFFER_BYTES};

static inline void on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    client.requests++;
    client.requester = pthread_self();
    *buffer = client.size ? aligned_alloc(8, client.size) : NULL;
    *size = client.size;
    *max_records = 0;
}

static inline void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream;
    uint8_t *record = NULL;
    CHECK(valid <= size);
    client.completer = pthread_self();
    while ((client.end = CUPTI(ActivityGetNextRecord, buffer, valid, &record)) == 0 && client.count < MAX_RECORDS) {
        size_t length = (size_t)(buffer + valid - record);
        memcpy(client.records[client.count], record, length < 256 ? length : 256);
        client.buffer_of[client.count++] = (uint32_t)client.completions;
    }
    __atomic_add_fetch(&client.completions, 1, __ATOMIC_RELEASE); /* some cases wait for it */
    if (client.is_keeping) client.kept = buffer;
    else free(buffer);
}

static inline uint64_t field(const uint8_t *record, size_t at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, record + at, bytes);
    return value;
}
static inline uint32_t u32(const uint8_t *record, size_t at) { return (uint32_t)field(record, at, 4); }
static inline uint64_t u64(const uint8_t *record, size_t at) { return field(record, at, 8); }

static inline int count_of(uint32_t kind)
{
    int n = 0;
    for (int i = 0; i < client.count; i++) n += u32(client.records[i], 0) == kind;
    return n;
}
static inline const uint8_t *nth_of(uint32_t kind, int n)
{
    for (int i = 0; i < client.count; i++)
        if (u32(client.records[i], 0) == kind && n-- == 0) return client.records[i];
    CHECK(!"there is such a record");
    return NULL;
}

static inline void arm(const char *kinds)
{
    CHECK_IS(CUPTI(ActivityRegisterCallbacks, on_request, on_complete), 0);
    char *text = strdup(kinds), *rest = text;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word) CHECK_IS(CUPTI(ActivityEnable, atoi(word)), 0);
    free(text);
}

/* --- the driver --- */

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t last_correlation;

static inline struct simgpu_call begin_call(enum simgpu_domain domain, uint32_t cbid, const char *name,
                                            uint32_t correlation)
{
    struct simgpu_call call = {.domain = domain,
                               .cbid = cbid,
                               .name = name,
                               .correlation = correlation,
                               .enter_ns = now_ns(),
                               .symbol = "_Z6kernelv"};
    observer()->enter(&call);
    return call;
}

static inline void end_call(struct simgpu_call *call)
{
    call->exit_ns = now_ns();
    observer()->exit(call);
}

static uint64_t work_lasts_ns = 5000;
/* cudaLaunchKernel around cuLaunchKernel around the work */
static inline struct simgpu_work *launch_as(struct simgpu_work like)
{
    uint32_t correlation = ++last_correlation;
    struct simgpu_call runtime = begin_call(SIMGPU_RUNTIME, 211, "cudaLaunchKernel_v7000", correlation);
    struct simgpu_call driver = begin_call(SIMGPU_DRIVER, 307, "cuLaunchKernel", correlation);
    struct simgpu_work *work = malloc(sizeof *work);
    *work = like;
    work->correlation = correlation;
    work->start_ns = now_ns();
    work->end_ns = work->start_ns + work_lasts_ns;
    observer()->work_enqueued(work);
    end_call(&driver);
    end_call(&runtime);
    return work;
}
static inline struct simgpu_work *launch(void)
{
    return launch_as((struct simgpu_work){.kind = SIMGPU_KERNEL,
                                          .context = 1,
                                          .stream = 7,
                                          .name = "_Z6kernelv",
                                          .grid = {4, 3, 2},
                                          .block = {128, 1, 1},
                                          .registers = 32,
                                          .static_smem = 1024,
                                          .dynamic_smem = 2048,
                                          .priority = -1,
                                          .cluster = {2, 1, 1}});
}
static inline void finish(struct simgpu_work *work)
{
    observer()->work_done(work);
    free(work);
}
static inline void wait_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

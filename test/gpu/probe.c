// SPDX-License-Identifier: Apache-2.0
/*
 * probe.c - asks a CUPTI what its documentation leaves open; gpu-check runs it, on a real GPU or on the simulated one
 *
 * usage: probe QUESTION [--cupti PATH] [--idle SECONDS]
 *   register strides threads clock thread-id launch-cost filters subscriber slow-calls soak
 */
#include "test/gpu/probe.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cupti cupti;
struct driver driver;
struct client client_a, client_b;
static void *function, *spin;
static uint64_t memory;

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kp_probe_kernel(.param .u64 a)\n{\n"
    "  .reg .pred %p<2>;\n  .reg .b32 %r<3>;\n  .reg .b64 %rd<3>;\n"
    "  ld.param.u64 %rd1, [a];\n  cvta.to.global.u64 %rd2, %rd1;\n  mov.u32 %r1, 0;\n"
    "again:\n  st.volatile.global.u32 [%rd2], %r1;\n  add.s32 %r1, %r1, 1;\n  setp.lt.s32 %p1, %r1, 200;\n  @%p1 bra "
    "again;\n  ret;\n}\n"
    ".visible .entry kp_probe_spin(.param .u64 ns)\n{\n"
    "  .reg .pred %p<2>;\n  .reg .b64 %rd<5>;\n  ld.param.u64 %rd1, [ns];\n  mov.u64 %rd2, %globaltimer;\n"
    "spin:\n  mov.u64 %rd3, %globaltimer;\n  sub.u64 %rd4, %rd3, %rd2;\n  setp.lt.u64 %p1, %rd4, %rd1;\n  @%p1 bra "
    "spin;\n  ret;\n}\n";

void probe_say(const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%s: ", name);
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
}

void probe_must(int result, const char *what)
{
    if (result == 0) return;
    probe_say("failed", "%s answered %d", what, result);
    exit(3);
}

uint64_t probe_now(int clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t probe_u32(const uint8_t *record, size_t at)
{
    uint32_t value;
    memcpy(&value, record + at, sizeof value);
    return value;
}

uint64_t probe_u64(const uint8_t *record, size_t at)
{
    uint64_t value;
    memcpy(&value, record + at, sizeof value);
    return value;
}

/* --- libraries --- */

static void symbol(void *library, const char *name, void *pointer) { *(void **)pointer = dlsym(library, name); }

static void cupti_find(void *library)
{
    symbol(library, "cuptiGetVersion", &cupti.get_version);
    symbol(library, "cuptiActivityRegisterCallbacks", &cupti.register_callbacks);
    symbol(library, "cuptiActivityEnable", &cupti.enable);
    symbol(library, "cuptiActivityDisable", &cupti.disable);
    symbol(library, "cuptiActivityFlushAll", &cupti.flush);
    symbol(library, "cuptiActivityGetNextRecord", &cupti.next);
    symbol(library, "cuptiActivityGetStructSize", &cupti.struct_size);
    symbol(library, "cuptiGetTimestamp", &cupti.timestamp);
    symbol(library, "cuptiSubscribe", &cupti.subscribe);
    symbol(library, "cuptiUnsubscribe", &cupti.unsubscribe);
    symbol(library, "cuptiActivityEnableDriverApi", &cupti.enable_driver_api);
    symbol(library, "cuptiActivityGetAttribute", &cupti.get_attribute);
    symbol(library, "cuptiFinalize", &cupti.finalize);
    symbol(library, "cuptiGetResultString", &cupti.result_string);
}

static void driver_find(void *library)
{
    symbol(library, "cuInit", &driver.init);
    symbol(library, "cuDriverGetVersion", &driver.version);
    symbol(library, "cuDeviceGetName", &driver.device_name);
    symbol(library, "cuDevicePrimaryCtxRetain", &driver.retain);
    symbol(library, "cuCtxSetCurrent", &driver.set_current);
    symbol(library, "cuModuleLoadData", &driver.module_load);
    symbol(library, "cuModuleGetFunction", &driver.module_function);
    symbol(library, "cuLaunchKernel", &driver.launch);
    symbol(library, "cuCtxSynchronize", &driver.synchronize);
    symbol(library, "cuMemAlloc_v2", &driver.alloc);
    symbol(library, "cuMemGetInfo_v2", &driver.memory);
    symbol(library, "cuStreamCreate", &driver.stream_create);
    symbol(library, "cuStreamBeginCapture_v2", &driver.capture_begin);
    symbol(library, "cuStreamEndCapture", &driver.capture_end);
    symbol(library, "cuGraphInstantiateWithFlags", &driver.graph_instantiate);
    symbol(library, "cuGraphLaunch", &driver.graph_launch);
}

void probe_open(const char *cupti_path)
{
    static const char *const names[] = {NULL, "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW), *library = NULL;
    if (libcuda == NULL) {
        probe_say("failed", "no libcuda.so.1 here");
        exit(2);
    }
    driver_find(libcuda);
    for (size_t i = cupti_path != NULL ? 0 : 1; i < sizeof names / sizeof names[0] && library == NULL; i++)
        library = dlopen(i == 0 ? cupti_path : names[i], RTLD_NOW);
    if (library == NULL) {
        probe_say("failed", "no libcupti here");
        exit(2);
    }
    cupti_find(library);
}

void probe_begin(void)
{
    void *context, *module;
    char name[128] = "";
    int version = 0;
    uint32_t cupti_version = 0;
    probe_must(driver.init(0), "cuInit");
    driver.version(&version);
    driver.device_name(name, sizeof name, 0);
    probe_must(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    probe_must(driver.set_current(context), "cuCtxSetCurrent");
    probe_must(driver.module_load(&module, ptx), "cuModuleLoadData");
    probe_must(driver.module_function(&function, module, "kp_probe_kernel"), "cuModuleGetFunction");
    probe_must(driver.module_function(&spin, module, "kp_probe_spin"), "cuModuleGetFunction");
    probe_must(driver.alloc(&memory, 4096), "cuMemAlloc");
    cupti.get_version(&cupti_version);
    probe_say("device", "%s", name);
    probe_say("driver version", "%d", version);
    probe_say("cupti version", "%u", cupti_version);
}

void probe_launch_on(void *stream, int times)
{
    void *arguments[] = {&memory};
    for (int i = 0; i < times; i++)
        probe_must(driver.launch(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL), "cuLaunchKernel");
}

void probe_launch(int times) { probe_launch_on(NULL, times); }

void probe_spin(uint64_t ns)
{
    void *arguments[] = {&ns};
    probe_must(driver.launch(spin, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), "cuLaunchKernel");
}

void probe_wait(void) { probe_must(driver.synchronize(), "cuCtxSynchronize"); }

/* --- clients --- */

static pthread_mutex_t client_lock = PTHREAD_MUTEX_INITIALIZER;

static void thread_note(uint64_t *seen, int *n)
{
    uint64_t tid = (uint64_t)gettid();
    for (int i = 0; i < *n; i++)
        if (seen[i] == tid) return;
    if (*n < 64) seen[(*n)++] = tid;
}

static void client_request(struct client *client, uint8_t **buffer, size_t *bytes, size_t *records)
{
    pthread_mutex_lock(&client_lock);
    client->requested++;
    thread_note(client->request_tid, &client->request_tids);
    pthread_mutex_unlock(&client_lock);
    *buffer = aligned_alloc(8, PROBE_BUFFER);
    *bytes = PROBE_BUFFER;
    *records = 0;
}

static void record_keep(struct client *client, const uint8_t *record)
{
    uint32_t kind = probe_u32(record, 0);
    if (client->records_n == PROBE_RECORDS) return;
    size_t at = client->records_n++;
    bool is_api = kind == KIND_DRIVER || kind == KIND_RUNTIME;
    bool is_kernel = kind == KIND_KERNEL;
    client->records[at].kind = kind;
    client->records[at].thread = is_api ? probe_u32(record, 28) : 0;
    client->records[at].correlation = is_api ? probe_u32(record, 32) : is_kernel ? probe_u32(record, 92) : 0;
    client->records[at].start = is_api ? probe_u64(record, 8) : is_kernel ? probe_u64(record, 16) : 0;
    client->records[at].end = is_api ? probe_u64(record, 16) : is_kernel ? probe_u64(record, 24) : 0;
}

static void client_complete(struct client *client, uint8_t *buffer, size_t valid)
{
    uint8_t *record = NULL;
    pthread_mutex_lock(&client_lock);
    client->completed++;
    thread_note(client->complete_tid, &client->complete_tids);
    while (valid > 0 && cupti.next(buffer, valid, &record) == 0) record_keep(client, record);
    pthread_mutex_unlock(&client_lock);
    free(buffer);
}

static void request_a(uint8_t **buffer, size_t *bytes, size_t *records)
{
    client_request(&client_a, buffer, bytes, records);
}
static void request_b(uint8_t **buffer, size_t *bytes, size_t *records)
{
    client_request(&client_b, buffer, bytes, records);
}

static void complete_a(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    (void)context, (void)stream, (void)bytes;
    client_complete(&client_a, buffer, valid);
}

static void complete_b(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    (void)context, (void)stream, (void)bytes;
    client_complete(&client_b, buffer, valid);
}

void probe_client(struct client *client)
{
    bool is_a = client == &client_a;
    probe_must(cupti.register_callbacks(is_a ? request_a : request_b, is_a ? complete_a : complete_b),
               "cuptiActivityRegisterCallbacks");
}

size_t probe_count(const struct client *client, uint32_t kind)
{
    size_t n = 0;
    for (size_t i = 0; i < client->records_n; i++) n += client->records[i].kind == kind;
    return n;
}

int main(int argc, char **argv)
{
    const char *path = NULL, *question = argc > 1 ? argv[1] : "";
    int idle_s = 5;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--cupti") == 0) path = argv[i + 1];
        else if (strcmp(argv[i], "--idle") == 0) idle_s = atoi(argv[i + 1]);
    }
    probe_open(path);
    if (strcmp(question, "register") == 0) return ask_register();
    if (strcmp(question, "strides") == 0) return ask_strides();
    if (strcmp(question, "threads") == 0) return ask_threads();
    if (strcmp(question, "clock") == 0) return ask_clock(idle_s);
    if (strcmp(question, "thread-id") == 0) return ask_thread_id();
    if (strcmp(question, "launch-cost") == 0) return ask_launch_cost();
    if (strcmp(question, "filters") == 0) return ask_filters();
    if (strcmp(question, "subscriber") == 0) return ask_subscriber();
    if (strcmp(question, "slow-calls") == 0) return ask_slow_calls();
    if (strcmp(question, "soak") == 0) return ask_soak(idle_s);
    fprintf(stderr, "usage: probe QUESTION [--cupti PATH] [--idle S]; the questions are at the top of probe.c\n");
    return 2;
}

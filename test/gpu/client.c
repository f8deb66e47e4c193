// SPDX-License-Identifier: Apache-2.0
/*
 * client.c - a CUDA program that profiles itself with CUPTI, in the order in which torch.profiler's Kineto does
 *
 * usage: client OUT PLAN      the plan is done letter by letter:
 *   l<n> n rounds of work (copy, kernel, memset, a call nobody wants)   s cudaDeviceSynchronize   .  a step for
 *   libkprof P    a session begins: clock, callbacks, kinds, filters             p it ends: kinds off, forced flush
 *   f    flush                                                          F as TEARDOWN_CUPTI=1: finalize in a call's
 *        exit
 *   K k  kprof_start, kprof_stop                                        b<n> n rounds on another thread, begun here
 *   j    waits for it                                                   z sleeps for 50 ms
 *   q    records an event and asks whether it is reached, until it is
 * OUT gets the records of every session, a line each: session kind name correlation start end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    unsigned x, y, z;
} dim3;
int cudaMalloc(void **p, size_t n);
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream);
int cudaMemsetAsync(void *p, int value, size_t n, void *stream);
int cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t smem, void *stream);
int cudaDeviceSynchronize(void);
int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaStreamQuery(void *stream);
int cudaGetDevice(int *device);
void **__cudaRegisterFatBinary(const void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                            void *bid, void *bd, void *gd, int *size);

typedef void (*request_fn)(uint8_t **, size_t *, size_t *);
typedef void (*complete_fn)(void *, uint32_t, uint8_t *, size_t, size_t);
int cuptiActivityRegisterCallbacks(request_fn request, complete_fn complete);
int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void));
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id);
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last);
int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value);
int cuptiSubscribe(void **subscriber, void (*callback)(void *, int, uint32_t, const void *), void *data);
int cuptiUnsubscribe(void *subscriber);
int cuptiEnableDomain(uint32_t enable, void *subscriber, int domain);
int cuptiFinalize(void);

enum { BUFFER_BYTES = 1 << 20, BUFFERS = 256, API_EXIT = 1, RUNTIME_DOMAIN = 2 };
static const int kinds[] = {1, 2, 10, 39, 5, 4, 17}; /* Kineto's, in its order */
static FILE *out;
static int session;
static void *device;
static char host[4096];
static void alpha(void) {}
static void beta(void) {}

static void must(int result, const char *what)
{
    if (result == 0) return;
    fprintf(stderr, "client: %s answered %d\n", what, result);
    exit(3);
}
#define MUST(call) must(call, #call)

/* ---- Kineto's buffers ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *allocated[BUFFERS], *ready[BUFFERS];
static size_t ready_bytes[BUFFERS];
static int unknown;

static void request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    pthread_mutex_lock(&lock);
    *buffer = malloc(BUFFER_BYTES);
    memset(*buffer, 0xa5, BUFFER_BYTES); /* nobody promised CUPTI zeros */
    *bytes = BUFFER_BYTES;
    *most = 0;
    for (int i = 0; i < BUFFERS; i++)
        if (!allocated[i]) {
            allocated[i] = *buffer;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    int i, r = 0;
    (void)context, (void)stream, (void)bytes;
    pthread_mutex_lock(&lock);
    for (i = 0; i < BUFFERS && allocated[i] != buffer; i++) continue;
    if (i == BUFFERS) {
        unknown++;
    } else {
        allocated[i] = NULL;
        while (ready[r]) r++;
        ready[r] = buffer;
        ready_bytes[r] = valid;
    }
    pthread_mutex_unlock(&lock);
}

static uint32_t u32(const uint8_t *r, int at)
{
    uint32_t v;
    memcpy(&v, r + at, 4);
    return v;
}
static uint64_t u64(const uint8_t *r, int at)
{
    uint64_t v;
    memcpy(&v, r + at, 8);
    return v;
}

static void write_record(const uint8_t *r)
{
    uint32_t kind = u32(r, 0);
    const char *name = "-";
    int start = 16, correlation = 44;
    if (kind == 10) memcpy(&name, r + 104, 8), correlation = 92;
    if (kind == 5 || kind == 4) start = 8, correlation = 32;
    if (kind == 39) fprintf(out, "%d 39 %u %u %llu 0\n", session, u32(r, 4), u32(r, 16), (unsigned long long)u64(r, 8));
    else if (kind == 5 || kind == 4)
        fprintf(out, "%d %u %u %u %llu %llu\n", session, kind, u32(r, 4), u32(r, correlation),
                (unsigned long long)u64(r, start), (unsigned long long)u64(r, start + 8));
    else if (kind == 17) fprintf(out, "%d 17 %u 0 0 0\n", session, u32(r, 4));
    else
        fprintf(out, "%d %u %s %u %llu %llu\n", session, kind, name,
                kind == 10 || kind == 1 || kind == 2 ? u32(r, correlation) : 0, (unsigned long long)u64(r, start),
                (unsigned long long)u64(r, start + 8));
}

/* As Kineto: nothing is flushed when no buffer was ever given. */
static void take_records(void)
{
    int i, given = 0;
    for (i = 0; i < BUFFERS; i++) given += allocated[i] != NULL;
    if (given) MUST(cuptiActivityFlushAll(1));
    uint8_t zero = 0;
    size_t one = 1;
    (void)cuptiActivitySetAttribute(9, &one, &zero);
    for (i = 0; i < BUFFERS; i++) {
        void *record = NULL;
        if (!ready[i]) continue;
        while (ready_bytes[i] && cuptiActivityGetNextRecord(ready[i], ready_bytes[i], &record) == 0)
            write_record(record);
        free(ready[i]);
        ready[i] = NULL;
    }
}

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#endif
}

static void begin(void)
{
    session++;
    MUST(cuptiActivityRegisterTimestampCallback(ticks));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        MUST(cuptiActivityEnable(kinds[i]));
        if (kinds[i] == 5) (void)cuptiActivityEnableRuntimeApi(17, 0); /* cudaGetDevice */
    }
}

static void end(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) MUST(cuptiActivityDisable(kinds[i]));
    take_records();
}

static int wants_finalize;
static void callback(void *data, int domain, uint32_t cbid, const void *info)
{
    int site;
    (void)data, (void)domain, (void)cbid;
    memcpy(&site, info, sizeof site);
    if (site != API_EXIT || !wants_finalize) return;
    wants_finalize = 0;
    MUST(cuptiFinalize());
}

static void tear_down(void)
{
    void *subscriber = NULL;
    MUST(cuptiSubscribe(&subscriber, callback, NULL));
    MUST(cuptiEnableDomain(1, subscriber, RUNTIME_DOMAIN));
    MUST(cuptiActivityFlushAll(1));
    wants_finalize = 1;
    cudaDeviceSynchronize();
}

/* ---- work ---- */

static void work(int rounds)
{
    int now;
    for (int i = 0; i < rounds; i++) {
        cuptiActivityPushExternalCorrelationId(3, (uint64_t)i + 1);
        cudaMemcpyAsync(device, host, 64 * (size_t)(i % 7 + 1), 1, NULL);
        cudaLaunchKernel((void *)alpha, (dim3){(unsigned)(i % 5 + 1), 1, 1}, (dim3){128, 1, 1}, NULL, 0, NULL);
        cudaMemsetAsync(device, 0, 32, NULL);
        cudaLaunchKernel((void *)beta, (dim3){8, 2, 1}, (dim3){64, 1, 1}, NULL, 0, NULL);
        cudaGetDevice(&now);
        cuptiActivityPopExternalCorrelationId(3, NULL);
    }
}

static pthread_t other;
static void *work_there(void *n)
{
    work((int)(intptr_t)n);
    cudaDeviceSynchronize();
    return NULL;
}

static void poll_event(void)
{
    static void *event;
    if (!event) cudaEventCreate(&event);
    cudaEventRecord(event, NULL);
    while (cudaEventQuery(event) || cudaStreamQuery(NULL)) usleep(100);
}

static void call_kprof(const char *name)
{
    int (*f)(void);
    *(void **)&f = dlsym(RTLD_DEFAULT, name);
    if (f) f();
}

static void follow(const char *plan)
{
    for (; *plan; plan++) {
        int n = plan[1] >= '0' && plan[1] <= '9' ? atoi(plan + 1) : 1;
        switch (*plan) {
        case 'l': work(n); break;
        case 's': cudaDeviceSynchronize(); break;
        case '.': call_kprof("kprof_step"); break;
        case 'P': begin(); break;
        case 'p': end(); break;
        case 'f': MUST(cuptiActivityFlushAll(0)); break;
        case 'F': tear_down(); break;
        case 'K': call_kprof("kprof_start"); break;
        case 'k': call_kprof("kprof_stop"); break;
        case 'b': pthread_create(&other, NULL, work_there, (void *)(intptr_t)n); break;
        case 'j': pthread_join(other, NULL); break;
        case 'z': usleep(50000); break;
        case 'q': poll_event(); break;
        default: break;
        }
    }
}

int main(int argc, char **argv)
{
    static const uint8_t binary[64];
    if (argc < 3) return 2;
    out = fopen(argv[1], "w");
    void **handle = __cudaRegisterFatBinary(binary);
    __cudaRegisterFunction(handle, (const char *)alpha, "_Z5alphaPfi", "_Z5alphaPfi", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, (const char *)beta, "_Z4betaPf", "_Z4betaPf", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
    MUST(cudaMalloc(&device, 1 << 20));
    follow(argv[2]);
    fclose(out);
    if (unknown) fprintf(stderr, "client: %d buffers were not its own\n", unknown);
    return unknown ? 4 : 0;
}

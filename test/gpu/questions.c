// SPDX-License-Identifier: Apache-2.0
/*
 * questions.c - the questions themselves: each prints what it saw, the caller judges
 */
#include "test/gpu/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CBID_LAUNCH = 307, ATTRIBUTE_PER_THREAD = 9 };

static void client_say(const char *name, const struct client *client)
{
    probe_say(name, "requested %d, completed %d, records %zu (kernels %zu)", client->requested, client->completed,
              client->records_n, probe_count(client, KIND_KERNEL));
}

/* 1: a second registration while a buffer of the first client is out */
int ask_register(void)
{
    probe_begin();
    probe_client(&client_a);
    probe_must(cupti.enable(KIND_KERNEL), "cuptiActivityEnable(10)");
    probe_launch(10);
    probe_wait();
    client_say("a before b registers", &client_a);
    probe_client(&client_b);
    probe_say("second registration", "accepted");
    probe_launch(20);
    probe_wait();
    probe_say("flush", "%d", cupti.flush(1));
    client_say("a after", &client_a);
    client_say("b after", &client_b);
    return 0;
}

/* 3: the size of every record this library writes */
int ask_strides(void)
{
    static uint8_t buffer[8192] __attribute__((aligned(64)));
    probe_begin();
    for (uint32_t kind = 1; kind <= 64; kind++) {
        uint8_t *first = NULL, *second = NULL;
        size_t told = 0;
        memset(buffer, 0, sizeof buffer);
        for (size_t at = 0; at < sizeof buffer; at += 8) memcpy(buffer + at, &kind, sizeof kind);
        int result = cupti.next(buffer, sizeof buffer, &first);
        second = first;
        if (result == 0) result = cupti.next(buffer, sizeof buffer, &second);
        int asked = cupti.struct_size != NULL ? cupti.struct_size(kind, 0, &told) : -1;
        if (result == 0)
            probe_say("kind", "%u stride %ld struct-size %ld", kind, (long)(second - first),
                      asked == 0 ? (long)told : -1L);
        else if (result != 21 && result != 999) probe_say("kind", "%u error %d", kind, result);
    }
    return 0;
}

static void *launcher(void *arg)
{
    (void)arg;
    void *context;
    probe_must(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    probe_must(driver.set_current(context), "cuCtxSetCurrent");
    probe_launch(500);
    return NULL;
}

/* 4: on which threads buffers are asked for and handed back */
int ask_threads(void)
{
    uint8_t per_thread = 0xff;
    size_t bytes = sizeof per_thread;
    pthread_t threads[4];
    probe_begin();
    int result = cupti.get_attribute != NULL ? cupti.get_attribute(ATTRIBUTE_PER_THREAD, &bytes, &per_thread) : -1;
    probe_say("attribute 9 (per-thread buffers)", "result %d, value %u", result, per_thread);
    probe_client(&client_a);
    probe_must(cupti.enable(KIND_KERNEL), "enable kernels");
    probe_must(cupti.enable(KIND_DRIVER), "enable driver calls");
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, launcher, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    probe_wait();
    sleep(2); /* does a worker hand buffers back by itself? */
    probe_say("before any flush", "requested %d, completed %d", client_a.requested, client_a.completed);
    cupti.flush(0);
    probe_say("after flush 0", "requested %d, completed %d", client_a.requested, client_a.completed);
    cupti.flush(1);
    client_say("after flush 1", &client_a);
    probe_say("threads that asked for buffers", "%d", client_a.request_tids);
    bool has_main = false;
    for (int i = 0; i < client_a.complete_tids; i++) has_main |= client_a.complete_tid[i] == (uint64_t)getpid();
    probe_say("threads that handed back", "%d, the flushing thread %s", client_a.complete_tids,
              has_main ? "among them" : "not among them");
    return 0;
}

/* The pair read closest together, of many: CUPTI's clock minus ours. */
static int64_t offset_best(int clock)
{
    int64_t best = 0;
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 50; i++) {
        uint64_t theirs = 0, before = probe_now(clock);
        cupti.timestamp(&theirs);
        uint64_t after = probe_now(clock);
        if (after - before < width) {
            width = after - before;
            best = (int64_t)theirs - (int64_t)(before + (after - before) / 2);
        }
    }
    return best;
}

/* One kernel between two reads of CUPTI's clock: its record must lie between them. */
static void kernel_place(const char *when)
{
    uint64_t before = 0, after = 0;
    size_t first = client_a.records_n;
    cupti.timestamp(&before);
    probe_launch(1);
    probe_wait();
    cupti.timestamp(&after);
    cupti.flush(1);
    for (size_t i = first; i < client_a.records_n; i++)
        if (client_a.records[i].kind == KIND_KERNEL)
            probe_say(when, "starts %lld ns after the launch, ends %lld ns before the wait's return, lasts %lld ns",
                      (long long)(client_a.records[i].start - before), (long long)(after - client_a.records[i].end),
                      (long long)(client_a.records[i].end - client_a.records[i].start));
}

/* 8: CUPTI's clock against the host's, and kernels after a long idle time */
int ask_clock(int idle_s)
{
    probe_begin();
    probe_client(&client_a);
    probe_must(cupti.enable(KIND_KERNEL), "enable kernels");
    int64_t realtime = offset_best(CLOCK_REALTIME), monotonic = offset_best(CLOCK_MONOTONIC),
            raw = offset_best(CLOCK_MONOTONIC_RAW);
    probe_say("clock minus CLOCK_REALTIME", "%lld ns", (long long)realtime);
    kernel_place("kernel at once");
    for (int i = 0; i < 3; i++) kernel_place("kernel again");
    sleep((unsigned)idle_s);
    kernel_place("kernel after idle");
    kernel_place("kernel after that");
    probe_say("seconds between", "%d", idle_s);
    probe_say("drift to CLOCK_REALTIME", "%lld ns", (long long)(offset_best(CLOCK_REALTIME) - realtime));
    probe_say("drift to CLOCK_MONOTONIC", "%lld ns", (long long)(offset_best(CLOCK_MONOTONIC) - monotonic));
    probe_say("drift to CLOCK_MONOTONIC_RAW", "%lld ns", (long long)(offset_best(CLOCK_MONOTONIC_RAW) - raw));
    return 0;
}

/* 9: what the threadId of an API record is */
int ask_thread_id(void)
{
    probe_begin();
    probe_client(&client_a);
    probe_must(cupti.enable(KIND_DRIVER), "enable driver calls");
    probe_launch(1);
    probe_wait();
    cupti.flush(1);
    for (size_t i = 0; i < client_a.records_n; i++) {
        if (client_a.records[i].kind != KIND_DRIVER) continue;
        uint32_t id = client_a.records[i].thread;
        probe_say("threadId", "%u; pthread_self low half %u, gettid %u: it is the %s", id,
                  (uint32_t)(uintptr_t)pthread_self(), (uint32_t)gettid(),
                  id == (uint32_t)(uintptr_t)pthread_self() ? "truncated pthread_self"
                  : id == (uint32_t)gettid()                ? "gettid"
                                                            : "neither");
        return 0;
    }
    probe_say("threadId", "no driver record came");
    return 0;
}

static double launch_ns(void)
{
    enum { ROUNDS = 5, LAUNCHES = 400 };
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin = probe_now(CLOCK_MONOTONIC);
        probe_launch(LAUNCHES);
        double each = (double)(probe_now(CLOCK_MONOTONIC) - begin) / LAUNCHES;
        probe_wait();
        best = each < best ? each : best;
    }
    return best;
}

/* 7: what each kind adds to a launch (best of five rounds of 400, the queue empty at the start of each) */
int ask_launch_cost(void)
{
    probe_begin();
    probe_launch(100);
    probe_wait();
    probe_say("ns a launch, nothing enabled", "%.0f", launch_ns());
    probe_client(&client_a);
    probe_must(cupti.enable(KIND_KERNEL), "enable kernels");
    probe_say("ns a launch, kernels", "%.0f", launch_ns());
    probe_must(cupti.enable(KIND_RUNTIME), "enable runtime calls");
    probe_say("ns a launch, kernels and runtime calls", "%.0f", launch_ns());
    if (cupti.enable_driver_api != NULL && cupti.enable_driver_api(CBID_LAUNCH, 1) == 0) {
        probe_say("ns a launch, and cuLaunchKernel alone by EnableDriverApi", "%.0f", launch_ns());
        cupti.enable_driver_api(CBID_LAUNCH, 0);
    }
    probe_must(cupti.enable(KIND_DRIVER), "enable driver calls");
    probe_say("ns a launch, and all driver calls", "%.0f", launch_ns());
    cupti.disable(KIND_DRIVER), cupti.disable(KIND_RUNTIME), cupti.disable(KIND_KERNEL);
    cupti.flush(1);
    probe_say("ns a launch, all disabled again", "%.0f", launch_ns());
    if (cupti.finalize != NULL) probe_say("cuptiFinalize", "%d", cupti.finalize());
    probe_say("ns a launch, after cuptiFinalize", "%.0f", launch_ns());
    return 0;
}

static size_t told(int launches)
{
    size_t before;
    cupti.flush(1);
    before = probe_count(&client_a, KIND_DRIVER);
    probe_launch(launches);
    probe_wait();
    cupti.flush(1);
    return probe_count(&client_a, KIND_DRIVER) - before;
}

/* 11: a call enabled singly, without its kind; and what a kind that is enabled or disabled after that makes of it */
int ask_filters(void)
{
    enum { LAUNCHES = 100 };
    probe_begin();
    if (cupti.enable_driver_api == NULL) {
        probe_say("single calls", "this release has none");
        return 0;
    }
    probe_client(&client_a);
    probe_must(cupti.enable(KIND_KERNEL),
               "enable kernels"); /* as in a window: CUPTI is up, and launches are nobody's yet */
    probe_say("records of 100 launches, nothing of calls enabled", "%zu", told(LAUNCHES));
    probe_must(cupti.enable_driver_api(CBID_LAUNCH, 1), "EnableDriverApi(307, 1)");
    probe_say("records of 100 launches, cuLaunchKernel singly", "%zu", told(LAUNCHES));
    probe_must(cupti.disable(KIND_DRIVER), "disable driver calls");
    probe_say("records of 100 launches, then their kind disabled", "%zu", told(LAUNCHES));
    probe_must(cupti.enable(KIND_DRIVER), "enable driver calls");
    probe_must(cupti.enable_driver_api(CBID_LAUNCH, 0), "EnableDriverApi(307, 0)");
    probe_say("records of 100 launches, their kind without cuLaunchKernel", "%zu", told(LAUNCHES));
    probe_must(cupti.enable(KIND_DRIVER), "enable driver calls again");
    probe_say("records of 100 launches, then their kind enabled again", "%zu", told(LAUNCHES));
    uint64_t begin = probe_now(CLOCK_MONOTONIC);
    int left_out = 0;
    for (uint32_t cbid = 1; cbid < 1024; cbid++)
        left_out += cbid != CBID_LAUNCH && cupti.enable_driver_api(cbid, 0) == 0;
    probe_say("calls left out", "%d, in %.3f ms", left_out, (double)(probe_now(CLOCK_MONOTONIC) - begin) / 1e6);
    probe_say("records of 100 launches, their kind with cuLaunchKernel alone", "%zu", told(LAUNCHES));
    probe_must(cupti.disable(KIND_DRIVER), "disable driver calls");
    probe_must(cupti.enable_driver_api(CBID_LAUNCH, 1), "EnableDriverApi(307, 1)");
    probe_must(cupti.enable_driver_api(CBID_LAUNCH, 0), "EnableDriverApi(307, 0)");
    int requested = client_a.requested;
    probe_must(cupti.disable(KIND_KERNEL), "disable kernels");
    cupti.flush(1);
    probe_say("records of 100 launches, all disabled", "%zu", told(LAUNCHES));
    probe_say("buffers asked for after that", "%d", client_a.requested - requested);
    return 0;
}

static void callback(void *arg, int domain, uint32_t cbid, const void *data)
{
    (void)arg, (void)domain, (void)cbid, (void)data;
}

/* 10: activities beside a subscriber, and a second subscriber */
int ask_subscriber(void)
{
    void *first = NULL, *second = NULL;
    probe_begin();
    probe_say("subscribe", "%d", cupti.subscribe(&first, (void *)(uintptr_t)callback, NULL));
    probe_say("subscribe again", "%d", cupti.subscribe(&second, (void *)(uintptr_t)callback, NULL));
    probe_client(&client_a);
    probe_say("enable kernels beside a subscriber", "%d", cupti.enable(KIND_KERNEL));
    probe_launch(5);
    probe_wait();
    cupti.flush(1);
    client_say("beside a subscriber", &client_a);
    return 0;
}

struct took { /* what one call took in one situation, ns */
    uint64_t most, sum;
    int n;
};

static void took_add(struct took *took, uint64_t begin)
{
    uint64_t ns = probe_now(CLOCK_MONOTONIC) - begin;
    took->sum += ns;
    took->n++;
    if (ns > took->most) took->most = ns;
}

static void took_say(const char *when, const char *call, const struct took *took)
{
    char name[96];
    snprintf(name, sizeof name, "%s, %s", when, call);
    probe_say(name, "mean %.3f ms, most %.3f ms of %d", (double)took->sum / took->n / 1e6, (double)took->most / 1e6,
              took->n);
}

/* Rounds of enable, disable, flush as a window's, with a kernel of so many ns under way at the start of each. */
static void rounds(const char *when, int n, uint64_t spin_ns)
{
    static const uint32_t kinds[] = {KIND_KERNEL, KIND_RUNTIME, KIND_MEMCPY};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    struct took enable = {0}, disable = {0}, flush = {0};
    for (int round = 0; round < n; round++) {
        if (spin_ns > 0) probe_spin(spin_ns);
        for (int i = 0; i < KINDS; i++) {
            uint64_t begin = probe_now(CLOCK_MONOTONIC);
            probe_must(cupti.enable(kinds[i]), "enable");
            took_add(&enable, begin);
        }
        probe_launch(20);
        if (spin_ns > 0) probe_spin(spin_ns);
        uint64_t begin = probe_now(CLOCK_MONOTONIC);
        probe_must(cupti.flush(0), "flush");
        took_add(&flush, begin);
        for (int i = 0; i < KINDS; i++) {
            begin = probe_now(CLOCK_MONOTONIC);
            probe_must(cupti.disable(kinds[i]), "disable");
            took_add(&disable, begin);
        }
    }
    probe_wait();
    took_say(when, "enable", &enable);
    took_say(when, "flush 0", &flush);
    took_say(when, "disable", &disable);
}

static bool launchers_stop;

static void *busy_launcher(void *arg)
{
    (void)arg;
    void *context;
    probe_must(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    probe_must(driver.set_current(context), "cuCtxSetCurrent");
    while (!__atomic_load_n(&launchers_stop, __ATOMIC_RELAXED)) {
        probe_launch(20);
        probe_wait();
    }
    return NULL;
}

static void *waiter(void *arg)
{
    (void)arg;
    void *context;
    probe_must(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    probe_must(driver.set_current(context), "cuCtxSetCurrent");
    while (!__atomic_load_n(&launchers_stop, __ATOMIC_RELAXED)) probe_wait();
    return NULL;
}

static void rounds_beside(const char *when, int n, uint64_t spin_ns, void *(*function)(void *), int threads_n)
{
    pthread_t threads[8];
    __atomic_store_n(&launchers_stop, false, __ATOMIC_RELAXED);
    for (int i = 0; i < threads_n; i++) pthread_create(&threads[i], NULL, function, NULL);
    rounds(when, n, spin_ns);
    __atomic_store_n(&launchers_stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < threads_n; i++) pthread_join(threads[i], NULL);
}

/* What a window's calls into CUPTI take: on an idle GPU, while a kernel runs, while others launch or wait for it. */
int ask_slow_calls(void)
{
    enum { SPIN_NS = 500 * 1000 * 1000 };
    probe_begin();
    probe_client(&client_a);
    rounds("first", 1, 0);
    rounds("idle", 50, 0);
    rounds("a kernel of 500 ms under way", 3, SPIN_NS);
    rounds_beside("a thread waits for such a kernel", 3, SPIN_NS, waiter, 1);
    rounds_beside("4 threads launch", 1000, 0, busy_launcher, 4);
    probe_say("buffers", "%d asked for, %d handed back", client_a.requested, client_a.completed);
    return 0;
}

static uint64_t soak_kernels, soak_without_time, soak_bytes;

static void soak_request(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = aligned_alloc(64, 4 << 20);
    *bytes = 4 << 20;
    *records = 0;
}

static void soak_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    uint8_t *record = NULL;
    (void)context, (void)stream, (void)bytes;
    while (valid > 0 && cupti.next(buffer, valid, &record) == 0) {
        if (probe_u32(record, 0) != KIND_KERNEL) continue;
        soak_kernels++;
        soak_without_time += probe_u64(record, 16) == 0 || probe_u64(record, 24) <= probe_u64(record, 16);
    }
    soak_bytes += valid;
    free(buffer);
}

static void soak_say(uint64_t begin)
{
    size_t available = 0, total = 0;
    driver.memory(&available, &total);
    probe_say("soak", "%.1f s: %.1f million kernels, %llu without times, %.0f MB of records, %.0f MB of the GPU used",
              (double)(probe_now(CLOCK_MONOTONIC) - begin) / 1e9, (double)soak_kernels / 1e6,
              (unsigned long long)soak_without_time, (double)soak_bytes / 1e6, (double)(total - available) / 1e6);
}

/* Kernels of a graph, as many as the GPU can do in so many seconds, in one recording. */
int ask_soak(int seconds)
{
    enum { NODES = 1000, REPLAYS = 200 };
    void *stream = NULL, *graph = NULL, *executable = NULL;
    probe_begin();
    probe_must(driver.stream_create(&stream, 1), "cuStreamCreate");
    probe_must(cupti.register_callbacks(soak_request, soak_complete), "cuptiActivityRegisterCallbacks");
    probe_must(driver.capture_begin(stream, 2), "cuStreamBeginCapture");
    probe_launch_on(stream, NODES);
    probe_must(driver.capture_end(stream, &graph), "cuStreamEndCapture");
    probe_must(driver.graph_instantiate(&executable, graph, 0), "cuGraphInstantiate");
    probe_must(cupti.enable(KIND_KERNEL), "enable kernels");
    uint64_t begin = probe_now(CLOCK_MONOTONIC);
    for (int round = 0; probe_now(CLOCK_MONOTONIC) - begin < (uint64_t)seconds * 1000000000u; round++) {
        for (int i = 0; i < REPLAYS; i++) probe_must(driver.graph_launch(executable, stream), "cuGraphLaunch");
        probe_wait();
        if (round % 10 != 0) continue;
        cupti.flush(0);
        soak_say(begin);
    }
    cupti.flush(1);
    soak_say(begin);
    return 0;
}

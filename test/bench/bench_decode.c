// SPDX-License-Identifier: Apache-2.0
/*
 * bench_decode.c - CUPTI's buffers into the spool: records a second on one core, and whether memory stays flat
 *
 * usage: bench_decode [MILLION_RECORDS]    10 by default; exit 1 when it is slower than FLOOR records a second or grows
 *
 * Buffers of the pool as CUPTI 13 fills them: calls, kernels of 200 names, copies. What kprof-cuda does with one is
 * timed; a window is closed and its chunks taken back after each million, as with a schedule.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/cupti_internal.h"

enum { NAMES = 200, KERNEL_BYTES = 232, API_BYTES = 40, COPY_BYTES = 96, FLOOR = 5000000, GROWTH_KB = 1024 };

static char names[NAMES][160];
static uint64_t clock_now = 1790857026000000000u;
static uint32_t correlation;

static void put32(uint8_t *r, size_t at, uint32_t v) { memcpy(r + at, &v, 4); }
static void put64(uint8_t *r, size_t at, uint64_t v) { memcpy(r + at, &v, 8); }

static size_t call_fill(uint8_t *r)
{
    put32(r, 0, KP_CUPTI_RUNTIME);
    put32(r, KP_AT_API_cbid, 211);
    put64(r, KP_AT_API_start, clock_now += 500);
    put64(r, KP_AT_API_end, clock_now += 2500);
    put32(r, KP_AT_API_threadId, 4711 + correlation % 4);
    put32(r, KP_AT_API_correlationId, ++correlation);
    return API_BYTES;
}

static size_t kernel_fill(uint8_t *r)
{
    const char *name = names[correlation % NAMES];
    put32(r, 0, KP_CUPTI_CONCURRENT_KERNEL);
    put64(r, KP_AT_KERNEL_start, clock_now + 3000);
    put64(r, KP_AT_KERNEL_end, clock_now + 8000);
    for (size_t at = KP_AT_KERNEL_gridX; at <= KP_AT_KERNEL_blockZ; at += 4) put32(r, at, 1 + correlation % 128);
    put32(r, KP_AT_KERNEL_streamId, 7);
    put32(r, KP_AT_KERNEL_correlationId, correlation);
    memcpy(r + KP_AT_KERNEL_name, &name, sizeof name);
    return KERNEL_BYTES;
}

static size_t copy_fill(uint8_t *r)
{
    put32(r, 0, KP_CUPTI_MEMCPY);
    r[KP_AT_MEMCPY_copyKind] = 1;
    put64(r, KP_AT_MEMCPY_bytes, 4096);
    put64(r, KP_AT_MEMCPY_start, clock_now + 100);
    put64(r, KP_AT_MEMCPY_end, clock_now + 900);
    put32(r, KP_AT_MEMCPY_correlationId, correlation);
    return COPY_BYTES;
}

/* One buffer, full; how many records. */
static uint64_t fill(uint8_t *buffer, size_t bytes, size_t *valid)
{
    size_t at = 0;
    uint64_t n = 0;
    for (; at + API_BYTES + KERNEL_BYTES + COPY_BYTES <= bytes; n += 2) {
        at += call_fill(buffer + at);
        at += kernel_fill(buffer + at);
        if (correlation % 8) continue;
        at += copy_fill(buffer + at);
        n++;
    }
    *valid = at;
    return n;
}

static void window(uint32_t cycle)
{
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON | KP_GATE_RECORD));
    kp_lane_collect(cycle);
    if (cycle == 1) return;
    kp_lane_close(cycle - 1);
    if (kp_record_quiesce(cycle - 1, 1000) == 0) kp_record_recycle(cycle - 1);
}

/* Memory of the process's own: the pages of the spool belong to the file. */
static long resident_kb(void)
{
    char line[128];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kb < 0 && fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %ld", &kb);
    if (!f || kb < 0) exit(2);
    fclose(f);
    return kb;
}

static void prepare(void)
{
    char dir[] = "/tmp/kprof-bench-decode-XXXXXX";
    struct kp_record_options options = {.dir = mkdtemp(dir), .max_bytes = (uint64_t)768 << 20, .text = ""};
    kp_clock_init();
    if (kp_gate_init() != 0 || kp_record_open(&options) != 0 || kp_buffer_setup() != 0 || kp_lane_setup() != 0) exit(2);
    rmdir(dir); /* fails: the spool is in it, and goes at the end */
    kp_sizes[KP_CUPTI_RUNTIME] = API_BYTES;
    kp_sizes[KP_CUPTI_CONCURRENT_KERNEL] = KERNEL_BYTES;
    kp_sizes[KP_CUPTI_MEMCPY] = COPY_BYTES;
    kp_calls[0][211] = (struct kp_cupti_call){.name = "cudaLaunchKernel", .len = 16, .what = KP_CALL_LAUNCH};
    kp_store_relaxed(&kp_lane_ids_are_tids, true);
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i],
                 "_ZN2at6native29vectorized_elementwise_kernelILi%dENS0_11FUNC_NAMEIfEESt5arrayIPcLm2EEEEviT0_T1_", i);
    kp_cupti_set_state(KP_CUPTI_STATE_ARMED);
}

int main(int argc, char **argv)
{
    const uint64_t wanted = (uint64_t)(argc > 1 ? atoi(argv[1]) : 10) * 1000000;
    uint64_t done = 0, taken_ns = 0, windows = 0;
    long first_kb = 0;
    prepare();
    while (done < wanted) {
        uint8_t *buffer;
        size_t bytes, most, valid;
        if (done / 1000000 >= windows) {
            window((uint32_t)++windows);
            if (windows == 3) first_kb = resident_kb();
            struct timespec nap = {.tv_nsec = 100000000};
            nanosleep(&nap, NULL); /* the writer lays chunks ready */
        }
        kp_buffer_request(&buffer, &bytes, &most);
        uint64_t n = fill(buffer, bytes, &valid);
        uint64_t began = kp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        kp_lane_decode(buffer, valid, true);
        memset(buffer, 0, valid);
        taken_ns += kp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
        kp_buffer_complete(NULL, 0, buffer, bytes, 0);
        done += n;
    }
    const double rate = (double)done * 1e9 / (double)taken_ns;
    const long grown_kb = resident_kb() - first_kb;
    printf("%llu records, %.1f ns each, %.2f million a second on one core, %llu lost, memory %+ld kB\n",
           (unsigned long long)done, (double)taken_ns / (double)done, rate / 1e6, (unsigned long long)kp_loss_total(),
           grown_kb);
    (void)kp_record_close(true, 10000);
    return rate < FLOOR || grown_kb > GROWTH_KB || kp_loss_total() != 0;
}

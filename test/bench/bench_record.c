// SPDX-License-Identifier: Apache-2.0
/*
 * bench_record.c - what one record and one name cost a host thread, and what rate the writer keeps up with
 *
 * Each figure is a ratio to a loop of the same process: storing the same 24 bytes to plain memory, or reading the
 * clock once. usage: bench_record [seconds per sustained rate, 2 by default]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/record/kp_record.h"

/* 6 MB of records a try: less than the writer keeps ready, so that no try is cheap by dropping */
enum { N = 250000, TRIES = 7 };

static char memory[64 << 20];

static uint64_t now_ns(void) { return kp_clock_ns(CLOCK_MONOTONIC); }

static double plain(struct kp_thread *t)
{
    char *p = memory;
    (void)t;
    for (uint32_t i = 0; i < N; i++, p += sizeof(struct kp_rec_op)) {
        if (p + 64 > memory + sizeof memory) p = memory;
        *(struct kp_rec_op *)p = (struct kp_rec_op){
            .head = {.kind = 1, .size = sizeof(struct kp_rec_op), .name = i}, .start = i, .ticks = i};
        __asm__ volatile("" ::: "memory");
    }
    return 0;
}

static double put(struct kp_thread *t)
{
    for (uint32_t i = 0; i < N; i++) {
        kp_store_relaxed(&t->inside, 1);
        kp_signal_fence();
        uint64_t gate = kp_gate_get();
        struct kp_rec_op *r = kp_put_reserve(t, gate, sizeof *r, KP_KIND_OP);
        if (r) {
            *r = (struct kp_rec_op){.head = {.kind = KP_KIND_OP, .size = sizeof *r, .name = i}, .start = i, .ticks = i};
            kp_put_commit(t, sizeof *r);
        }
        kp_signal_fence();
        kp_store_release(&t->inside, 0);
    }
    return 0;
}

static char names[512][64];
static uint32_t sizes[512];

static double cached(struct kp_thread *t)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < N; i++) {
        const char *key = names[i & 511];
        uint32_t id = kp_name_cached(t, key);
        if (id == 0) kp_name_cache(t, key, id = kp_name_intern(t, key, sizes[i & 511]));
        sum += id;
    }
    return sum;
}

static double intern(struct kp_thread *t)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < N; i++) sum += kp_name_intern(t, names[i & 511], sizes[i & 511]);
    return sum;
}

static double clock_one(struct kp_thread *t)
{
    uint64_t sum = 0;
    (void)t;
    for (uint32_t i = 0; i < N; i++) sum += kp_ticks();
    return (double)sum;
}

static double sink;
/* Best of some tries, ns a call; `cycle` moves on and what was written is thrown away between. */
static double best_ns(double (*fn)(struct kp_thread *))
{
    static uint32_t cycle = 1;
    double best = 1e9;
    for (int i = 0; i < TRIES; i++, cycle++) {
        struct timespec rest = {0, 120000000};
        kp_gate_set(kp_gate_make(cycle, KP_GATE_ON | KP_GATE_RECORD));
        nanosleep(&rest, NULL); /* the stock is full */
        uint64_t begin = now_ns();
        sink += fn(kp_thread_get());
        double ns = (double)(now_ns() - begin) / N;
        if (ns < best) best = ns;
        kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
        if (kp_record_quiesce(cycle, 1000) == 0) kp_record_recycle(cycle);
    }
    return best;
}

/* 40-byte ops that have ended, at an even rate on one thread; per mille that were dropped after the first 100 ms. */
static void sustain(double million_a_second, double seconds)
{
    struct kp_thread *t = kp_thread_get();
    static uint32_t cycle = 1000;
    uint64_t begin = now_ns(), count = 0, dropped = 0, early = 0, want, end = (uint64_t)(seconds * 1e9), spent;
    kp_gate_set(kp_gate_make(++cycle, KP_GATE_ON | KP_GATE_RECORD));
    while ((spent = now_ns() - begin) < end) {
        want = (uint64_t)((double)spent * million_a_second / 1000);
        for (; count < want; count++) {
            struct kp_rec_op *r = kp_put_reserve(t, kp_gate_get(), 40, KP_KIND_OP);
            if (r == NULL) {
                if (spent < 100000000) early++;
                else dropped++;
                continue;
            }
            *r = (struct kp_rec_op){.head = {.kind = KP_KIND_OP, .size = 40}, .start = begin, .ticks = 1};
            kp_put_commit(t, 40);
        }
    }
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    if (kp_record_quiesce(cycle, 1000) == 0) kp_record_recycle(cycle);
    printf("sustained %4.1f M/s: %.1f M records in %.1f s, dropped %.3f per mille (first 100 ms: %llu records)\n",
           million_a_second, (double)count / 1e6, seconds, 1000.0 * (double)dropped / (double)count,
           (unsigned long long)early);
}

int main(int argc, char **argv)
{
    const char *dir = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/kprof-bench-%d", dir && *dir ? dir : "/tmp", (int)getpid());
    struct kp_record_options o = {.dir = path, .max_bytes = (uint64_t)4096 << 20};
    kp_clock_init();
    if (kp_gate_init() != 0 || kp_record_open(&o) != 0) return 1;
    for (int i = 0; i < 512; i++)
        sizes[i] = (uint32_t)snprintf(names[i], sizeof names[i], "aten::some_operator_%d", i * 7919);
    plain(NULL); /* touch the memory */
    double base = best_ns(plain), tick = best_ns(clock_one), one = best_ns(put), hit = best_ns(cached),
           look = best_ns(intern);
    printf("plain store of 24 bytes      %6.2f ns\n", base);
    printf("one stamp (%s)              %6.2f ns\n", kp_load_relaxed(&kp_clock_is_tsc) ? "tsc" : "mono", tick);
    printf("reserve + fill + commit      %6.2f ns  %5.2f x plain store, %4.2f x stamp\n", one, one / base, one / tick);
    printf("name by address (cached)     %6.2f ns  %5.2f x stamp\n", hit, hit / tick);
    printf("name by text (hash, table)   %6.2f ns  %5.2f x stamp\n", look, look / tick);
    printf("lost so far: %llu\n", (unsigned long long)kp_loss_total());
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    double rates[] = {1, 2, 5};
    for (int i = 0; i < 3; i++) sustain(rates[i], seconds);
    kp_gate_set(0);
    (void)kp_record_close(true, 10000);
    rmdir(path);
    return sink < 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * bench_ops.c - ns a pair of torch's callbacks costs, bare and with three inputs, on a RecordFunction made by hand
 *
 * Once in a loop that finds all in the first level caches, and once after other code and data went through these and
 * through the TLB, as between two ops of a training.
 *
 * usage: bench_ops [PAIRS [COLD_PAIRS [KB]]]     KB: so much data goes through the caches
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "preload/hook/hook.h"
#include "schedule/kp_schedule.h"
#include "test/doubles/torch_fields.h"

int kp_hook_add_taps_own(const struct kp_tap *taps, uint32_t tap_count) /* as boot.c, left out */
{
    (void)taps, (void)tap_count;
    return -EBUSY;
}

static const struct {
    const char *text;
    uint64_t len, buffer[2];
} schema[2] = {{"aten::add", 9, {0}}, {"Tensor", 6, {0}}};
struct value {
    uint64_t payload;
    uint32_t tag, pad;
};
static uint8_t rf[512], tensor[2][256];
static struct value values[3];

static void rf_make(void)
{
    static const int64_t sizes[] = {4, 4}, strides[] = {4, 1};
    const struct kp_torch_layout *l = &kp_torch.layout;
    for (int i = 0; i < 2; i++) {
        mini_tensor(tensor[i], 2, sizes, strides, 6);
        values[i] = (struct value){(uintptr_t)tensor[i], l->tag_tensor, 0};
    }
    values[2] = (struct value){1, l->tag_int, 0};
    mini_word(rf, l->rf_fn, (uintptr_t)schema);
    rf[l->rf_schema] = 1;
    mini_word(rf, l->rf_seq, UINT64_MAX);
    mini_word(rf, l->rf_inputs, (uintptr_t)values);
    mini_word(rf, l->rf_inputs + 8u, 3);
}

static double pair_ns(int n)
{
    struct kp_torch_slot *context;
    uint64_t begin = kp_clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < n; i++) {
        kp_torch_op_start((void **)&context, rf);
        kp_torch_op_end(rf, context);
        if (context) ((void (*const *)(struct kp_torch_slot *))context->vptr)[1](context);
    }
    return (double)(kp_clock_ns(CLOCK_MONOTONIC) - begin) / n;
}

enum { CODE_BYTES = 128 << 10, PAGES = 256, PAGE = 4096, LINE = 64 };
static uint8_t *others_code, *others_data;
static size_t data_bytes = (size_t)128 << 10;

/* Code that does nothing for CODE_BYTES, and data of data_bytes. False: no memory. */
static bool others_make(void)
{
    static const uint8_t nop[8] = {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}; /* x86-64 */
    others_code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    others_data = mmap(NULL, data_bytes + PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (others_code == MAP_FAILED || others_data == MAP_FAILED) return false;
    for (int i = 0; i < CODE_BYTES; i += 8) memcpy(others_code + i, nop, sizeof nop);
    others_code[CODE_BYTES - 1] = 0xc3; /* the last byte of a nop's address, so end one earlier */
    memset(others_code + CODE_BYTES - 8, 0x90, 7);
    memset(others_data, 1, data_bytes + PAGES * PAGE);
    return mprotect(others_code, CODE_BYTES, PROT_READ | PROT_EXEC) == 0;
}

static uint64_t lines_read(const void *from, size_t bytes)
{
    uint64_t sum = 0;
    const _Atomic uint8_t *at = from;
    for (size_t i = 0; i < bytes; i += LINE) sum += kp_load_relaxed(&at[i]);
    return sum;
}

/* Afterwards the range and its tensors are near again: torch has just written or used them. */
static uint64_t others_run(void)
{
    uint64_t sum = lines_read(others_data, data_bytes);
    for (int i = 0; i < PAGES; i++)
        sum += kp_load_relaxed((_Atomic uint8_t *)&others_data[data_bytes + (size_t)(i * PAGE + i % 64 * LINE)]);
    ((void (*)(void))(uintptr_t)others_code)();
    return sum + lines_read(rf, sizeof rf) + lines_read(values, sizeof values) + lines_read(tensor, sizeof tensor);
}

static __attribute__((noinline)) void **empty_start(void **context, const uint8_t *record)
{
    (void)record;
    *context = NULL;
    return context;
}

static __attribute__((noinline)) void empty_end(const uint8_t *record, struct kp_torch_slot *slot)
{
    (void)slot, (void)record;
}

struct pair {
    void **(*start)(void **context, const uint8_t *rf);
    void (*end)(const uint8_t *rf, struct kp_torch_slot *slot);
};
static const struct pair ours = {kp_torch_op_start, kp_torch_op_end}, empty = {empty_start, empty_end};

static uint64_t now_exact(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    const uint64_t ticks = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return ticks;
#else
    return kp_ticks();
#endif
}

/* Ticks of a pair. The compiler does not know whose calls they are, so it inlines none. */
static uint64_t pair_cold_ticks(const struct pair *how)
{
    struct kp_torch_slot *context;
    others_run();
    uint64_t begin = now_exact();
    how->start((void **)&context, rf);
    uint64_t sum = now_exact() - begin;
    others_run();
    begin = now_exact();
    how->end(rf, context);
    if (context) ((void (*const *)(struct kp_torch_slot *))context->vptr)[1](context);
    return sum + now_exact() - begin;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/*
 * Mean ticks of the pairs from the lowest 20th to the lowest quarter: what others do on the machine only ever adds, and
 * the TSC may move by 10 ns at once.
 */
static double cold_ticks(const struct pair *how, int n)
{
    static uint64_t seen[20000];
    for (int i = 0; i < n; i++) seen[i] = pair_cold_ticks(how);
    qsort(seen, (size_t)n, sizeof *seen, by_size);
    uint64_t sum = 0;
    for (int i = n / 20; i < n / 4; i++) sum += seen[i];
    return (double)sum / (n / 4 - n / 20);
}

static double cold_ns(uint32_t bits, int n)
{
    static uint32_t cycle = 1000000;
    struct pair volatile const how[2] = {ours, empty};
    struct kp_clock_pair from, to;
    kp_gate_set(kp_gate_make(++cycle, KP_GATE_ON | bits));
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    kp_clock_sample(&from);
    const struct pair with = how[0], without = how[1];
    const double ticks = cold_ticks(&with, n), none = cold_ticks(&without, n);
    kp_clock_sample(&to);
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    kp_record_quiesce(cycle, 1000);
    kp_record_recycle(cycle);
    return (ticks - none) * (double)(to.mono_ns - from.mono_ns) / (double)(to.ticks - from.ticks);
}

static double stamp_ns(int n)
{
    double best = 1e9;
    static volatile uint64_t sum;
    for (int round = 0; round < 30; round++) {
        const uint64_t begin = kp_clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < n; i++) sum = sum + kp_ticks();
        const double ns = (double)(kp_clock_ns(CLOCK_MONOTONIC) - begin) / n;
        if (ns < best) best = ns;
    }
    return best;
}

static double best_of(uint32_t bits, int rounds, int n)
{
    static uint32_t cycle;
    double best = 1e9;
    for (int i = 0; i < rounds; i++) {
        kp_gate_set(kp_gate_make(++cycle, KP_GATE_ON | bits));
        struct timespec nap = {0, 20000000}; /* the writer makes the next chunks ready */
        nanosleep(&nap, NULL);
        double ns = pair_ns(n);
        kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
        kp_record_quiesce(cycle, 1000);
        kp_record_recycle(cycle);
        if (ns < best) best = ns;
    }
    return best;
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/kprof-bench-XXXXXX";
    struct kp_torch_api api = torch_fields(215, 32);
    struct kp_schedule none = {.set = false};
    struct kp_step_rule rule = {.kind = KP_RULE_API};
    int n = argc > 1 ? atoi(argv[1]) : 20000, cold = argc > 2 ? atoi(argv[2]) : 3000;
    if (argc > 3) data_bytes = (size_t)atoi(argv[3]) << 10;
    kp_clock_init();
    if (!mkdtemp(dir) || kp_gate_init() || kp_steps_init(&none, &rule)) return 1;
    if (kp_record_open(&(struct kp_record_options){.dir = dir, .max_bytes = 1u << 30, .text = ""})) return 1;
    kp_torch.api = api;
    kp_torch_layout_make(&kp_torch.layout, 215, 32);
    mini.at = kp_torch.layout;
    rf_make();
    double off = best_of(0, 10, n), warm = best_of(KP_GATE_WARM, 10, n), bare = best_of(KP_GATE_RECORD, 30, n);
    double shapes = best_of(KP_GATE_RECORD | KP_GATE_SHAPES, 30, n);
    printf("ns a pair of callbacks: gate shut %.1f, warming up %.1f, bare %.1f, with 3 inputs %.1f; a stamp %.1f\n",
           off, warm, bare, shapes, stamp_ns(n));
    if (!others_make()) return 1;
    printf("ns a pair more than an empty one, caches used by others in between: gate shut %.1f, warming up %.1f, bare "
           "%.1f, "
           "with 3 inputs %.1f\n",
           cold_ns(0, cold), cold_ns(KP_GATE_WARM, cold), cold_ns(KP_GATE_RECORD, 2 * cold),
           cold_ns(KP_GATE_RECORD | KP_GATE_SHAPES, 2 * cold));
    (void)kp_record_close(true, 10000);
    return rmdir(dir);
}

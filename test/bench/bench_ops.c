// SPDX-License-Identifier: Apache-2.0
/* bench_ops.c - ns a pair of torch's callbacks costs, bare and with three inputs, on a RecordFunction made by hand */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
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
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    kp_clock_init();
    if (!mkdtemp(dir) || kp_gate_init() || kp_steps_init(&none, &rule)) return 1;
    if (kp_record_open(&(struct kp_record_options){.dir = dir, .max_bytes = 1u << 30, .text = ""})) return 1;
    kp_torch.api = api;
    kp_torch_layout_make(&kp_torch.layout, 215, 32);
    mini.at = kp_torch.layout;
    rf_make();
    uint64_t before = kp_clock_ns(CLOCK_MONOTONIC), sum = 0;
    for (int i = 0; i < 2000000; i++) sum += kp_ticks();
    double stamp = (double)(kp_clock_ns(CLOCK_MONOTONIC) - before) / 2000000;
    double off = best_of(0, 10, n), warm = best_of(KP_GATE_WARM, 10, n), bare = best_of(KP_GATE_RECORD, 30, n);
    double shapes = best_of(KP_GATE_RECORD | KP_GATE_SHAPES, 30, n);
    printf("ns a pair of callbacks: gate shut %.1f, warming up %.1f, bare %.1f, with 3 inputs %.1f; a stamp %.1f%s\n",
           off, warm, bare, shapes, stamp, sum ? "" : "!");
    kp_record_close(true);
    return rmdir(dir);
}

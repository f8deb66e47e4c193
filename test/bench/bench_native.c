// SPDX-License-Identifier: Apache-2.0
/* bench_native.c - what a machine code stack costs, against the compiler's own unwinder; prints ns a stack and ns a
 * frame */
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/record/kp_record.h"
#include "preload/unwind/kp_unwind.h"

enum { ROUNDS = 20000 };
static volatile int sink;

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *n)
{
    sink += (int)_Unwind_GetIP(context);
    ++*(int *)n;
    return _URC_NO_REASON;
}

static void measure(const char *what, int how)
{
    uintptr_t frames[KP_UNWIND_DEPTH];
    struct kp_thread *t = kp_thread_get();
    uint64_t best = UINT64_MAX;
    int n = 0;
    for (int part = 0; part < 10; part++) {
        const uint64_t begin = kp_clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < ROUNDS / 10; i++) {
            if (how == 0) n = kp_unwind_walk(frames, KP_UNWIND_DEPTH);
            else if (how == 1) sink += (int)kp_unwind_stack(t);
            else n = 0, _Unwind_Backtrace(count, &n);
        }
        const uint64_t ns = kp_clock_ns(CLOCK_MONOTONIC) - begin;
        if (ns < best) best = ns;
    }
    printf("%-22s %8.1f ns", what, (double)best / (ROUNDS / 10));
    if (how != 1) printf("  %3d frames  %6.2f ns a frame", n, (double)best / (ROUNDS / 10) / n);
    printf("\n");
}

static __attribute__((noinline, optimize("omit-frame-pointer"))) int deep(int n)
{
    if (n) sink += deep(n - 1);
    else {
        measure("kp_unwind_walk", 0);
        measure("kp_unwind_stack", 1);
        measure("_Unwind_Backtrace", 2);
    }
    return sink;
}

int main(int argc, char **argv)
{
    struct kp_record_options options = {.dir = argc > 1 ? argv[1] : "/tmp", .max_bytes = 64 << 20, .text = ""};
    kp_clock_init();
    if (kp_record_open(&options)) return 1;
    kp_unwind_setup();
    deep(16);
    deep(60);
    (void)kp_record_close(true, 10000);
    return 0;
}

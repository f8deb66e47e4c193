// SPDX-License-Identifier: Apache-2.0
/* advised.h - what is advised of a trace of a few events, for tests of the rules */
#pragma once

#include "export/answers/advise/advice.h"
#include "test/unit/tree/little_trace.h"

#define WORKERS "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

static struct kp_advice advise(struct little *t)
{
    struct kp_advice advice;
    assert_int_equal(choose(t, &everything), 0);
    kp_advice_make(&advice, &t->tree, &t->chosen);
    return advice;
}

__attribute__((unused)) static void step_event(struct little *t, int step)
{
    numbered_step(t, step + 1, 100 * step, 100);
}

__attribute__((unused)) static void launch_by(struct little *t, const char *name, int id, int call, int lasts,
                                              int start, int dur)
{
    char args[64];
    snprintf(args, sizeof args, "\"correlation\":%d", id);
    event(t, "cuda_runtime", name, 1, call, lasts, args);
    snprintf(args, sizeof args, "\"device\":0,\"stream\":7,\"correlation\":%d", id);
    event(t, "kernel", "gemm", 7, start, dur, args);
}

__attribute__((unused)) static void launch(struct little *t, int id, int call, int start, int dur)
{
    launch_by(t, "cudaLaunchKernel", id, call, 5, start, dur);
}

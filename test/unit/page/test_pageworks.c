// SPDX-License-Identifier: Apache-2.0
/* test_pageworks.c - work of a GPU is told with its launch, what it moves and its op */
#include "test/unit/page/little_page.h"

enum { NODES_MOST = 16 };

/* What the page tells of the node of this name; `op`: the name of the op that it leads to, or "". */
static void told(struct little *t, const char *name, const char *text, const char *op)
{
    uint32_t positions[NODES_MOST], order[NODES_MOST], at = NODES_MOST;
    struct kp_page page = page_make(t);
    const uint32_t count = (uint32_t)page.tree->count;
    assert_true(count <= NODES_MOST);
    for (uint32_t i = 0; i < count; i++) {
        positions[i] = order[i] = i;
        if (strcmp(kp_kineto_text(t->trace, t->tree.nodes[i].name), name) == 0) at = i;
    }
    kp_page_works_put(&page, positions, order, count);
    const uint32_t work = column_at(&page, "work", at), leads = column_at(&page, "op", at);
    assert_string_equal(work ? kp_kineto_text(t->trace, page.texts.ids[work - 1]) : "", text);
    assert_string_equal(leads ? kp_kineto_text(t->trace, t->tree.nodes[leads - 1].name) : "", op);
    page_fini(&page);
}

static void launch_make(struct little *t)
{
    event(t, "cpu_op", "aten::mm", 1, 0, 30, "\"External id\":1");
    event(t, "cuda_runtime", "cudaLaunchKernel", 1, 5, 10, "\"External id\":1,\"correlation\":9");
    event(t, "kernel", "gemm", 7, 40, 15,
          "\"External id\":1,\"correlation\":9,\"registers per thread\":40,\"local memory per thread\":24,\"shared "
          "memory\":49152,\"grid\":[12,3,1],"
          "\"block\":[128,1,1],\"est. achieved occupancy %\":25");
    trace_of(t, "gpu_memcpy 'Memcpy HtoD (Pinned -> Device)'@7 60 2 corr=9 bytes=4096; kernel older@7 1 2 corr=3; "
                "kernel bare@7 80 2");
}

static void a_kernel_has_its_launch_and_its_op(void **state)
{
    launch_make(*state);
    told(*state, "gemm",
         "grid 12 x 3 x 1; block 128 x 1 x 1; 40 registers a thread; 24 bytes of them or arrays in memory; 48.00 KiB "
         "shared memory a block; "
         "est. occupancy 25 %",
         "aten::mm");
}

static void a_copy_has_its_bytes_and_speed(void **state)
{
    launch_make(*state);
    told(*state, "Memcpy HtoD (Pinned -> Device)", "4.00 KiB; 2.05 GB/s", "");
}

static void what_was_launched_before_is_told(void **state)
{
    launch_make(*state);
    told(*state, "older", "launched before the recording", "");
}

static void what_the_file_does_not_say_is_not_told(void **state)
{
    launch_make(*state);
    told(*state, "bare", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_kernel_has_its_launch_and_its_op),
        LITTLE(a_copy_has_its_bytes_and_speed),
        LITTLE(what_was_launched_before_is_told),
        LITTLE(what_the_file_does_not_say_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

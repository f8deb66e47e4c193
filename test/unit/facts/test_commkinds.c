// SPDX-License-Identifier: Apache-2.0
/* test_commkinds.c - what ranks communicate for, by the names of their collectives */
#include "export/read/facts/comm/commkinds.h"

#include "test/unit/tree/little_trace.h"

struct call {
    const char *cat, *name;
    int us;
};

/* NULL ends the calls. */
static enum kp_commkind kind_of(void **state, const struct call *calls)
{
    struct kp_commkinds kinds = {0};
    struct little *t = *state;
    for (int at = 0; calls->name; at += 100, calls++) event(t, calls->cat, calls->name, 1, at, calls->us, "");
    assert_int_equal(choose(t, &everything), 0);
    kp_commkinds_add(&kinds, &t->tree, &t->chosen.spans);
    const enum kp_commkind kind = kp_commkinds_most(&kinds);
    little_teardown(state);
    little_setup(state);
    return kind;
}

static void collectives_tell_what_they_are_for(void **state)
{
    static const struct {
        struct call calls[4];
        enum kp_commkind kind;
    } rows[] = {
        {{{"user_annotation", "gloo:all_reduce", 50}, {"user_annotation", "gloo:barrier", 90}}, KP_COMM_REDUCE},
        {{{"user_annotation", "gloo:_all_gather_base", 50}, {"user_annotation", "gloo:all_reduce", 9}}, KP_COMM_GATHER},
        {{{"cpu_op", "_c10d_functional::all_to_all_single", 50}, {"user_annotation", "gloo:all_reduce", 9}},
         KP_COMM_EXCHANGE},
        {{{"user_annotation", "gloo:recv", 50}, {"user_annotation", "gloo:send", 5}}, KP_COMM_STAGES},
        {{{"cpu_op", "_c10d_functional::all_reduce", 50}, {"cpu_op", "_c10d_functional::wait_tensor", 90}},
         KP_COMM_TENSOR},
        {{{"cpu_op", "_c10d_functional::all_reduce", 50}, {"user_annotation", "DistributedDataParallel.forward", 90}},
         KP_COMM_REDUCE},
        {{{"kernel", "ncclDevKernel_SendRecv", 50}, {"user_annotation", "nccl:all_to_all", 5}}, KP_COMM_EXCHANGE},
        {{{"kernel", "ncclDevKernel_SendRecv", 50}, {"user_annotation", "nccl:send", 5}}, KP_COMM_STAGES},
        {{{"kernel", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", 50}}, KP_COMM_GATHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const enum kp_commkind kind = kind_of(state, rows[i].calls);
        if (kind != rows[i].kind) fail_msg("%s: %d", rows[i].calls[0].name, (int)kind);
    }
}

static void only_gradients_of_ddp_are_advised_buckets(void **state)
{
    (void)state;
    for (int row = 0; row < 2 * KP_COMM_KINDS; row++) {
        const enum kp_commkind kind = (enum kp_commkind)(row / 2);
        struct kp_commkinds kinds = {.has_data_parallel = row % 2};
        kinds.ns[kind] = 9;
        const bool is_ddp = kp_commkinds_most(&kinds) == KP_COMM_REDUCE && row % 2;
        assert_true((strstr(kp_commkinds_less(&kinds), "no_sync") != NULL) == is_ddp);
        assert_true((strstr(kp_commkinds_overlap(&kinds), "bucket_cap_mb") != NULL) == is_ddp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {LITTLE(collectives_tell_what_they_are_for),
                                       LITTLE(only_gradients_of_ddp_are_advised_buckets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

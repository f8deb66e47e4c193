// SPDX-License-Identifier: Apache-2.0
/* test_collectives.c - the arguments of a collective, at its op and at its kernels */
#include "test/unit/trace/gpu_spool.h"

/* A send to rank 5 of a group of 40, whose ranks are 0, 5, 10, ...; `bytes`: of the record, 0: all it takes. */
static void collective(uint32_t in_count, uint32_t bytes)
{
    struct kp_comms c = {.rec = {.head = {.kind = KP_KIND_COMMS,
                                          .flags = KP_COMMS_SEQ | KP_COMMS_ASYNC | KP_COMMS_PEER | KP_COMMS_TYPED},
                                 .in_elements = 5,
                                 .out_elements = 7,
                                 .sequence = 17,
                                 .peer = 5,
                                 .rank = 1,
                                 .group_size = 40,
                                 .rank_start = -1,
                                 .rank_stride = 5,
                                 .count = {in_count, 0, 40},
                                 .dtype = 15}};
    c.rec.head.name = name("send");
    c.rec.group_name = name("0");
    c.rec.group_description = name("pipe \"line\"");
    c.values[0] = 4;
    for (int i = 0; i < KP_COMMS_SHOWN; i++) c.values[1 + i] = i == KP_COMMS_SHOWN - 1 ? 195 : 5 * i;
    c.rec.head.size = (uint16_t)(bytes ? bytes : sizeof c.rec + (1 + KP_COMMS_SHOWN) * 8);
    assert_true(test_spool_put(&spool, main_chunk, &c, c.rec.head.size));
}

static void a_collective_has_its_arguments_and_gives_them_to_its_kernels(void **state)
{
    (void)state;
    spool_begin();
    op("record_param_comms", 100, 900, 0);
    collective(1, 0);
    op("aten::add", 1000, 1900, 0);
    call("cudaLaunchKernel", 400, 500, 17, 211, 0);
    call("cudaLaunchKernel", 1400, 1500, 18, 211, 0);
    kernel("ncclDevKernel_SendRecv", 600, 1600, 17, 0, 7);
    kernel("add", 1600, 2600, 18, 0, 7);
    assert_int_equal(export_now(), 0);
    static const char *const both[] = {"\"Collective name\":\"send\"",
                                       "\"dtype\":\"BFloat16\"",
                                       "\"In msg nelems\":5",
                                       "\"Out msg nelems\":7",
                                       "\"Group size\":40",
                                       "\"In split size\":\"[4]\"",
                                       "\"Out split size\":\"[]\"",
                                       "\"Process Group Name\":\"0\"",
                                       "\"Process Group Description\":\"pipe \\\"line\\\"\"",
                                       "\"Process Group Ranks\":\"[0, 5, 10, ",
                                       ", 135, 140, ..., 195]\"",
                                       "\"Dst Rank\":5",
                                       "\"Seq\":17",
                                       "\"Comms Id\":"};
    static const char *const of_op[] = {"\"Rank\":1,", "\"Global rank stride\":5", "\"Is asynchronized op\":true"};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        assert_has(line_of("\"name\":\"record_param_comms\""), both[i]);
        assert_has(line_of("\"name\":\"ncclDevKernel_SendRecv\""), both[i]);
    }
    for (size_t i = 0; i < sizeof of_op / sizeof *of_op; i++) {
        assert_has(line_of("\"name\":\"record_param_comms\""), of_op[i]);
        assert_not(line_of("\"name\":\"ncclDevKernel_SendRecv\""), of_op[i]);
    }
    assert_not(text, "Global rank start");
    assert_not(text, "Src Rank");
    assert_int_equal(count("\"Collective name\""), 2);
}

static void a_torn_record_of_a_collective_leaves_its_op_whole(void **state)
{
    (void)state;
    const struct {
        uint32_t in_count, bytes;
    } torn[] = {{1, 80}, {1, 72}, {1, 8}, {30, 0}, {UINT32_MAX, 0}, {1, 80 + 30 * 8}};
    for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
        spool_begin();
        op("record_param_comms", 100, 900, 0);
        collective(torn[i].in_count, torn[i].bytes);
        op("aten::add", 1000, 1900, 0);
        call("cudaLaunchKernel", 400, 500, 17, 211, 0);
        kernel("ncclDevKernel_SendRecv", 600, 1600, 17, 0, 7);
        assert_int_equal(export_now(), 0);
        assert_not(text, "Collective name");
        assert_int_equal(count("\"name\":\"record_param_comms\""), 1);
        assert_int_equal(count("\"name\":\"aten::add\""), 1);
        assert_int_equal(count("\"cat\":\"kernel\""), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collective_has_its_arguments_and_gives_them_to_its_kernels),
        cmocka_unit_test(a_torn_record_of_a_collective_leaves_its_op_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

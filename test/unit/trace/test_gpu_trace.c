// SPDX-License-Identifier: Apache-2.0
/* test_gpu_trace.c - the rules of the GPU side of a trace, each on a small spool */
#include "test/unit/trace/gpu_spool.h"

#include <errno.h>

/* --- which op launched what --- */

static void work_gets_the_id_of_the_innermost_op_around_its_call(void **state)
{
    (void)state;
    spool_begin();
    op("aten::linear", 100, 900, 0);
    op("aten::addmm", 200, 800, 0);
    op("my label", 300, 700, 7); /* an annotation is no op */
    call("cudaLaunchKernel", 400, 500, 17, 211, 0);
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"name\":\"aten::addmm\""), "\"External id\":2,");
    const char *line = line_of("\"cat\":\"cuda_runtime\"");
    assert_has(line, "\"name\":\"cudaLaunchKernel\",\"pid\":4242,\"tid\":4242,");
    assert_has(line, "\"args\":{\"External id\":2,\"cbid\":211,\"correlation\":17}");
    assert_has(line, us(400));
    line = line_of("\"cat\":\"kernel\"");
    assert_has(line, "\"pid\":0,\"tid\":7,");
    assert_has(line,
               "\"args\":{\"External id\":2,\"queued\":0,\"device\":0,\"context\":1,\"stream\":7,\"correlation\":17");
    assert_has(line, "\"dur\":1.000,");
}

static void an_arrow_goes_from_the_call_to_its_work(void **state)
{
    (void)state;
    spool_begin();
    call("cudaLaunchKernel", 400, 500, 17, 211, 0);
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("{\"ph\":\"s\",\"id\":17,\"pid\":4242,\"tid\":4242,"), us(400));
    assert_has(line_of("{\"ph\":\"f\",\"id\":17,\"pid\":0,\"tid\":7,"), us(600));
    assert_int_equal(count("\"cat\":\"ac2g\""), 2);
}

static void a_call_outside_all_ops_has_no_external_id(void **state)
{
    (void)state;
    spool_begin();
    op("my label", 100, 900, 7);
    call("cudaDeviceSynchronize", 400, 500, 17, 165, 0);
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_not(line_of("\"cat\":\"cuda_runtime\""), "External id");
    assert_not(line_of("\"cat\":\"kernel\""), "External id");
}

static void an_op_that_ended_before_the_call_launched_nothing(void **state)
{
    (void)state;
    spool_begin();
    op("aten::linear", 100, 900, 0);
    op("aten::t", 200, 300, 0);
    call("cudaLaunchKernel", 310, 400, 17, 211, 0);
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"cat\":\"kernel\""), "\"External id\":1,");
}

static void edges_of_a_call_stay_in_the_op_its_middle_lies_in(void **state)
{
    (void)state;
    spool_begin();
    op("aten::add", 100, 500, 0);
    call("cudaLaunchKernel", 80, 300, 17, 211, 0);  /* sticks out in front */
    call("cudaLaunchKernel", 400, 520, 18, 211, 0); /* and behind */
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"correlation\":17}"), us(100));
    assert_has(line_of("\"correlation\":17}"), "\"dur\":0.200,");
    assert_has(line_of("\"correlation\":18}"), "\"dur\":0.100,");
    assert_int_equal(count("\"External id\":1,"), 3);
}

/* --- which calls are shown --- */

static void calls_that_kineto_takes_for_noise_are_left_out(void **state)
{
    static const char *const noise[] = {
        "cudaGetDevice",   "cudaSetDevice", "cudaGetLastError", "cudaEventCreate", "cudaEventCreateWithFlags",
        "cudaEventDestroy"};
    (void)state;
    spool_begin();
    for (uint32_t i = 0; i < 6; i++) call(noise[i], 100 + i * 10, 105 + i * 10, 1 + i, 300 + i, 0);
    call("cuCtxGetCurrent", 200, 210, 8, 303, KP_DEV_DRIVER);
    call("cudaMalloc", 220, 230, 9, 20, 0);
    call("cuLaunchKernel", 240, 250, 10, 307, KP_DEV_DRIVER);
    call("cuMemMap", 260, 270, 11, 500, KP_DEV_DRIVER);
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("\"cat\":\"cuda_runtime\""), 1);
    assert_int_equal(count("\"cat\":\"cuda_driver\""), 2);
    assert_has(line_of("\"cat\":\"cuda_runtime\""), "cudaMalloc");
    assert_int_equal(count("\"ph\":\"s\""), 1); /* of the launch only */
}

static void arrows_begin_at_launches_copies_graphs_and_waits(void **state)
{
    static const struct {
        const char *name;
        uint32_t cbid;
        int has;
    } calls[] = {
        {"cudaLaunchKernelExC", 430, 1},
        {"cudaLaunchKernel_ptsz", 214, 1},
        {"cudaGraphLaunch", 311, 1},
        {"cudaMemcpyAsync", 41, 1},
        {"cudaMemset", 49, 1},
        {"cudaStreamSynchronize", 131, 1},
        {"cudaStreamWaitEvent", 147, 1},
        {"cudaEventRecord", 135, 0},
        {"cudaMemcpyPeer", 160, 0},
        {"cudaMemcpyAsync", 0, 1},
        {"cudaEventQuery", 136, 0},
        {"__cudaLaunchKernel", 505, 1},
        {"__cudaLaunchKernel_ptsz", 506, 1},
    };
    int expected = 0;
    (void)state;
    spool_begin();
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        call(calls[i].name, 100 + i * 10, 105 + i * 10, 1 + i, calls[i].cbid, 0);
        expected += calls[i].has;
    }
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("{\"ph\":\"s\""), expected);
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char arrow[40];
        snprintf(arrow, sizeof arrow, "{\"ph\":\"s\",\"id\":%u,", 1 + i);
        assert_int_equal(count(arrow), calls[i].has);
    }
}

static void a_driver_call_inside_a_runtime_call_has_no_arrow_of_its_own(void **state)
{
    (void)state;
    spool_begin();
    op("aten::add", 100, 500, 0);
    call("cuLaunchKernel", 220, 280, 17, 307, KP_DEV_DRIVER);
    call("cudaLaunchKernel", 200, 310, 17, 211, 0);
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("{\"ph\":\"s\""), 1);
    assert_int_equal(count("\"External id\":1,"), 4);
}

static void a_graph_launch_has_an_arrow_to_each_of_its_kernels(void **state)
{
    (void)state;
    spool_begin();
    call("cudaGraphLaunch", 100, 200, 5, 311, 0);
    for (uint64_t i = 0; i < 3; i++) {
        struct kp_rec_kernel *k = kernel("node", 300 + i * 100, 380 + i * 100, 5, 0, 7);
        k->has = KP_KERNEL_GRAPH, k->graph = 2, k->graph_node = 0x200000000u + i;
    }
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("{\"ph\":\"s\""), 1);
    assert_int_equal(count("{\"ph\":\"f\",\"id\":5,"), 3);
    assert_has(text, "\"graph id\":2,\"graph node id\":8589934594");
}

/* --- which window work belongs to --- */

static void work_belongs_to_the_window_it_was_launched_in(void **state)
{
    (void)state;
    spool_begin();
    call("cudaLaunchKernel", 999000, 999500, 1, 211, 0);
    kernel("launched_in_it_ends_behind_it", 999800, 3000000, 1, 0, 7);
    kernel("of_warming_up_inside", 1000, 2000, 90, 0, 7);
    kernel("of_no_call_ends_behind", 999000, 1000001, 91, 0, 7);
    struct kp_rec_kernel *before = kernel("began_before", 500, 600, 92, 0, 7);
    before->start = AT(0) - 1;
    call("cudaLaunchKernel", 1000100, 1000200, 2, 211, 0);
    kernel("launched_behind", 1000300, 1000400, 2, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("\"cat\":\"kernel\""), 2);
    line_of("launched_in_it_ends_behind_it");
    line_of("of_warming_up_inside");
    assert_has(text, "\"kernel\": {\"shown\": 2, \"outside the window\": 3}");
}

static void work_without_times_is_counted_and_not_shown(void **state)
{
    (void)state;
    spool_begin();
    call("cudaLaunchKernel", 100, 200, 1, 211, 0);
    kernel("good", 300, 400, 1, 0, 7);
    kernel("unseen", 300, 400, 1, 0, 7)->head.flags |= KP_DEV_NO_TIME;
    kernel("no_end", 300, 400, 1, 0, 7)->end = 0;
    kernel("backwards", 300, 400, 1, 0, 7)->end = AT(299);
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("\"cat\":\"kernel\""), 1);
    assert_has(text, "\"kernel\": {\"shown\": 1, \"without time\": 2, \"invalid\": 1}");
}

static void a_window_with_nothing_but_gpu_records_is_a_trace(void **state)
{
    (void)state;
    spool_begin();
    call("cudaLaunchKernel", 400, 500, 17, 211, 0);
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    line_of("thread 4242 (");
    spool_begin();
    kernel("outside", 600, 2000000, 17, 0, 7);
    assert_int_equal(export_now(), -ENODATA);
}

/* The device's clock runs 500 us a second fast: a duration as measured is longer than the way to the next start. */
static void work_that_follows_work_begins_behind_it(void **state)
{
    struct kp_rec_devclock d = {.head = {.kind = KP_KIND_DEVCLOCK, .size = sizeof d}, .width = 40};
    const uint64_t from = 5000000000u + 1000500000u + 1000; /* about AT(1000) */
    struct kp_rec_kernel *k;
    (void)state;
    spool_begin();
    d.ticks = AT(0) - 1000000000u, d.device = 5000000000u;
    test_spool_put(&spool, meta, &d, sizeof d);
    d.ticks = AT(0) + 1000000000u, d.device = 5000000000u + 2001000000u;
    test_spool_put(&spool, meta, &d, sizeof d);
    call("cudaLaunchKernel", 100, 200, 1, 211, 0);
    k = kernel("first", 0, 0, 1, 0, 7), k->head.flags = 0, k->start = from, k->end = from + 500000;
    k = kernel("second", 0, 0, 1, 0, 7), k->head.flags = 0, k->start = from + 500000, k->end = from + 500100;
    k = kernel("beside", 0, 0, 1, 0, 8), k->head.flags = 0, k->start = from + 500000, k->end = from + 500100;
    assert_int_equal(export_now(), 0);
    double at[3];
    const char *names[] = {"\"name\":\"first\"", "\"name\":\"second\"", "\"name\":\"beside\""};
    for (int i = 0; i < 3; i++) assert_int_equal(sscanf(strstr(line_of(names[i]), "\"ts\":"), "\"ts\":%lf", &at[i]), 1);
    assert_has(line_of("\"name\":\"first\""), "\"dur\":500.000,");
    assert_true(at[1] > at[0] + 499.9985 &&
                at[1] < at[0] + 500.0015); /* a double holds a trace's times to a ns or so */
    assert_true(at[2] < at[0] + 499.9);    /* where it is without that */
}

/* --- copies --- */

static void copies_and_fills_are_named_and_measured(void **state)
{
    (void)state;
    spool_begin();
    copy(KP_KIND_MEMCPY, 100, 1100, 5, 8000);
    copy(KP_KIND_MEMSET, 2000, 2000, 6, 64);
    struct kp_rec_copy *peer = copy(KP_KIND_MEMCPY, 3000, 3010, 7, 20);
    peer->is_peer = 1, peer->kind = 10, peer->src_kind = 3, peer->src_device = 1, peer->src_context = 3,
    peer->dst_device = 2, peer->dst_context = 4;
    assert_int_equal(export_now(), 0);
    assert_has(line_of("Memcpy HtoD (Pageable -> Device)"),
               "\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":5,\"bytes\":8000,\"memory bandwidth "
               "(GB/s)\":8}");
    assert_has(line_of("Memset (Device)"), "\"cat\":\"gpu_memset\"");
    assert_not(line_of("Memset (Device)"), "bandwidth"); /* it took no time */
    assert_has(line_of("Memcpy PtoP (Device -> Device)"),
               "\"args\":{\"fromDevice\":1,\"inDevice\":0,\"toDevice\":2,\"fromContext\":3,\"inContext\":1,"
               "\"toContext\":4,\"stream\":7,\"correlation\":7,\"bytes\":20,\"memory bandwidth (GB/s)\":2}");
}

/* --- waits --- */

static void a_wait_names_the_last_record_of_its_event_before_it(void **state)
{
    (void)state;
    spool_begin();
    recorded(30, 13, 4); /* delivered before the earlier one, and after the wait in number */
    recorded(10, 7, 4);
    recorded(15, 20, 5);
    wait_for(1, 100, 200, 20, KP_DEV_NONE, 4);
    wait_for(1, 300, 400, 40, KP_DEV_NONE, 4);
    wait_for(1, 500, 600, 5, KP_DEV_NONE, 4);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"correlation\":20,"),
               "\"args\":{\"External id\":20,\"cuda_sync_kind\":\"Event Sync\",\"wait_on_stream\":7,"
               "\"wait_on_cuda_event_record_corr_id\":10,\"wait_on_cuda_event_id\":4,\"stream\":-1,\"correlation\":20,"
               "\"device\":0,\"context\":1}");
    assert_has(line_of("\"correlation\":40,"), "\"wait_on_stream\":13,\"wait_on_cuda_event_record_corr_id\":30,");
    assert_has(line_of("\"correlation\":5,"), "\"wait_on_stream\":-1,\"wait_on_cuda_event_record_corr_id\":-1,");
    line_of("{\"name\":\"Device 0\"}");
}

static void a_stream_that_waits_is_shown_when_it_did_work(void **state)
{
    (void)state;
    spool_begin();
    wait_for(2, 100, 101, 20, 7, 4); /* delivered before the work */
    wait_for(2, 100, 101, 21, 9, 4);
    wait_for(3, 300, 400, 22, 7, KP_DEV_NONE);
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"correlation\":20,"), "\"name\":\"Stream Wait Event\",\"pid\":0,\"tid\":7,");
    assert_not(text, "\"correlation\":21,");
    assert_has(line_of("\"cuda_sync_kind\":\"Stream Sync\""), "\"tid\":1000007,");
    assert_has(line_of("\"stream 7 (sync)\""), "\"tid\":1000007,");
}

static void a_query_that_found_nothing_done_is_no_wait(void **state)
{
    (void)state;
    spool_begin();
    recorded(10, 7, 4);
    wait_for(1, 100, 101, 20, 7, 4)->result = 600; /* cudaEventQuery: not ready */
    wait_for(1, 102, 103, 21, 7, 4);
    wait_for(3, 110, 111, 22, 7, KP_DEV_NONE)->result = 600;
    kernel("add", 600, 1600, 17, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("\"cat\":\"cuda_sync\""), 1);
    assert_has(line_of("\"correlation\":21,"), "\"name\":\"Event Sync\"");
}

/* --- annotations, rows, keys --- */

static void an_annotation_reaches_over_its_work_on_each_stream(void **state)
{
    (void)state;
    spool_begin();
    test_spool_step(&spool, main_chunk, AT(50), AT(5000), 3);
    op("## forward ##", 100, 900, 7);
    op("aten::add", 110, 850, 0);
    call("cudaLaunchKernel", 200, 300, 1, 211, 0);
    call("cudaLaunchKernel", 310, 400, 2, 211, 0);
    call("cudaLaunchKernel", 410, 500, 3, 211, 0);
    call("cudaLaunchKernel", 1000, 1100, 4, 211, 0);
    kernel("a", 2000, 3000, 1, 0, 7);
    kernel("b", 1500, 1800, 2, 0, 7);
    kernel("c", 1600, 1700, 3, 0, 20);
    kernel("d", 3500, 3600, 4, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("\"cat\":\"gpu_user_annotation\""), 3);
    const char *line = line_of("\"gpu_user_annotation\",\"name\":\"## forward ##\",\"pid\":0,\"tid\":7,");
    assert_has(line, us(1499));
    assert_has(line, "\"dur\":1.502,\"args\":{\"External id\":2}}");
    line_of("\"gpu_user_annotation\",\"name\":\"## forward ##\",\"pid\":0,\"tid\":20,");
    assert_has(line_of("\"gpu_user_annotation\",\"name\":\"ProfilerStep#3\",\"pid\":0,\"tid\":7,"),
               "\"External id\":1}");
}

static void async_op(const char *s, uint64_t from, uint64_t to)
{
    const struct test_op range = {.name = name(s),
                                  .start = AT(from),
                                  .ticks = to - from,
                                  .scope = 7,
                                  .flags = KP_OP_ASYNC,
                                  .rt_tid = 1,
                                  .seq = -1};
    test_spool_op(&spool, main_chunk, &range);
}

/* NCCL's range of a collective: the next op of the thread is not in it, though torch lets it end on any thread. */
static void an_asynchronous_range_that_ends_inside_its_op_is_an_annotation(void **state)
{
    (void)state;
    spool_begin();
    op("c10d::_allgather_base_", 100, 900, 0);
    async_op("nccl:_all_gather_base", 200, 600);
    call("cudaLaunchKernel", 300, 400, 1, 211, 0);
    op("c10d::allreduce_", 1000, 1900, 0);
    async_op("gloo:all_reduce", 1100, 5000);
    call("cudaLaunchKernel", 1200, 1300, 2, 211, 0);
    async_op("alone", 2000, 2500);
    call("cudaLaunchKernel", 2100, 2200, 3, 211, 0);
    kernel("a", 2000, 3000, 1, 0, 7);
    kernel("b", 3000, 4000, 2, 0, 7);
    kernel("c", 4000, 5000, 3, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_int_equal(count("\"cat\":\"gpu_user_annotation\""), 1);
    assert_has(line_of("\"gpu_user_annotation\",\"name\":\"nccl:_all_gather_base\","), "\"dur\":1.002,");
}

static void rows_are_named_for_what_was_used(void **state)
{
    (void)state;
    spool_begin();
    kernel("a", 2000, 3000, 1, 2, 7);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("{\"labels\":\"GPU 2\"}"), "\"pid\":2,\"tid\":0,");
    assert_has(line_of("{\"sort_index\":5000002}"), "\"name\":\"process_sort_index\"");
    assert_has(line_of("{\"name\":\"stream 7 \"}"), "\"pid\":2,\"tid\":7,");
    assert_int_equal(count("\"labels\":\"GPU"), 1);
}

static void keys_at_the_top_tell_of_devices_and_versions(void **state)
{
    (void)state;
    spool_begin();
    test_spool_text(
        &spool,
        "cupti_version=28\ncuda_driver_version=13000\ncuda_runtime_version=soon\ngpu_source=cupti\ngpu_dropped=12\n");
    device();
    call("cudaLaunchKernel", 1000, 1100, 1, 211, 0);
    assert_int_equal(export_now(), 0);
    assert_has(text, "{\"id\": 0, \"name\": \"NVIDIA A100\", \"totalGlobalMem\": 42314694656, \"computeMajor\": 8, "
                     "\"computeMinor\": 0, "
                     "\"maxThreadsPerBlock\": 1024, \"maxThreadsPerMultiprocessor\": 2048, \"regsPerBlock\": 65536, "
                     "\"warpSize\": 32, "
                     "\"sharedMemPerBlock\": 49152, \"numSms\": 108, \"regsPerMultiprocessor\": 65536, "
                     "\"sharedMemPerBlockOptin\": 166912, "
                     "\"sharedMemPerMultiprocessor\": 167936}");
    assert_has(text, "\"cupti_version\": 28,");
    assert_has(text, "\"cuda_driver_version\": 13000,");
    assert_not(text, "cuda_runtime_version");
    assert_has(line_of("\"kprof_gpu\""), "{\"source\": \"cupti\", \"calls\": {\"shown\": 1}, \"dropped\": \"12\"}");
}

static void a_loss_that_is_a_lower_bound_is_told_as_one(void **state)
{
    (void)state;
    for (int is_least = 0; is_least < 2; is_least++) {
        spool_begin();
        test_spool_text(&spool, is_least ? "gpu_source=cupti\ngpu_lost_at_least=1\n" : "gpu_source=cupti\n");
        call("cudaLaunchKernel", 1000, 1100, 1, 211, 0);
        assert_int_equal(export_now(), 0);
        assert_int_equal(count("\"drops\": {}, \"lost_at_least\": true"), is_least);
        assert_int_equal(count("\"drops\": {}"), 1);
    }
}

static void a_note_that_grew_is_told_once(void **state)
{
    (void)state;
    spool_begin();
    test_spool_text(&spool, "gpu_source=cupti\ngpu_drop=1\ngpu_dropped=12\ngpu_late=3\ngpu_dropped=14\n");
    call("cudaLaunchKernel", 1000, 1100, 1, 211, 0);
    assert_int_equal(export_now(), 0);
    assert_has(
        line_of("\"kprof_gpu\""),
        "{\"source\": \"cupti\", \"calls\": {\"shown\": 1}, \"drop\": \"1\", \"late\": \"3\", \"dropped\": \"14\"}");
}

static void a_window_whose_gpu_work_is_missing_says_so(void **state)
{
    (void)state;
    window_begin(); /* no record of a device */
    test_spool_text(&spool, "gpu_source=cupti\ngpu_windows_cut=1\n");
    op("aten::add", 1000, 1100, 0);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"kprof_gpu\""), "{\"source\": \"cupti\", \"windows_cut\": \"1\"}");
    window_begin();
    test_spool_text(&spool, "gpu_source=cupti\n");
    op("aten::add", 1000, 1100, 0);
    assert_int_equal(export_now(), 0);
    assert_not(text, "\"kprof_gpu\"");
}

static void a_kernel_has_its_shape_and_occupancy(void **state)
{
    (void)state;
    spool_begin();
    device();
    call("cudaLaunchKernel", 1000, 1100, 1, 211, 0);
    struct kp_rec_kernel *k = kernel("_Z3addPfS_i", 2000, 3000, 1, 0, 7);
    k->has = KP_KERNEL_SHAPE | KP_KERNEL_PRIORITY | KP_KERNEL_CHANNEL;
    k->grid[0] = 216, k->grid[1] = k->grid[2] = 1, k->block[0] = 256, k->block[1] = k->block[2] = 1, k->registers = 32,
    k->static_smem = 1024, k->dynamic_smem = 8, k->local_per_thread = 24;
    k->priority = -1, k->channel = 12, k->channel_type = 1;
    assert_int_equal(export_now(), 0);
    const char *line = line_of("\"cat\":\"kernel\"");
    assert_has(line, "\"name\":\"add(float*, float*, int)\"");
    assert_has(
        line,
        ",\"registers per thread\":32,\"shared memory\":1032,\"local memory per thread\":24,\"blocks per "
        "SM\":2,\"warps per "
        "SM\":16,\"grid\":[216,1,1],\"block\":[256,1,1],"
        "\"est. achieved occupancy "
        "%\":25,\"occupancy\":{\"activeBlocksPerMultiprocessor\":8,\"limitingFactors\":\"WARPS|REGS\","
        "\"blockLimitRegs\":8,"
        "\"blockLimitSharedMem\":77,\"blockLimitWarps\":8,\"blockLimitBlocks\":32,\"blockLimitBarriers\":2147483647,"
        "\"allocatedRegistersPerBlock\":8192,\"allocatedSharedMemPerBlock\":2176},\"priority\":-1,\"channel\":12,"
        "\"channel_type\":1}}");
}

/* Every number as long as it can be: the text of the shape has room for that. */
static void a_kernel_of_a_damaged_file_leaves_the_trace_whole(void **state)
{
    (void)state;
    for (uint32_t fill = 0x7f; fill <= 0xff; fill += 0x80) {
        struct kp_rec_device d = {.head = {.kind = KP_KIND_DEVICE, .size = sizeof d}, .id = 0};
        spool_begin();
        memset(&d.major, (int)fill, sizeof d - offsetof(struct kp_rec_device, major));
        test_spool_put(&spool, meta, &d, sizeof d);
        struct kp_rec_kernel *k = kernel("f", 2000, 3000, 1, 0, 7);
        memset(k->grid, 0xff, offsetof(struct kp_rec_kernel, graph_node) - offsetof(struct kp_rec_kernel, grid));
        k->block[0] = 0x7fffffff, k->block[1] = k->block[2] = 1;
        k->has = KP_KERNEL_SHAPE;
        assert_int_equal(export_now(), 0);
        assert_has(line_of("\"cat\":\"kernel\""), "\"allocatedSharedMemPerBlock\":");
    }
}

static void overhead_has_a_process_of_its_own(void **state)
{
    struct kp_rec_overhead r = {.head = {.kind = KP_KIND_OVERHEAD, .flags = KP_DEV_TICKS, .size = sizeof r},
                                .start = AT(10),
                                .end = AT(30),
                                .type = 1u << 16};
    (void)state;
    spool_begin();
    call("cudaLaunchKernel", 1000, 1100, 1, 211, 0);
    test_spool_put(&spool, lane, &r, sizeof r);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"cat\":\"overhead\""), "\"name\":\"Buffer Flush\",\"pid\":-1,\"tid\":0,");
    line_of("CUPTI Overhead");
}

/* --- NVTX --- */

static void nvtx(const char *s, uint8_t type, uint64_t from, uint64_t ticks, uint64_t id, const char *domain)
{
    struct kp_rec_nvtx n = {.head = {.kind = KP_KIND_NVTX, .size = sizeof n, .name = name(s)},
                            .start = AT(from),
                            .ticks = ticks,
                            .id = id,
                            .domain = name(domain),
                            .type = type};
    assert_true(test_spool_put(&spool, main_chunk, &n, sizeof n));
}

static void ranges_of_nvtx_are_annotations_and_those_of_domains_are_not(void **state)
{
    (void)state;
    spool_begin();
    nvtx("epoch", KP_NVTX_RANGE, 100, 900, 0, NULL);
    nvtx("ncclAllReduce", KP_NVTX_RANGE, 150, 600, 0, "NCCL");
    nvtx("here", KP_NVTX_MARK, 160, 0, 0, NULL);
    nvtx("request", KP_NVTX_START, 170, 0, 77, NULL);
    nvtx("request", KP_NVTX_END, 800, 0, 77, NULL);
    call("cudaLaunchKernel", 200, 300, 1, 211, 0);
    kernel("a", 2000, 3000, 1, 0, 7);
    assert_int_equal(export_now(), 0);
    assert_has(line_of("\"cat\":\"user_annotation\",\"name\":\"epoch\""), "\"dur\":0.900,");
    assert_has(line_of("\"cat\":\"nvtx\",\"name\":\"ncclAllReduce\""), "\"args\":{\"domain\":\"NCCL\"}");
    assert_has(line_of("{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"nvtx\",\"name\":\"here\""), us(160));
    assert_has(line_of("{\"ph\":\"b\",\"id\":77,\"cat\":\"nvtx\",\"name\":\"request\""), us(170));
    assert_has(line_of("{\"ph\":\"e\",\"id\":77,\"cat\":\"nvtx\",\"name\":\"request\""), us(800));
    line_of("\"cat\":\"gpu_user_annotation\",\"name\":\"epoch\"");
}

/* --- trouble --- */

static void without_room_on_the_disk_links_are_kept_in_memory(void **state)
{
    (void)state;
    spool_begin();
    op("aten::add", 100, 500, 0);
    call("cudaLaunchKernel", 200, 310, 17, 211, 0);
    kernel("add", 600, 1600, 17, 0, 7);
    kp_fail_set("fallocate:1+");
    assert_int_equal(export_now(), 0);
    kp_fail_set(NULL);
    assert_has(line_of("\"cat\":\"kernel\""), "\"External id\":1,");
}

static void whichever_memory_is_missing_there_is_a_whole_trace_or_none(void **state)
{
    char path[512], dir[512], why[256], failures[32];
    int written = 0, refused = 0;
    (void)state;
    spool_begin();
    op("aten::add", 100, 500, 0);
    call("cudaLaunchKernel", 200, 310, 4000000000u, 211, 0);
    kernel("add", 600, 1600, 4000000000u, 0, 7);
    wait_for(1, 100, 200, 20, KP_DEV_NONE, 4);
    recorded(10, 7, 4);
    snprintf(path, sizeof path, "%s/m.kprof", kp_test_tmpdir());
    snprintf(dir, sizeof dir, "%s/m", kp_test_tmpdir());
    test_spool_save(&spool, path, 0);
    test_spool_free(&spool);
    for (int nth = 1; nth <= 40; nth++) {
        struct kp_reader *r;
        snprintf(failures, sizeof failures, "mmap:%d:12", nth);
        kp_fail_set(failures);
        int rc = test_reader_open(&r, path, why, sizeof why);
        if (!rc) rc = kp_export_trace(r, 1, &(struct kp_export_options){.dir = dir}, &result);
        kp_reader_close(r);
        kp_fail_set(NULL);
        if (rc) assert_int_equal(rc, -ENOMEM);
        written += !rc, refused += rc != 0;
    }
    assert_true(written > 3);
    assert_true(refused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_gets_the_id_of_the_innermost_op_around_its_call),
        cmocka_unit_test(an_arrow_goes_from_the_call_to_its_work),
        cmocka_unit_test(a_call_outside_all_ops_has_no_external_id),
        cmocka_unit_test(an_op_that_ended_before_the_call_launched_nothing),
        cmocka_unit_test(edges_of_a_call_stay_in_the_op_its_middle_lies_in),
        cmocka_unit_test(calls_that_kineto_takes_for_noise_are_left_out),
        cmocka_unit_test(arrows_begin_at_launches_copies_graphs_and_waits),
        cmocka_unit_test(a_driver_call_inside_a_runtime_call_has_no_arrow_of_its_own),
        cmocka_unit_test(a_graph_launch_has_an_arrow_to_each_of_its_kernels),
        cmocka_unit_test(work_belongs_to_the_window_it_was_launched_in),
        cmocka_unit_test(work_without_times_is_counted_and_not_shown),
        cmocka_unit_test(a_window_with_nothing_but_gpu_records_is_a_trace),
        cmocka_unit_test(work_that_follows_work_begins_behind_it),
        cmocka_unit_test(copies_and_fills_are_named_and_measured),
        cmocka_unit_test(a_wait_names_the_last_record_of_its_event_before_it),
        cmocka_unit_test(a_stream_that_waits_is_shown_when_it_did_work),
        cmocka_unit_test(a_query_that_found_nothing_done_is_no_wait),
        cmocka_unit_test(an_annotation_reaches_over_its_work_on_each_stream),
        cmocka_unit_test(an_asynchronous_range_that_ends_inside_its_op_is_an_annotation),
        cmocka_unit_test(rows_are_named_for_what_was_used),
        cmocka_unit_test(a_note_that_grew_is_told_once),
        cmocka_unit_test(a_loss_that_is_a_lower_bound_is_told_as_one),
        cmocka_unit_test(a_window_whose_gpu_work_is_missing_says_so),
        cmocka_unit_test(keys_at_the_top_tell_of_devices_and_versions),
        cmocka_unit_test(a_kernel_has_its_shape_and_occupancy),
        cmocka_unit_test(a_kernel_of_a_damaged_file_leaves_the_trace_whole),
        cmocka_unit_test(overhead_has_a_process_of_its_own),
        cmocka_unit_test(ranges_of_nvtx_are_annotations_and_those_of_domains_are_not),
        cmocka_unit_test(without_room_on_the_disk_links_are_kept_in_memory),
        cmocka_unit_test(whichever_memory_is_missing_there_is_a_whole_trace_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

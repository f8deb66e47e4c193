// SPDX-License-Identifier: Apache-2.0
/* test_time.c - how long work lasts, in what order it runs, and that waits last as long as the work */
#include "test/unit/simgpu/sim_test.h"

static void work_in_a_stream_runs_in_order_body(void)
{
    sim_start();
    sim_watch();
    for (int i = 0; i < 20; i++) CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(seen_count, 20);
    for (int i = 0; i < 20; i++) {
        CHECK_IS(seen[i].stream, 7);
        CHECK_IS(seen[i].context, 1);
        CHECK(strcmp(seen[i].name, "_Z6kernelPf") == 0);
        CHECK(seen[i].end_ns > seen[i].start_ns);
        if (i > 0) CHECK(seen[i].start_ns >= seen[i - 1].end_ns);
    }
}
SIM_TEST(work_in_a_stream_runs_in_order, NULL)

static void a_kernel_starts_after_its_call_and_lasts_by_its_rule_body(void)
{
    sim_start();
    sim_watch();
    uint64_t before = now_ns();
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(sim_launch(&stub_b, NULL), 0);
    CHECK(seen[0].start_ns >= before + 50000);
    CHECK_IS(seen[0].end_ns - seen[0].start_ns, 700000);
    CHECK_IS(seen[1].end_ns - seen[1].start_ns, 30000);
}
SIM_TEST(a_kernel_starts_after_its_call_and_lasts_by_its_rule, "SIMGPU_LATENCY_NS=50000", "SIMGPU_JITTER_PERCENT=0",
         "SIMGPU_RULES=kernel=700000;other=30000", NULL)

static void jitter_comes_from_the_seed_body(void)
{
    sim_start();
    sim_watch();
    for (int i = 0; i < 50; i++) sim_launch(&stub_a, NULL);
    bool differs = false;
    for (int i = 0; i < 50; i++) {
        uint64_t lasted = seen[i].end_ns - seen[i].start_ns;
        CHECK(lasted >= 90000 && lasted <= 110000);
        if (lasted != 100000) differs = true;
    }
    CHECK(differs);
    printf("%llu", (unsigned long long)(seen[7].end_ns - seen[7].start_ns));
    fflush(stdout);
}

static uint64_t seventh(const char *seed)
{
    char text[32] = "";
    int ends[2], saved = dup(1);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 1);
    in_child(jitter_comes_from_the_seed_body, WITH("SIMGPU_JITTER_PERCENT=10", "SIMGPU_RULES=kernel=100000", seed));
    dup2(saved, 1);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    close(saved);
    return strtoull(text, NULL, 10);
}

static void jitter_comes_from_the_seed(void **state)
{
    (void)state;
    assert_int_equal(seventh("SIMGPU_SEED=5"), seventh("SIMGPU_SEED=5"));
    assert_int_not_equal(seventh("SIMGPU_SEED=5"), seventh("SIMGPU_SEED=6"));
}

static void a_wait_for_a_stream_lasts_until_its_end_body(void)
{
    void *stream;
    sim_start();
    sim_watch();
    CHECK_IS(rt.cudaStreamCreateWithFlags(&stream, 1), 0);
    CHECK_IS(sim_launch(&stub_a, stream), 0);
    CHECK_IS(rt.cudaStreamQuery(stream), 600);
    CHECK_IS(rt.cudaStreamSynchronize(stream), 0);
    CHECK(now_ns() >= seen[0].end_ns);
    CHECK_IS(rt.cudaStreamQuery(stream), 0);
    CHECK_IS(sync_count, 1);
    CHECK_IS(query_count, 2);
    CHECK_IS(synced[0].type, 3);
    CHECK_IS(synced[0].stream, 13);
    CHECK(synced[0].end_ns >= seen[0].end_ns);
}
SIM_TEST(a_wait_for_a_stream_lasts_until_its_end, "SIMGPU_RULES=kernel=1000000000", NULL)

static void streams_run_side_by_side_but_blocking_ones_follow_the_null_stream_body(void)
{
    void *loose, *other, *blocking;
    sim_start();
    sim_watch();
    rt.cudaStreamCreateWithFlags(&loose, 1);
    rt.cudaStreamCreateWithFlags(&other, 1);
    rt.cudaStreamCreate(&blocking);
    sim_launch(&stub_a, loose);
    sim_launch(&stub_a, other);
    CHECK(seen[1].start_ns < seen[0].end_ns); /* side by side */
    sim_launch(&stub_a, NULL);
    CHECK(seen[2].start_ns < seen[0].end_ns); /* the null stream does not wait for those */
    sim_launch(&stub_a, blocking);
    CHECK(seen[3].start_ns >= seen[2].end_ns); /* blocking streams follow it */
    sim_launch(&stub_a, NULL);
    CHECK(seen[4].start_ns >= seen[3].end_ns); /* and it follows them */
    CHECK_IS(seen[0].stream, 13);
    CHECK_IS(seen[1].stream, 14);
    CHECK_IS(seen[3].stream, 15);
}
SIM_TEST(streams_run_side_by_side_but_blocking_ones_follow_the_null_stream, "SIMGPU_RULES=kernel=30000000000",
         NULL) /* nobody waits for them */

static void kernels_wait_for_a_free_slot_body(void)
{
    void *a, *b;
    sim_start();
    sim_watch();
    rt.cudaStreamCreateWithFlags(&a, 1);
    rt.cudaStreamCreateWithFlags(&b, 1);
    sim_launch(&stub_a, a);
    sim_launch(&stub_a, b);
    CHECK(seen[1].start_ns >= seen[0].end_ns);
}
SIM_TEST(kernels_wait_for_a_free_slot, "SIMGPU_KERNEL_SLOTS=1", "SIMGPU_RULES=kernel=5000000", NULL)

static void copies_of_one_direction_share_an_engine_body(void)
{
    void *a, *b, *device, *host;
    sim_start();
    rt.cudaStreamCreateWithFlags(&a, 1);
    rt.cudaStreamCreateWithFlags(&b, 1);
    rt.cudaMalloc(&device, 64 << 20);
    rt.cudaMallocHost(&host, 64 << 20);
    sim_watch();
    rt.cudaMemcpyAsync(device, host, 32 << 20, 1, a);
    rt.cudaMemcpyAsync((char *)device + (32 << 20), host, 32 << 20, 1, b);
    rt.cudaMemcpyAsync(host, device, 1 << 20, 2, b);
    CHECK_IS(seen[0].copy_kind, 1);
    CHECK_IS(seen[0].src_kind, 2);
    CHECK_IS(seen[0].dst_kind, 3);
    CHECK(seen[1].start_ns >= seen[0].end_ns);
    CHECK_IS(seen[2].copy_kind, 2);
    uint64_t ns = seen[0].end_ns - seen[0].start_ns; /* 32 MiB at 10 GB/s */
    CHECK(ns > 3300000 && ns < 3400000);
}
SIM_TEST(copies_of_one_direction_share_an_engine, "SIMGPU_COPY_GBS=10", "SIMGPU_JITTER_PERCENT=0", NULL)

static void work_is_told_done_after_its_end_body(void)
{
    sim_start();
    sim_watch();
    for (int i = 0; i < 10; i++) sim_launch(&stub_a, NULL);
    rt.cudaDeviceSynchronize();
    for (int i = 0; i < 60000 && done_count < 10; i++) usleep(1000);
    CHECK_IS(done_count, 10);
    for (int i = 0; i < 10; i++) CHECK_IS(done[i].correlation, seen[i].correlation);
}
SIM_TEST(work_is_told_done_after_its_end, NULL)

static void the_device_has_a_clock_of_its_own_body(void)
{
    sim_load_driver();
    uint64_t host = 5000000000000u;
    CHECK_IS(core->device_ns(host), host + 5000000 + 123456); /* 1 ppm of 5000 s */
    CHECK_IS(core->device_ns(2 * host) - core->device_ns(host), host + 5000000);
    CHECK_IS(core->device_ns(UINT64_MAX), UINT64_MAX);
}
SIM_TEST(the_device_has_a_clock_of_its_own, "SIMGPU_DRIFT_PPM=1", "SIMGPU_OFFSET_NS=123456", NULL)

static void a_library_may_give_the_next_kernel_its_times_body(void)
{
    sim_start();
    sim_watch();
    uint64_t start = now_ns() + 1000000, end = start + 77777;
    core->next_kernel(start, end);
    sim_launch(&stub_a, NULL);
    sim_launch(&stub_a, NULL);
    CHECK_IS(seen[0].start_ns, start);
    CHECK_IS(seen[0].end_ns, end);
    CHECK(seen[1].start_ns >= end && seen[1].end_ns != end);
    core->next_kernel(now_ns(), UINT64_MAX);
    sim_launch(&stub_a, NULL);
    CHECK(seen[2].end_ns == UINT64_MAX);
    CHECK_IS(rt.cudaStreamQuery(NULL), 600);
}
SIM_TEST(a_library_may_give_the_next_kernel_its_times, NULL)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_in_a_stream_runs_in_order),
        cmocka_unit_test(a_kernel_starts_after_its_call_and_lasts_by_its_rule),
        cmocka_unit_test(jitter_comes_from_the_seed),
        cmocka_unit_test(a_wait_for_a_stream_lasts_until_its_end),
        cmocka_unit_test(streams_run_side_by_side_but_blocking_ones_follow_the_null_stream),
        cmocka_unit_test(kernels_wait_for_a_free_slot),
        cmocka_unit_test(copies_of_one_direction_share_an_engine),
        cmocka_unit_test(work_is_told_done_after_its_end),
        cmocka_unit_test(the_device_has_a_clock_of_its_own),
        cmocka_unit_test(a_library_may_give_the_next_kernel_its_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_events.c - events: their recordings, waits between streams, elapsed time, host functions */
#include "test/unit/simgpu/sim_test.h"

static void an_event_is_reached_when_the_work_before_it_has_ended_body(void)
{
    void *event;
    sim_start();
    sim_watch();
    rt.cudaEventCreate(&event);
    CHECK_IS(rt.cudaEventQuery(event), 0); /* never recorded */
    sim_launch(&stub_a, NULL);
    CHECK_IS(rt.cudaEventRecord(event, NULL), 0);
    CHECK_IS(rt.cudaEventQuery(event), 600);
    CHECK_IS(rt.cudaGetLastError(), 600);
    CHECK_IS(rt.cudaGetLastError(), 0);
    CHECK_IS(rt.cudaEventSynchronize(event), 0);
    CHECK(now_ns() >= seen[0].end_ns);
    CHECK_IS(rt.cudaEventQuery(event), 0);
    CHECK_IS(synced[0].type, 1);
    CHECK_IS(synced[0].event, seen[1].event);
    CHECK_IS(synced[0].event_sync, seen[1].event_sync);
    CHECK_IS(synced[0].stream, 7);
}
SIM_TEST(an_event_is_reached_when_the_work_before_it_has_ended, "SIMGPU_RULES=kernel=1000000000", NULL)

static void a_stream_waits_for_the_recording_that_was_there_body(void)
{
    void *a, *b, *event;
    sim_start();
    sim_watch();
    rt.cudaStreamCreateWithFlags(&a, 1);
    rt.cudaStreamCreateWithFlags(&b, 1);
    rt.cudaEventCreate(&event);
    sim_launch(&stub_a, a);              /* 0 */
    rt.cudaEventRecord(event, a);        /* 1 */
    rt.cudaStreamWaitEvent(b, event, 0); /* 2 */
    sim_launch(&stub_a, a);              /* 3 */
    rt.cudaEventRecord(event, a);        /* 4: a newer recording, which b does not wait for */
    sim_launch(&stub_b, b);              /* 5 */
    CHECK_IS(seen[2].kind, SIMGPU_EVENT_WAIT);
    CHECK_IS(seen[2].event_sync, seen[1].event_sync);
    CHECK(seen[4].event_sync == seen[1].event_sync + 1);
    CHECK(seen[5].start_ns >= seen[0].end_ns);
    CHECK(seen[5].start_ns < seen[3].end_ns);
    CHECK_IS(synced[0].type, 2);
    CHECK_IS(synced[0].stream, seen[2].stream);
}
SIM_TEST(a_stream_waits_for_the_recording_that_was_there, "SIMGPU_RULES=kernel=30000000000", NULL) /* we do not */

static void elapsed_time_is_the_devices_body(void)
{
    void *from, *to;
    float ms = 0;
    sim_start();
    rt.cudaEventCreate(&from);
    rt.cudaEventCreate(&to);
    CHECK_IS(rt.cudaEventElapsedTime(&ms, from, to), 400); /* not recorded */
    uint64_t began = now_ns();
    rt.cudaEventRecord(from, NULL); /* the device does so at once, and waits for the kernel to come */
    sim_launch(&stub_a, NULL);
    float came_ms = (float)(now_ns() - began) / 1e6f;
    rt.cudaEventRecord(to, NULL);
    CHECK_IS(rt.cudaEventElapsedTime(&ms, from, to), 600); /* not yet there */
    rt.cudaEventSynchronize(to);
    CHECK_IS(rt.cudaEventElapsedTime(&ms, from, to), 0);
    CHECK(ms > 1012.0f && ms < 1012.5f + came_ms);
}
SIM_TEST(elapsed_time_is_the_devices, "SIMGPU_RULES=kernel=1012000000", "SIMGPU_JITTER_PERCENT=0", NULL)

static void a_destroyed_event_is_refused_body(void)
{
    void *event, *next;
    sim_start();
    rt.cudaEventCreate(&event);
    CHECK_IS(rt.cudaEventDestroy(event), 0);
    CHECK_IS(rt.cudaEventRecord(event, NULL), 400);
    CHECK_IS(rt.cudaEventDestroy(event), 400);
    rt.cudaEventCreate(&next);
    CHECK_IS(rt.cudaEventRecord(next, NULL), 0);
}
SIM_TEST(a_destroyed_event_is_refused, NULL)

static uint64_t ran_at;
static pid_t ran_in;
static void host_function(void *arg)
{
    usleep(20000);
    ran_at = now_ns();
    ran_in = gettid();
    *(_Atomic int *)arg = 1;
}

static void a_host_function_runs_in_its_turn_on_another_thread_body(void)
{
    _Atomic int has_run = 0;
    void *stream;
    sim_start();
    sim_watch();
    rt.cudaStreamCreateWithFlags(&stream, 1);
    sim_launch(&stub_a, stream);
    CHECK_IS(rt.cudaLaunchHostFunc(stream, host_function, &has_run), 0);
    CHECK_IS(has_run, 0);
    CHECK_IS(rt.cudaStreamQuery(stream), 600);
    CHECK_IS(rt.cudaStreamSynchronize(stream), 0);
    CHECK_IS(has_run, 1); /* the wait lasted until it had returned, although it is slow */
    CHECK(ran_at >= seen[0].end_ns);
    CHECK(ran_in != gettid());
}
SIM_TEST(a_host_function_runs_in_its_turn_on_another_thread, "SIMGPU_RULES=kernel=1000000000", NULL)

static void two_streams_wait_for_their_own_host_functions_body(void)
{
    _Atomic int a_ran = 0, b_ran = 0;
    void *a, *b;
    sim_start();
    rt.cudaStreamCreateWithFlags(&a, 1);
    rt.cudaStreamCreateWithFlags(&b, 1);
    rt.cudaLaunchHostFunc(a, host_function, &a_ran);
    rt.cudaLaunchHostFunc(b, host_function, &b_ran);
    CHECK_IS(rt.cudaDeviceSynchronize(), 0);
    CHECK(a_ran && b_ran);
}
SIM_TEST(two_streams_wait_for_their_own_host_functions, NULL)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_reached_when_the_work_before_it_has_ended),
        cmocka_unit_test(a_stream_waits_for_the_recording_that_was_there),
        cmocka_unit_test(elapsed_time_is_the_devices),
        cmocka_unit_test(a_destroyed_event_is_refused),
        cmocka_unit_test(a_host_function_runs_in_its_turn_on_another_thread),
        cmocka_unit_test(two_streams_wait_for_their_own_host_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

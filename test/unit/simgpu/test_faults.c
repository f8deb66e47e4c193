// SPDX-License-Identifier: Apache-2.0
/* test_faults.c - injected errors, memory that runs out, kernels that hang, no GPU, forked children, tools let in */
#include <signal.h>

#include "test/unit/simgpu/sim_test.h"

static void the_nth_call_fails_once_body(void)
{
    void *at;
    sim_start();
    CHECK_IS(rt.cudaMalloc(&at, 4096), 0);
    CHECK_IS(rt.cudaMalloc(&at, 4096), 2);
    CHECK_IS(rt.cudaPeekAtLastError(), 2);
    CHECK_IS(rt.cudaGetLastError(), 2);
    CHECK_IS(rt.cudaGetLastError(), 0);
    CHECK_IS(rt.cudaMalloc(&at, 4096), 0);
    CHECK_IS(rt.cudaDeviceSynchronize(), 999);
    CHECK_IS(rt.cudaDeviceSynchronize(), 0);
}
SIM_TEST(the_nth_call_fails_once, "SIMGPU_FAIL=cudaMalloc:2,cudaDeviceSynchronize:1:999", NULL)

static void a_broken_kernel_is_noticed_later_and_for_good_body(void)
{
    void *at;
    sim_start();
    sim_watch();
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(sim_launch(&stub_a, NULL), 0); /* this one breaks, but not before it has run */
    CHECK_IS(rt.cudaMalloc(&at, 64), 0);
    CHECK_IS(rt.cudaDeviceSynchronize(), 719);
    CHECK_IS(sim_launch(&stub_a, NULL), 719);
    CHECK_IS(rt.cudaMalloc(&at, 64), 719);
    rt.cudaGetLastError();
    CHECK_IS(rt.cudaStreamQuery(NULL), 719);
    CHECK_IS(seen_count, 2);
    CHECK_IS(rt.cudaDeviceReset(), 0);
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(seen[2].context, 2); /* the primary context was made anew */
}
SIM_TEST(a_broken_kernel_is_noticed_later_and_for_good, "SIMGPU_FAIL=kernel:2:719", "SIMGPU_RULES=kernel=500000000",
         NULL)

static void memory_runs_out_at_the_limit_body(void)
{
    void *a, *b;
    size_t free_bytes, total_bytes;
    sim_start();
    CHECK_IS(rt.cudaMalloc(&a, 10 << 20), 0);
    CHECK_IS(rt.cudaMalloc(&b, 7 << 20), 2);
    CHECK_IS(rt.cudaMemGetInfo(&free_bytes, &total_bytes), 0);
    CHECK_IS(free_bytes, 6 << 20);
    CHECK_IS(total_bytes, 16 << 20);
    CHECK_IS(rt.cudaFree(a), 0);
    CHECK_IS(rt.cudaFree(a), 1);
    CHECK_IS(rt.cudaMalloc(&b, 16 << 20), 0);
    CHECK_IS(rt.cudaMallocHost(&a, 64 << 20), 0); /* the host's memory does not count */
}
SIM_TEST(memory_runs_out_at_the_limit, "SIMGPU_MEMORY_MB=16", NULL)

static void on_alarm(int signal)
{
    (void)signal;
    _exit(0);
}

static void a_hanging_kernel_holds_its_stream_for_ever_body(void)
{
    void *other;
    sim_start();
    rt.cudaStreamCreateWithFlags(&other, 1);
    sim_watch();
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(sim_launch(&stub_a, other), 0);
    CHECK(seen[0].end_ns != UINT64_MAX);
    CHECK(seen[1].start_ns != UINT64_MAX && seen[1].end_ns == UINT64_MAX);
    CHECK(seen[2].start_ns == UINT64_MAX && seen[2].end_ns == UINT64_MAX);
    CHECK_IS(rt.cudaStreamSynchronize(other), 0);
    CHECK_IS(rt.cudaStreamQuery(NULL), 600);
    signal(SIGALRM, on_alarm); /* the wait below must not come back */
    ualarm(300000, 0);
    rt.cudaStreamSynchronize(NULL);
    CHECK(!"a wait for a hanging kernel came back");
}
SIM_TEST(a_hanging_kernel_holds_its_stream_for_ever, "SIMGPU_HANG=2", NULL)

static void bad_launches_are_refused_body(void)
{
    struct dim3 one = {1, 1, 1}, big = {1025, 1, 1}, none = {0, 1, 1};
    sim_start();
    sim_watch();
    CHECK_IS(rt.cudaLaunchKernel(&stub_a, one, big, NULL, 0, NULL), 9);
    CHECK_IS(rt.cudaLaunchKernel(&stub_a, none, one, NULL, 0, NULL), 9);
    CHECK_IS(rt.cudaLaunchKernel(&stub_a, one, one, NULL, 1 << 20, NULL), 9);
    CHECK_IS(rt.cudaLaunchKernel((void *)on_alarm, one, one, NULL, 0, NULL), 98);
    CHECK_IS(seen_count, 0);
}
SIM_TEST(bad_launches_are_refused, NULL)

/* --- no GPU --- */
static void a_stub_library_says_34_body(void)
{
    int count;
    sim_start();
    CHECK_IS(cu.cuInit(0), 34);
    CHECK_IS(rt.cudaGetDeviceCount(&count), 34);
    CHECK(!core->is_initialised());
}
SIM_TEST(a_stub_library_says_34, "SIMGPU_STUB=1", NULL)

static void no_device_says_100_body(void)
{
    int count;
    sim_start();
    CHECK_IS(rt.cudaGetDeviceCount(&count), 100);
    CHECK_IS(cu.cuDeviceGetCount(&count), 3);
}
SIM_TEST(no_device_says_100, "SIMGPU_NO_DEVICE=1", NULL)

static void the_runtime_without_a_driver_says_35_body(void)
{
    int count;
    CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL); /* and no real one is installed */
    sim_load_runtime("libcudart.so.13");
    sim_register_kernels();
    CHECK_IS(rt.cudaGetDeviceCount(&count), 35);
    CHECK_IS(sim_launch(&stub_a, NULL), 35);
    CHECK_IS(rt.cudaGetLastError(), 35);
    CHECK_IS(rt.cudaGetLastError(), 0);
}
SIM_TEST(the_runtime_without_a_driver_says_35, NULL)

/* --- fork --- */
static int in_fork(void (*body)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        body();
        _exit(0);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void in_spoilt_child(void)
{
    int count;
    void *at;
    CHECK(!core->is_initialised());
    CHECK_IS(cu.cuInit(0), 3);
    CHECK_IS(cu.cuDeviceGetCount(&count), 3);
    CHECK_IS(rt.cudaGetDeviceCount(&count), 3);
    CHECK_IS(rt.cudaMalloc(&at, 64), 46);
    CHECK_IS(sim_launch(&stub_a, NULL), 46);
}

static void in_fresh_child(void)
{
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(rt.cudaDeviceSynchronize(), 0);
}

static void a_child_of_a_process_that_used_the_gpu_cannot_body(void)
{
    sim_start();
    CHECK_IS(in_fork(in_fresh_child), 0); /* nobody has used it yet: the child may */
    sim_watch();
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(in_fork(in_spoilt_child), 0);
    CHECK_IS(rt.cudaDeviceSynchronize(), 0); /* the parent goes on */
    for (int i = 0; i < 60000 && done_count < 1; i++) usleep(1000);
    CHECK_IS(done_count, 1);
}
SIM_TEST(a_child_of_a_process_that_used_the_gpu_cannot, NULL)

/* --- tools --- */
static void cu_init_lets_a_tool_in_body(void)
{
    char path[PATH_MAX + 64];
    sim_load_driver();
    snprintf(path, sizeof path, "%s/test/unit/simgpu/libinjected.so", sim_folder);
    setenv("CUDA_INJECTION64_PATH", path, 1);
    CHECK_IS(cu.cuInit(0), 0);
    CHECK(getenv("SIM_TEST_INJECTED") != NULL);
    unsetenv("SIM_TEST_INJECTED");
    CHECK_IS(cu.cuInit(0), 0);
    CHECK(getenv("SIM_TEST_INJECTED") == NULL); /* once */
}
SIM_TEST(cu_init_lets_a_tool_in, NULL)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_call_fails_once),
        cmocka_unit_test(a_broken_kernel_is_noticed_later_and_for_good),
        cmocka_unit_test(memory_runs_out_at_the_limit),
        cmocka_unit_test(a_hanging_kernel_holds_its_stream_for_ever),
        cmocka_unit_test(bad_launches_are_refused),
        cmocka_unit_test(a_stub_library_says_34),
        cmocka_unit_test(no_device_says_100),
        cmocka_unit_test(the_runtime_without_a_driver_says_35),
        cmocka_unit_test(a_child_of_a_process_that_used_the_gpu_cannot),
        cmocka_unit_test(cu_init_lets_a_tool_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

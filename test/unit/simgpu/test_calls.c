// SPDX-License-Identifier: Apache-2.0
/* test_calls.c - how calls are told: numbers, names, parameters, correlation; ids; memory; versions; the ground
 * truth */
#include "test/unit/simgpu/sim_test.h"

static void a_launch_and_the_drivers_call_in_it_share_their_correlation_body(void)
{
    sim_start();
    CHECK_IS(rt.cudaSetDevice(0), 0);
    sim_watch();
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(call_count, 2); /* the inner one returns first */
    CHECK_IS(calls[0].domain, SIMGPU_DRIVER);
    CHECK_IS(calls[0].cbid, 307);
    CHECK(strcmp(calls[0].name, "cuLaunchKernel") == 0);
    CHECK_IS(calls[1].domain, SIMGPU_RUNTIME);
    CHECK_IS(calls[1].cbid, 211);
    CHECK(strcmp(calls[1].name, "cudaLaunchKernel_v7000") == 0);
    CHECK(strcmp(calls[1].symbol, "_Z6kernelPf") == 0 && strcmp(calls[0].symbol, "_Z6kernelPf") == 0);
    CHECK_IS(calls[0].correlation, calls[1].correlation);
    CHECK_IS(seen[0].correlation, calls[0].correlation);
    CHECK(calls[1].enter_ns <= calls[0].enter_ns && calls[0].exit_ns <= calls[1].exit_ns);
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK(calls[3].correlation == calls[1].correlation + 1);
}
SIM_TEST(a_launch_and_the_drivers_call_in_it_share_their_correlation, "SIMGPU_NESTED_DRIVER=1", NULL)

static void driver_calls_inside_runtime_calls_are_hidden_body(void)
{
    sim_start();
    CHECK_IS(rt.cudaSetDevice(0), 0);
    sim_watch();
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(call_count, 1);
    CHECK_IS(calls[0].domain, SIMGPU_RUNTIME);
    CHECK_IS(seen[0].correlation, calls[0].correlation);
    CHECK_IS(cu.cuLaunchKernel(core->function("_Z1av"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
    CHECK_IS(call_count, 2); /* not inside one: told */
    CHECK_IS(calls[1].domain, SIMGPU_DRIVER);
}
SIM_TEST(driver_calls_inside_runtime_calls_are_hidden, NULL)

static struct {
    const void *function;
    struct dim3 grid, block;
    void **arguments;
    size_t smem;
    void *stream;
} launch_params;
static void copy_params(struct simgpu_call *call)
{
    if (call->cbid == 211) memcpy(&launch_params, call->params, sizeof launch_params);
}

static void the_parameters_of_a_call_are_its_arguments_in_order_body(void)
{
    static const struct simgpu_observer reader = {.enter = copy_params};
    struct dim3 grid = {3, 2, 1}, block = {32, 4, 1};
    sim_start();
    CHECK_IS(rt.cudaSetDevice(0), 0);
    core->observe(&reader);
    CHECK_IS(rt.cudaLaunchKernel(&stub_b, grid, block, NULL, 1024, NULL), 0);
    CHECK(launch_params.function == &stub_b);
    CHECK(memcmp(&launch_params.grid, &grid, sizeof grid) == 0 &&
          memcmp(&launch_params.block, &block, sizeof block) == 0);
    CHECK_IS(launch_params.smem, 1024);
}
SIM_TEST(the_parameters_of_a_call_are_its_arguments_in_order, NULL)

static void a_kernel_handle_launches_as_its_stub_does_body(void)
{
    struct dim3 one = {1, 1, 1};
    void *kernel = NULL;
    sim_start();
    sim_watch();
    CHECK_IS(rt.__cudaGetKernel(&kernel, &stub_b), 0);
    CHECK_IS(rt.__cudaLaunchKernel(kernel, one, one, NULL, 0, NULL), 0);
    CHECK(strcmp(seen[0].name, "_Z5otherPf") == 0);
    CHECK(strcmp(calls[call_count - 1].name, "__cudaLaunchKernel_v13000") == 0);
    CHECK_IS(rt.__cudaGetKernel(&kernel, &call_count), 98);
}
SIM_TEST(a_kernel_handle_launches_as_its_stub_does, NULL)

static void each_runtime_has_its_version_and_forms_body(void)
{
    static const struct {
        const char *file;
        int version;
        bool has_handles, has_capture_v3, has_properties_v2;
    } rows[] = {{"libcudart.so.11.0", 11080, false, false, false},
                {"libcudart.so.12", 12090, true, true, true},
                {"libcudart.so.13", 13020, true, false, false}};
    sim_load_driver();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int version = 0;
        void *library = sim_load_runtime(rows[i].file);
        CHECK_IS(rt.cudaRuntimeGetVersion(&version), 0);
        CHECK_IS(version, rows[i].version);
        CHECK_IS(dlsym(library, "__cudaLaunchKernel") != NULL, rows[i].has_handles);
        CHECK_IS(dlsym(library, "cudaStreamGetCaptureInfo_v3") != NULL, rows[i].has_capture_v3);
        CHECK_IS(dlsym(library, "cudaGetDeviceProperties_v2") != NULL, rows[i].has_properties_v2);
        CHECK(dlvsym(library, "cudaMalloc", rows[i].file) != NULL); /* under its version node */
        CHECK(dlsym(library, "rt_core") == NULL);
    }
}
SIM_TEST(each_runtime_has_its_version_and_forms, NULL)

static void the_smoke_program_runs_on_each_runtime_body(void)
{
    static const char *const runtimes[] = {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"};
    char command[2 * PATH_MAX + 128], said[128] = "";
    sim_load_driver(); /* for the folder's name */
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "LD_LIBRARY_PATH=%s/simgpu %s/simgpu/smoke %s 5", sim_folder, sim_folder,
                 runtimes[i]);
        FILE *f = popen(command, "r");
        CHECK(f != NULL && fgets(said, sizeof said, f) != NULL);
        CHECK_IS(pclose(f), 0);
        CHECK(strcmp(said, "smoke: 5 steps, 20 kernels, 10 copies, 5 host functions\n") == 0);
    }
}
SIM_TEST(the_smoke_program_runs_on_each_runtime, NULL)

static void properties_and_attributes_agree_body(void)
{
    struct {
        char name[256];
        uint8_t uuid[16];
        char luid[8];
        unsigned luid_mask;
        size_t total, smem;
        int registers, warp;
        char rest[4096];
    } p = {.warp = 0};
    int driver = 0, sms = 0;
    sim_start();
    CHECK_IS(rt.cudaGetDeviceProperties(&p, 1), 0);
    CHECK(strstr(p.name, "simulated") != NULL);
    CHECK_IS(p.uuid[15], 1);
    CHECK_IS(p.total, 1024u << 20);
    CHECK_IS(p.smem, 49152);
    CHECK_IS(p.warp, 32);
    CHECK_IS(rt.cudaGetDeviceProperties(&p, 2), 101);
    CHECK_IS(cu.cuDeviceGetAttribute(&sms, 16, 1), 0);
    CHECK_IS(sms, 132);
    CHECK_IS(rt.cudaDriverGetVersion(&driver), 0);
    CHECK_IS(driver, 12040);
}
SIM_TEST(properties_and_attributes_agree, "SIMGPU_DEVICES=2", "SIMGPU_MEMORY_MB=1024", "SIMGPU_DRIVER_VERSION=12040",
         NULL)

static void each_device_has_its_context_and_copies_between_them_are_told_body(void)
{
    void *a, *b;
    sim_start();
    sim_watch();
    CHECK_IS(rt.cudaSetDevice(1), 0);
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(rt.cudaMalloc(&b, 4096), 0);
    CHECK_IS(rt.cudaSetDevice(0), 0);
    CHECK_IS(rt.cudaMalloc(&a, 4096), 0);
    CHECK_IS(sim_launch(&stub_a, NULL), 0);
    CHECK_IS(seen[0].device, 1);
    CHECK_IS(seen[0].context, 1); /* numbered as they are made */
    CHECK_IS(seen[1].device, 0);
    CHECK_IS(seen[1].context, 2);
    CHECK_IS(rt.cudaMemcpyPeerAsync(b, 1, a, 0, 4096, NULL), 0);
    CHECK(seen[2].is_peer);
    CHECK_IS(seen[2].copy_kind, 10);
    CHECK_IS(seen[2].peer_src_device, 0);
    CHECK_IS(seen[2].peer_dst_device, 1);
    CHECK_IS(seen[2].peer_dst_context, 1);
    CHECK_IS(rt.cudaSetDevice(2), 101);
}
SIM_TEST(each_device_has_its_context_and_copies_between_them_are_told, "SIMGPU_DEVICES=2", NULL)

static void memory_is_where_the_program_put_it_body(void)
{
    struct {
        int type, device;
        void *of_device, *of_host;
        long reserved[8];
    } about;
    char text[64], *device, *pinned;
    sim_start();
    sim_watch();
    CHECK_IS(rt.cudaMalloc((void **)&device, 64), 0);
    CHECK_IS(rt.cudaMallocHost((void **)&pinned, 64), 0);
    CHECK_IS(device[63], 0); /* zeroed */
    CHECK_IS(rt.cudaMemcpy(device, "what was written", 17, 1), 0);
    CHECK_IS(seen[0].src_kind, 1);
    CHECK_IS(rt.cudaMemcpyAsync(pinned, device, 64, 4, NULL), 0);
    CHECK_IS(seen[1].copy_kind, 2);
    CHECK_IS(seen[1].dst_kind, 2);
    CHECK_IS(rt.cudaMemcpy(text, pinned, 64, 4), 0);
    CHECK(strcmp(text, "what was written") == 0);
    CHECK_IS(rt.cudaMemset(device, 7, 32), 0);
    CHECK_IS(device[31], 7);
    CHECK_IS(device[32], 0);
    CHECK_IS(seen[3].kind, SIMGPU_MEMSET);
    CHECK_IS(seen[3].value, 7);
    CHECK_IS(seen[3].bytes, 32);
    CHECK_IS(rt.cudaPointerGetAttributes(&about, device + 5), 0);
    CHECK_IS(about.type, 2);
    CHECK_IS(rt.cudaPointerGetAttributes(&about, pinned), 0);
    CHECK_IS(about.type, 1);
    CHECK_IS(rt.cudaPointerGetAttributes(&about, text), 0);
    CHECK_IS(about.type, 0);
    CHECK_IS(rt.cudaMemcpy(device, text, 1, 9), 21);
}
SIM_TEST(memory_is_where_the_program_put_it, NULL)

static void mapped_memory_counts_and_can_be_seen_twice_body(void)
{
    enum { GRANULE = 2 << 20 };
    struct {
        int type, handles, location[2];
        void *more[2];
    } properties = {.type = 1, .location = {1, 0}};
    struct {
        int location[2], flags;
    } access = {{1, 0}, 3};
    void *handle, *a, *b;
    size_t free_bytes, total_bytes;
    sim_start();
    CHECK_IS(rt.cudaMemGetInfo(&free_bytes, &total_bytes), 0);
    CHECK_IS(cu.cuMemCreate(&handle, GRANULE - 1, &properties, 0), 1);
    CHECK_IS(cu.cuMemCreate(&handle, GRANULE, &properties, 0), 0);
    CHECK_IS(cu.cuMemAddressReserve(&a, 2 * GRANULE, 0, NULL, 0), 0);
    CHECK_IS((uintptr_t)a % GRANULE, 0);
    b = (char *)a + GRANULE;
    CHECK_IS(cu.cuMemMap(a, GRANULE, 0, handle, 0), 0);
    CHECK_IS(cu.cuMemMap(b, GRANULE, 0, handle, 0), 0);
    CHECK_IS(cu.cuMemSetAccess(a, 2 * GRANULE, &access, 1), 0);
    CHECK_IS(rt.cudaMemset(a, 5, GRANULE), 0);
    CHECK_IS(*((char *)b + 100), 5);
    CHECK_IS(cu.cuMemRelease(handle), 0);
    CHECK_IS(cu.cuMemUnmap(a, 2 * GRANULE), 0);
    CHECK_IS(cu.cuMemAddressFree(a, 2 * GRANULE), 0);
    size_t free_again;
    CHECK_IS(rt.cudaMemGetInfo(&free_again, &total_bytes), 0);
    CHECK_IS(free_again, free_bytes);
}
SIM_TEST(mapped_memory_counts_and_can_be_seen_twice, NULL)

static void modules_hold_the_kernels_of_their_text_body(void)
{
    void *module, *function, *at;
    size_t bytes;
    const char *name;
    sim_start();
    CHECK_IS(rt.cudaSetDevice(0), 0);
    sim_watch();
    CHECK_IS(cu.cuModuleLoadData(&module, ".version 8.0\n.global .align 4 .b32 table[5];\n.visible .entry "
                                          "triton_poi_fused_0(\n.param .u64 x)\n{ ret; }\n"),
             0);
    CHECK_IS(cu.cuModuleGetFunction(&function, module, "triton_poi_fused_0"), 0);
    CHECK_IS(cu.cuModuleGetFunction(&function, module, "absent"), 500);
    CHECK_IS(cu.cuModuleGetGlobal_v2(&at, &bytes, module, "table"), 0);
    CHECK_IS(bytes, 20);
    CHECK_IS(((int *)at)[4], 0);
    CHECK_IS(cu.cuModuleGetGlobal_v2(&at, &bytes, module, "triton_poi_fused_0"), 500);
    CHECK_IS(cu.cuModuleGetFunction(&function, module, "triton_poi_fused_0"), 0);
    CHECK_IS(cu.cuFuncGetName(&name, function), 0);
    CHECK(strcmp(name, "triton_poi_fused_0") == 0);
    CHECK_IS(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), 0);
    CHECK_IS(cu.cuLaunchKernel_ptsz(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), 0);
    CHECK(strcmp(seen[0].name, "triton_poi_fused_0") == 0);
    CHECK_IS(calls[call_count - 1].cbid, 442);
    CHECK_IS(seen[0].stream, 7);
    CHECK_IS(seen[1].stream, 13); /* the thread's own */
    CHECK_IS(cu.cuModuleUnload(module), 0);
    CHECK_IS(cu.cuModuleUnload(module), 400);
}
SIM_TEST(modules_hold_the_kernels_of_their_text, NULL)

static void functions_are_found_by_name_and_version_body(void)
{
    void *old_form, *new_form, *plain, *absent = &plain;
    int status = 0;
    sim_start();
    CHECK_IS(rt.cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &old_form, 12000, 0, &status), 0);
    CHECK_IS(rt.cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &new_form, 13000, 0, &status), 0);
    CHECK(old_form == (void *)cu.cuStreamGetCaptureInfo_v2 && new_form == (void *)cu.cuStreamGetCaptureInfo_v3);
    CHECK_IS(rt.cudaGetDriverEntryPointByVersion("cuMemAlloc", &plain, 12000, 0, &status), 0);
    CHECK(plain == (void *)cu.cuMemAlloc_v2);
    CHECK_IS(rt.cudaGetDriverEntryPointByVersion("cuNoSuchThing", &absent, 12000, 0, &status), 0);
    CHECK(absent == NULL && status == 1);
    CHECK_IS(rt.cudaGetDriverEntryPointByVersion("cuLaunchKernel", &plain, 12000, 2, &status), 0);
    CHECK(plain == (void *)cu.cuLaunchKernel_ptsz);
}
SIM_TEST(functions_are_found_by_name_and_version, NULL)

static void the_log_tells_what_the_observer_was_told_body(void)
{
    char line[4096], wanted[256];
    sim_start();
    sim_watch();
    sim_launch(&stub_a, NULL);
    rt.cudaDeviceSynchronize();
    FILE *f = fopen(getenv("SIMGPU_LOG"), "r");
    CHECK(f != NULL);
    snprintf(wanted, sizeof wanted, "\"correlation\":%u,\"start\":%llu,\"end\":%llu,\"device_start\":%llu",
             seen[0].correlation, (unsigned long long)seen[0].start_ns, (unsigned long long)seen[0].end_ns,
             (unsigned long long)core->device_ns(seen[0].start_ns));
    int works = 0, syncs = 0, launches = 0;
    while (fgets(line, sizeof line, f)) {
        if (strstr(line, "\"what\":\"work\""))
            works += strstr(line, wanted) && strstr(line, "\"name\":\"_Z6kernelPf\"");
        syncs += strstr(line, "\"what\":\"sync\",\"type\":4") != NULL;
        launches += strstr(line, "\"name\":\"cudaLaunchKernel_v7000\",\"cbid\":211") != NULL;
    }
    fclose(f);
    CHECK_IS(works, 1);
    CHECK_IS(syncs, 1);
    CHECK_IS(launches, 1);
    unlink(getenv("SIMGPU_LOG"));
}

static void the_log_tells_what_the_observer_was_told(void **state)
{
    char setting[64] = "SIMGPU_LOG=/tmp/simgpu-log-XXXXXX";
    (void)state;
    int fd = mkstemp(setting + strlen("SIMGPU_LOG="));
    assert_true(fd >= 0);
    close(fd);
    in_child(the_log_tells_what_the_observer_was_told_body, WITH(setting, "SIMGPU_LOG_CALLS=1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_and_the_drivers_call_in_it_share_their_correlation),
        cmocka_unit_test(driver_calls_inside_runtime_calls_are_hidden),
        cmocka_unit_test(the_parameters_of_a_call_are_its_arguments_in_order),
        cmocka_unit_test(a_kernel_handle_launches_as_its_stub_does),
        cmocka_unit_test(each_runtime_has_its_version_and_forms),
        cmocka_unit_test(the_smoke_program_runs_on_each_runtime),
        cmocka_unit_test(properties_and_attributes_agree),
        cmocka_unit_test(each_device_has_its_context_and_copies_between_them_are_told),
        cmocka_unit_test(memory_is_where_the_program_put_it),
        cmocka_unit_test(mapped_memory_counts_and_can_be_seen_twice),
        cmocka_unit_test(modules_hold_the_kernels_of_their_text),
        cmocka_unit_test(functions_are_found_by_name_and_version),
        cmocka_unit_test(the_log_tells_what_the_observer_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_decode.c - CUPTI's records of every release from 11.7 to 13.5, as NVIDIA's headers lay them out,
 * decoded */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/cupti/library/decode.h"
#include "test/support/layouts.h"
#include "test/support/support.h"

static const char *const *json_kinds(const char *ours)
{
    static const char *const api[] = {"RUNTIME", "DRIVER", NULL}, *const kernel[] = {"CONCURRENT_KERNEL", "KERNEL",
                                                                                     NULL};
    static const char *same[2];
    if (strcmp(ours, "API") == 0) return api;
    if (strcmp(ours, "KERNEL") == 0) return kernel;
    same[0] = ours;
    return same;
}

static void check_row(const char *ours, const char *field, uint32_t at, uint32_t bytes, uint32_t needs)
{
    for (const char *const *kind = json_kinds(ours); *kind; kind++)
        for (int release = 0; release < kp_release_count; release++) {
            uint32_t real_at = 0, real_bytes = 0, record = kp_layout_bytes(*kind, release);
            bool has = kp_layout_field(*kind, field, release, &real_at, &real_bytes);
            if (record == 0) continue;
            if (has != (record >= needs) || (has && (real_at != at || real_bytes != bytes || at + bytes > record)))
                fail_msg("%s.%s of CUPTI %s: at %u, %u bytes, in a record of %u", *kind, field, kp_releases[release],
                         real_at, real_bytes, record);
        }
}

static void every_row_of_the_layout_holds_in_every_release(void **state)
{
    (void)state;
    kp_layouts_load();
#define KP_FIELD(kind, field, offset, bytes, needs) check_row(#kind, #field, offset, bytes, needs);
#include "preload/cupti/library/layout.def"
#undef KP_FIELD
}

/* ---- a record made from the headers' layout, and what it must become ---- */

static struct {
    const char *kind;
    int release;
    uint32_t size;
    uint8_t bytes[512];
} made;

static void make(const char *kind, int release)
{
    uint32_t number = kp_layout_kind(kind);
    made.kind = kind;
    made.release = release;
    made.size = kp_layout_bytes(kind, release);
    memset(made.bytes, 0xee, sizeof made.bytes); /* what lies behind the record, and in its padding, must not be read */
    memset(made.bytes, 0, made.size);
    memcpy(made.bytes, &number, sizeof number);
}

static bool has(const char *field)
{
    uint32_t at, bytes;
    return kp_layout_field(made.kind, field, made.release, &at, &bytes);
}

static uint64_t set(const char *field, uint64_t value)
{
    uint32_t at, bytes;
    if (!kp_layout_field(made.kind, field, made.release, &at, &bytes)) return 0;
    if (bytes < 8) value &= (UINT64_C(1) << bytes * 8) - 1;
    memcpy(made.bytes + at, &value, bytes < 8 ? bytes : 8);
    return value;
}

static struct kp_decoded decoded(void)
{
    struct kp_decoded d;
    memset(&d, 0x55, sizeof d);
    kp_decode_record(made.bytes, made.size, &d);
    return d;
}

#define START UINT64_C(1790857026000000001)
#define END UINT64_C(1790857026000012345)

static void set_times(void)
{
    set("start", START);
    set("end", END);
}

#define EACH_RELEASE(kind)                                       \
    kp_layouts_load();                                           \
    for (int release = 0; release < kp_release_count; release++) \
        if (kp_layout_bytes(kind, release) && (make(kind, release), true))

static void a_kernel_is_decoded_in_every_release(void **state)
{
    static const char *const names[] = {"CONCURRENT_KERNEL", "KERNEL"};
    int with_priority = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        EACH_RELEASE(names[i])
        {
            set_times();
            uint64_t queued = set("queued", 77), node = set("graphNodeId", UINT64_C(0x1234567890));
            uint64_t name = set("name", (uintptr_t) "_Z3abcv"), registers = set("registersPerThread", 255);
            uint64_t device = set("deviceId", 3), context = set("contextId", 4), stream = set("streamId", 7);
            uint64_t correlation = set("correlationId", 0xfffffff1u), local = set("localMemoryPerThread", 96);
            set("gridX", 1000000), set("gridY", 2), set("gridZ", 3), set("blockX", 1024), set("blockY", 5),
                set("blockZ", 6);
            uint64_t smem = set("staticSharedMemory", 49152), dynamic = set("dynamicSharedMemory", 180000);
            uint64_t graph = set("graphId", 9), channel = set("channelID", 11), type = set("channelType", 1),
                     launch = set("launchType", 2);
            set("priority", (uint64_t)(int64_t)-5);
            struct kp_decoded d = decoded();
            struct kp_rec_kernel *k = &d.kernel;
            assert_false(d.is_invalid);
            assert_int_equal(d.head.kind, KP_KIND_KERNEL);
            assert_int_equal(d.head.size, sizeof *k);
            assert_int_equal(d.head.flags, 0);
            assert_true(d.name == (const char *)(uintptr_t)name);
            assert_true(k->start == START && k->end == END && k->queued == queued && k->graph_node == node);
            assert_true(k->registers == registers && k->device == device && k->context == context &&
                        k->stream == stream);
            assert_true(k->correlation == correlation && k->local_per_thread == local);
            assert_true(k->grid[0] == 1000000 && k->grid[1] == 2 && k->grid[2] == 3);
            assert_true(k->block[0] == 1024 && k->block[1] == 5 && k->block[2] == 6);
            assert_true(k->static_smem == smem && k->dynamic_smem == dynamic && k->graph == graph &&
                        k->channel == channel);
            assert_true(k->channel_type == type && k->launch_type == launch);
            assert_int_equal(k->has & KP_KERNEL_GRAPH, KP_KERNEL_GRAPH);
            assert_int_equal(!!(k->has & KP_KERNEL_PRIORITY), has("priority"));
            assert_int_equal(k->priority, has("priority") ? -5 : 0);
            with_priority += has("priority");
        }
    }
    assert_true(with_priority >= 10); /* 13.1 to 13.5, both kinds */
}

static void calls_are_decoded_in_every_release(void **state)
{
    static const char *const names[] = {"RUNTIME", "DRIVER"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        EACH_RELEASE(names[i])
        {
            set_times();
            set("cbid", 211), set("threadId", 0x8000beef), set("correlationId", 42),
                set("returnValue", (uint64_t)(int64_t)-2);
            struct kp_decoded d = decoded();
            assert_int_equal(d.head.kind, KP_KIND_API);
            assert_int_equal(d.head.flags, i ? KP_DEV_DRIVER : 0);
            assert_true(d.api.start == START && d.api.end == END && d.api.cbid == 211 && d.api.correlation == 42);
            assert_true(d.api.thread_id == 0x8000beef && d.api.result == -2 && d.api.tid == 0 &&
                        d.api.stream == KP_DEV_NONE);
        }
    }
}

static void copies_and_fills_are_decoded_in_every_release(void **state)
{
    static const char *const names[] = {"MEMCPY", "MEMCPY2", "MEMSET"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        EACH_RELEASE(names[i])
        {
            set_times();
            set("bytes", UINT64_C(5000000000)), set("deviceId", 1), set("contextId", 2), set("streamId", 3);
            set("correlationId", 4), set("graphNodeId", 0), set("graphId", 0), set("channelID", 5),
                set("channelType", 2);
            set("copyKind", 8), set("srcKind", 3), set("dstKind", 4), set("flags", 1), set("value", 0xab),
                set("memoryKind", 3);
            set("srcDeviceId", 10), set("srcContextId", 11), set("dstDeviceId", 12), set("dstContextId", 13);
            struct kp_decoded d = decoded();
            struct kp_rec_copy *c = &d.copy;
            assert_int_equal(d.head.kind, i == 2 ? KP_KIND_MEMSET : KP_KIND_MEMCPY);
            assert_true(c->start == START && c->end == END && c->bytes == UINT64_C(5000000000) && c->is_async);
            assert_true(c->device == 1 && c->context == 2 && c->stream == 3 && c->correlation == 4 && c->channel == 5 &&
                        c->channel_type == 2);
            assert_int_equal(c->has, KP_KERNEL_GRAPH | KP_KERNEL_CHANNEL);
            assert_int_equal(c->is_peer, i == 1);
            if (i == 2) assert_true(c->value == 0xab && c->dst_kind == 3);
            else assert_true(c->kind == 8 && c->src_kind == 3 && c->dst_kind == 4);
            if (i == 1)
                assert_true(c->src_device == 10 && c->src_context == 11 && c->dst_device == 12 && c->dst_context == 13);
        }
    }
}

static void waits_and_events_are_decoded_in_every_release(void **state)
{
    (void)state;
    EACH_RELEASE("SYNCHRONIZATION")
    {
        set_times();
        set("type", 2), set("correlationId", 5), set("contextId", 6), set("streamId", 7), set("cudaEventId", 8);
        uint64_t sync = set("cudaEventSyncId", UINT64_C(0x100000009)), result = set("returnValue", 3);
        struct kp_decoded d = decoded();
        assert_int_equal(d.head.kind, KP_KIND_SYNC);
        assert_true(d.sync.start == START && d.sync.end == END && d.sync.type == 2 && d.sync.correlation == 5);
        assert_true(d.sync.context == 6 && d.sync.stream == 7 && d.sync.event == 8 && d.sync.event_sync == sync &&
                    d.sync.result == result);
    }
    EACH_RELEASE("CUDA_EVENT")
    {
        set("correlationId", 5), set("contextId", 6), set("streamId", 7), set("eventId", 8);
        uint64_t sync = set("cudaEventSyncId", UINT64_C(0x100000009)), at = set("deviceTimestamp", START);
        struct kp_decoded d = decoded();
        assert_int_equal(d.head.kind, KP_KIND_CUDAEVENT);
        assert_true(d.event.correlation == 5 && d.event.context == 6 && d.event.stream == 7 && d.event.event == 8);
        assert_true(d.event.event_sync == sync && d.event.device_time == at && !d.is_invalid);
    }
}

static void overheads_graphs_and_contexts_are_decoded_in_every_release(void **state)
{
    (void)state;
    EACH_RELEASE("OVERHEAD")
    {
        uint32_t at, bytes, pid = 100, tid = 200;
        set_times();
        set("overheadKind", 0x40000), set("objectKind", 1);
        assert_true(kp_layout_field("OVERHEAD", "objectId", release, &at, &bytes));
        memcpy(made.bytes + at, &pid, 4), memcpy(made.bytes + at + 4, &tid, 4);
        uint64_t correlation = set("correlationId", 9);
        struct kp_decoded d = decoded();
        assert_int_equal(d.head.kind, KP_KIND_OVERHEAD);
        assert_true(d.overhead.start == START && d.overhead.end == END && d.overhead.type == 0x40000 &&
                    d.overhead.object == 1);
        assert_true(d.overhead.pid_or_device == 100 && d.overhead.tid_or_context == 200 &&
                    d.overhead.correlation == correlation);
    }
    EACH_RELEASE("GRAPH_TRACE")
    {
        set_times();
        set("correlationId", 1), set("deviceId", 2), set("graphId", 3), set("contextId", 4), set("streamId", 5);
        struct kp_decoded d = decoded();
        assert_int_equal(d.head.kind, KP_KIND_GRAPHRUN);
        assert_true(d.graphrun.correlation == 1 && d.graphrun.device == 2 && d.graphrun.graph == 3 &&
                    d.graphrun.context == 4 && d.graphrun.stream == 5);
    }
    EACH_RELEASE("CONTEXT")
    {
        set("contextId", 1), set("deviceId", 2), set("nullStreamId", 7);
        uint64_t sms = set("numMultiprocessors", 132);
        struct kp_decoded d = decoded();
        assert_int_equal(d.head.kind, KP_KIND_CONTEXT);
        assert_true(d.context.context == 1 && d.context.device == 2 && d.context.null_stream == 7 &&
                    d.context.sms == sms);
    }
}

static void a_device_is_decoded_in_every_release(void **state)
{
    (void)state;
    EACH_RELEASE("DEVICE")
    {
        uint32_t at, bytes;
        set("id", 2), set("computeCapabilityMajor", 9), set("computeCapabilityMinor", 1), set("numThreadsPerWarp", 32);
        set("globalMemorySize", UINT64_C(85899345920)), set("maxThreadsPerBlock", 1024),
            set("maxWarpsPerMultiprocessor", 64);
        set("maxRegistersPerBlock", 65536), set("maxRegistersPerMultiprocessor", 65537),
            set("maxSharedMemoryPerBlock", 49152);
        set("maxSharedMemoryPerMultiprocessor", 233472), set("numMultiprocessors", 132),
            set("maxBlocksPerMultiprocessor", 32);
        set("coreClockRate", 1980000), set("globalMemoryBandwidth", UINT64_C(3352320000)), set("isMigEnabled", 1),
            set("name", 0x1000), set("isCudaVisible", 1);
        assert_true(kp_layout_field("DEVICE", "uuid", release, &at, &bytes));
        memset(made.bytes + at, 0x5a, bytes);
        struct kp_decoded d = decoded();
        assert_int_equal(d.head.kind, KP_KIND_DEVICE);
        assert_true(d.device.id == 2 && d.device.major == 9 && d.device.minor == 1 && d.device.warp_size == 32);
        assert_true(d.device.total_memory == UINT64_C(85899345920) && d.device.max_threads_per_block == 1024 &&
                    d.device.max_threads_per_sm == 2048);
        assert_true(d.device.regs_per_block == 65536 && d.device.regs_per_sm == 65537 &&
                    d.device.smem_per_block == 49152);
        assert_true(d.device.smem_per_sm == 233472 && d.device.sms == 132 && d.device.max_blocks_per_sm == 32 &&
                    d.device.max_warps_per_sm == 64);
        assert_true(d.device.core_clock_khz == 1980000 && d.device.bandwidth_kb == UINT64_C(3352320000) &&
                    d.device.mig == 1);
        assert_true(d.device.uuid[0] == 0x5a && d.device.uuid[15] == 0x5a && d.name == (const char *)0x1000);
        set("isCudaVisible", 0); /* hidden by CUDA_VISIBLE_DEVICES */
        assert_int_equal(decoded().head.kind, 0);
    }
}

static void work_without_times_is_kept_and_a_call_without_is_not_good(void **state)
{
    static const struct {
        uint64_t start, end;
    } bad[] = {{0, 0}, {0, END}, {START, 0}, {END, START}};
    static const char *const kinds[] = {"CONCURRENT_KERNEL", "MEMCPY",          "MEMCPY2", "MEMSET",
                                        "RUNTIME",           "SYNCHRONIZATION", "OVERHEAD"};
    (void)state;
    kp_layouts_load();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            make(kinds[k], kp_release_count - 1);
            set("start", bad[i].start), set("end", bad[i].end);
            struct kp_decoded d = decoded();
            assert_true(d.is_invalid);
            assert_int_equal(d.head.flags & KP_DEV_NO_TIME, k < 4 ? KP_DEV_NO_TIME : 0);
        }
    make("MEMSET", 0);
    set("start", START), set("end", START);
    assert_false(decoded().is_invalid);
}

static void a_record_shorter_than_any_release_has_it_is_left_alone(void **state)
{
    struct kp_decoded d;
    (void)state;
    kp_layouts_load();
    make("CONCURRENT_KERNEL", 0);
    kp_decode_record(made.bytes, 168, &d);
    assert_int_equal(d.head.kind, 0);
    make("EXTERNAL_CORRELATION", 0);
    assert_int_equal(decoded().head.kind, 0);
}

/* ---- the walk ---- */

static uint16_t sizes[KP_CUPTI_KINDS] = {
    [KP_CUPTI_RUNTIME] = 40, [KP_CUPTI_CONCURRENT_KERNEL] = 176, [KP_CUPTI_MEMSET] = 88};
static uint8_t buffer[4096];

static size_t add(size_t at, uint32_t kind)
{
    memset(buffer + at, 0x77, sizes[kind]);
    memcpy(buffer + at, &kind, sizeof kind);
    return at + sizes[kind];
}

static unsigned walked(size_t bytes, struct kp_walk *walk)
{
    uint32_t size;
    unsigned n = 0;
    *walk = (struct kp_walk){.at = buffer, .end = buffer + bytes, .sizes = sizes};
    for (; kp_walk_next(walk, &size); n++) assert_true(size == 40 || size == 176 || size == 88);
    return n;
}

static void a_buffer_is_walked_and_holes_are_passed_over(void **state)
{
    struct kp_walk walk;
    (void)state;
    memset(buffer, 0, sizeof buffer);
    size_t at = add(add(0, KP_CUPTI_RUNTIME), KP_CUPTI_CONCURRENT_KERNEL);
    assert_int_equal(walked(at, &walk), 2);
    assert_true(walk.lost == 0 && walk.holes == 0);
    at = add(at + 176, KP_CUPTI_MEMSET); /* a kernel's place that CUPTI left zeroed */
    assert_int_equal(walked(at, &walk), 3);
    assert_true(walk.lost == 0 && walk.holes == 176);
    assert_int_equal(walked(at + 80, &walk), 3); /* zeroes at the end */
    assert_int_equal(walked(0, &walk), 0);
    assert_int_equal(walked(4, &walk), 0);
}

static void a_walk_ends_at_an_unknown_kind_or_a_cut_record_and_says_how_much_is_lost(void **state)
{
    struct kp_walk walk;
    uint32_t strange = 63, wild = 0xdeadbeef;
    (void)state;
    memset(buffer, 0, sizeof buffer);
    size_t at = add(0, KP_CUPTI_RUNTIME);
    assert_int_equal(walked(at - 8, &walk), 0);
    assert_int_equal(walk.lost, 32);
    memcpy(buffer + at, &strange, 4);
    assert_int_equal(walked(at + 400, &walk), 1);
    assert_int_equal(walk.lost, 400);
    memcpy(buffer + at, &wild, 4);
    assert_int_equal(walked(at + 8, &walk), 1);
    assert_int_equal(walk.lost, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_layout_holds_in_every_release),
        cmocka_unit_test(a_kernel_is_decoded_in_every_release),
        cmocka_unit_test(calls_are_decoded_in_every_release),
        cmocka_unit_test(copies_and_fills_are_decoded_in_every_release),
        cmocka_unit_test(waits_and_events_are_decoded_in_every_release),
        cmocka_unit_test(overheads_graphs_and_contexts_are_decoded_in_every_release),
        cmocka_unit_test(a_device_is_decoded_in_every_release),
        cmocka_unit_test(work_without_times_is_kept_and_a_call_without_is_not_good),
        cmocka_unit_test(a_record_shorter_than_any_release_has_it_is_left_alone),
        cmocka_unit_test(a_buffer_is_walked_and_holes_are_passed_over),
        cmocka_unit_test(a_walk_ends_at_an_unknown_kind_or_a_cut_record_and_says_how_much_is_lost),
    };
    return cmocka_run_group_tests_name("cupti/decode", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_lane.c - CUPTI's buffers: out of the pool, decoded by several threads at once, into chunks of the right
 * window */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_gate.h"
#include "collector/record/kp_record.h"
#include "collector/record/record_internal.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/run.h"
#include "preload/source.h"
#include "test/support/halves.h"
#include "test/support/support.h"

enum {
    CONTEXT = 32,
    API = 40,
    KERNEL = 224,
    EVENT = 56,
    THREADS = 4,
    BUFFERS_EACH = 24,
    PAIRS = 1500,
    POOL_BYTES = 512 << 10,
    FAST_BUFFERS = 40,
    FAST_KERNELS = 2000
};
static _Atomic uint32_t correlation;

/* ---- what is in the file ---- */

struct found {
    uint64_t kinds[KP_KIND_N], api_names, kernel_names;
    uint32_t first_name, last_name, last_tid;
};

static struct found found_in(uint32_t cycle)
{
    struct found f = {.first_name = 0};
    size_t bytes;
    uint8_t *const file = halves_read(&bytes);
    for (size_t at = KP_CHUNK_BYTES; at + KP_CHUNK_BYTES <= bytes; at += KP_CHUNK_BYTES) {
        const struct kp_chunk_head *chunk = (const void *)(file + at);
        if (chunk->magic != KP_CHUNK_MAGIC || chunk->kind != KP_CHUNK_DEVICE || chunk->cycle != cycle) continue;
        for (uint32_t in = sizeof *chunk; in < chunk->used;) {
            const struct kp_rec *r = (const void *)(file + at + in);
            assert_true(r->size >= sizeof *r && r->kind < KP_KIND_N);
            f.kinds[r->kind]++;
            if (r->kind == KP_KIND_API) f.last_tid = ((const struct kp_rec_api *)r)->tid;
            f.api_names += r->kind == KP_KIND_API && r->name;
            f.kernel_names += r->kind == KP_KIND_KERNEL && r->name;
            if (r->kind == KP_KIND_KERNEL && !f.first_name) f.first_name = r->name;
            if (r->kind == KP_KIND_KERNEL) f.last_name = r->name;
            in += r->size;
        }
    }
    munmap(file, bytes);
    return f;
}

/* ---- buffers ---- */

static void put32(uint8_t *r, size_t at, uint32_t v) { memcpy(r + at, &v, 4); }
static void put64(uint8_t *r, size_t at, uint64_t v) { memcpy(r + at, &v, 8); }

static size_t call(uint8_t *r, uint32_t kind, uint32_t cbid, uint32_t number)
{
    put32(r, 0, kind);
    put32(r, KP_AT_API_cbid, cbid);
    put64(r, KP_AT_API_start, 1000);
    put64(r, KP_AT_API_end, 2000);
    put32(r, KP_AT_API_threadId, (uint32_t)(uintptr_t)pthread_self());
    put32(r, KP_AT_API_correlationId, number);
    return API;
}

static size_t kernel(uint8_t *r, const char *name, uint32_t number, uint32_t graph)
{
    put32(r, 0, KP_CUPTI_CONCURRENT_KERNEL);
    put64(r, KP_AT_KERNEL_start, 3000);
    put64(r, KP_AT_KERNEL_end, 4000);
    for (size_t at = KP_AT_KERNEL_gridX; at <= KP_AT_KERNEL_blockZ; at += 4) put32(r, at, 1);
    put32(r, KP_AT_KERNEL_correlationId, number);
    put32(r, KP_AT_KERNEL_graphId, graph);
    memcpy(r + KP_AT_KERNEL_name, &name, sizeof name);
    return KERNEL;
}

static size_t odd_kernel(uint8_t *r, const char *name, uint32_t number)
{
    size_t bytes = kernel(r, name, number, 0);
    put32(r, KP_AT_KERNEL_gridX, 0);
    return bytes;
}

static uint8_t *taken(void)
{
    uint8_t *buffer = NULL;
    size_t bytes = 0, most = 1;
    kp_buffer_request(&buffer, &bytes, &most);
    assert_true(buffer && bytes == POOL_BYTES && most == 0 && kp_buffer_is_ours(buffer));
    return buffer;
}

static void given(uint8_t *buffer, size_t valid) { kp_buffer_complete(NULL, 0, buffer, POOL_BYTES, valid); }

static void waits_are_asked_for(bool are)
{
    static struct kp_config settings;
    settings.activities = KP_ACTIVITY_CUDA;
    settings.cuda_sync = are;
    kp_cupti_source.setup(&settings);
}

static void window(uint32_t cycle, uint32_t bits)
{
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON | bits));
    kp_lane_collect(cycle);
}

static int prepare(void **state)
{
    struct kp_record_options options = {.dir = kp_test_tmpdir(), .max_bytes = (uint64_t)256 << 20, .text = ""};
    (void)state;
    kp_run_set_gpu_backend(KP_GPU_CUPTI);
    kp_clock_init();
    if (kp_gate_init() != 0 || kp_record_open(&options) != 0 || kp_buffer_setup() != 0 || kp_lane_setup() != 0)
        return -1;
    kp_sizes[KP_CUPTI_RUNTIME] = kp_sizes[KP_CUPTI_DRIVER] = API;
    kp_sizes[KP_CUPTI_CONCURRENT_KERNEL] = KERNEL;
    kp_sizes[KP_CUPTI_CUDA_EVENT] = EVENT;
    kp_calls[0][211] = (struct kp_cupti_call){.name = "cudaLaunchKernel_v7000", .len = 16, .what = KP_CALL_LAUNCH};
    kp_calls[1][307] = (struct kp_cupti_call){.name = "cuLaunchKernel", .len = 14, .what = KP_CALL_LAUNCH};
    kp_calls[0][17] = (struct kp_cupti_call){.name = "cudaGetDevice_v3020", .len = 13, .what = KP_CALL_NOISE};
    kp_calls[0][305] =
        (struct kp_cupti_call){.name = "cudaStreamBeginCapture_v10000", .len = 22, .what = KP_CALL_CAPTURE_BEGINS};
    kp_calls[0][306] =
        (struct kp_cupti_call){.name = "cudaStreamEndCapture_v10000", .len = 20, .what = KP_CALL_CAPTURE_ENDS};
    kp_cupti_set_state(KP_CUPTI_STATE_ARMED);
    waits_are_asked_for(true);
    return 0;
}

/* ---- the tests ---- */

/* Room for a buffer of each thread: on a busy machine the writer may not come by for longer than a lane waits for
 * it. */
static void stock_await(void)
{
    for (int i = 0; i < 60000 && kp_chunk_ready() < 100; i++) {
        kp_chunk_ask();
        kp_writer_wake();
        usleep(1000);
    }
}

static void *complete_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < BUFFERS_EACH; i++) {
        stock_await();
        uint8_t *buffer = taken();
        size_t at = 0;
        for (int pair = 0; pair < PAIRS; pair++) {
            uint32_t number = kp_add_relaxed(&correlation, 1) + 1;
            at += call(buffer + at, KP_CUPTI_RUNTIME, 211, number);
            at += call(buffer + at, KP_CUPTI_RUNTIME, 17, number);
            at += kernel(buffer + at, pair % 2 ? "_Z3onev" : "_Z3twov", number, 0);
        }
        given(buffer, at);
    }
    return NULL;
}

/* The first kernels, of whose records nothing is known yet. */
static void a_kernel_that_could_not_be_looked_at_has_no_name_and_the_next_ones_have(void **state)
{
    (void)state;
    window(1, KP_GATE_RECORD);
    uint8_t *buffer = taken();
    size_t at = call(buffer, KP_CUPTI_RUNTIME, 211, 9000001);
    at += kernel(buffer + at, "_Z5firstv", 9000001, 0);
    at += kernel(buffer + at, "_Z4nextv", 9000002, 0);
    kp_fail_set("peek:1:1");
    given(buffer, at);
    kp_fail_set(NULL);
    struct found f = found_in(1);
    assert_false(kp_lane_is_doubtful(true));
    assert_int_equal(f.kinds[KP_KIND_KERNEL], 2);
    assert_int_equal(f.kernel_names, 1);
    assert_int_equal(kp_loss_total(), 1);
}

/* In children, before any kernel: what is found out of a layout is so for all of a process. */
static int doubt_after(int sound, int odd)
{
    kp_gate_set(kp_gate_make(1, KP_GATE_ON | KP_GATE_RECORD)); /* and nothing is collected: the file is the parent's */
    uint8_t *buffer = taken();
    size_t at = 0;
    for (int i = 0; i < sound; i++) at += kernel(buffer + at, "_Z5soundv", 9300000u + (uint32_t)i, 0);
    for (int i = 0; i < odd; i++) {
        const uint32_t number = 9400000u + (uint32_t)i;
        at += i % 2 ? odd_kernel(buffer + at, "_Z3oddv", number) : kernel(buffer + at, NULL, number, 0);
    }
    given(buffer, at);
    return kp_lane_is_doubtful(false) + 2 * kp_lane_is_doubtful(true);
}

static void a_layout_is_doubted_when_most_of_the_first_kernels_are_odd(void **state)
{
    static const struct {
        int sound, odd, doubt;
    } cases[] = {
        {0, 1, 2}, {0, 3, 2}, {0, 4, 3}, {1, 1, 0}, {1, 16, 2}, {1, 17, 3}, {16, 16, 0}, {31, 1, 0}, {32, 40, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) _exit(doubt_after(cases[i].sound, cases[i].odd));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].doubt);
    }
}

/* Still of the first kernels. A node of a graph that was updated from the device has no grid; one may lack its name. */
static void an_odd_kernel_among_sound_ones_is_kept_and_refuses_nothing(void **state)
{
    (void)state;
    window(1, KP_GATE_RECORD);
    const struct found before = found_in(1);
    const uint64_t lost = kp_loss_total();
    uint8_t *buffer = taken();
    size_t at = kernel(buffer, "_Z5soundv", 9200001, 0);
    at += odd_kernel(buffer + at, "_Z3oddv", 9200002);
    at += kernel(buffer + at, "_Z5soundv", 9200003, 0);
    at += kernel(buffer + at, NULL, 9200004, 0);
    given(buffer, at);
    struct found f = found_in(1);
    assert_false(kp_lane_is_doubtful(true));
    assert_int_equal(f.kinds[KP_KIND_KERNEL] - before.kinds[KP_KIND_KERNEL], 4);
    assert_int_equal(f.kernel_names - before.kernel_names, 3);
    assert_int_equal(kp_loss_total(), lost);
}

static void buffers_of_several_threads_at_once_lose_nothing(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    window(1, KP_GATE_RECORD);
    kp_lane_forget_work();
    const struct found before = found_in(1);
    const uint64_t lost = kp_loss_total(), launched = kp_lane_launched();
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, complete_many, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    struct found f = found_in(1);
    const uint64_t pairs = (uint64_t)THREADS * BUFFERS_EACH * PAIRS;
    assert_int_equal(kp_loss_total(), lost);
    assert_int_equal(f.kinds[KP_KIND_API] - before.kinds[KP_KIND_API], pairs); /* cudaGetDevice is noise */
    assert_int_equal(f.kinds[KP_KIND_KERNEL] - before.kinds[KP_KIND_KERNEL], pairs);
    assert_int_equal(f.api_names - before.api_names, pairs);
    assert_int_equal(f.kernel_names - before.kernel_names, pairs);
    assert_true(kp_lane_has_run(kp_lane_launched()));
    assert_int_equal(kp_lane_launched() - launched, pairs);
}

/* In each round another thread takes all chunks that the writer made ready. No thread kprof-cuda runs here, so that the
 * callback decodes. */
static void a_callback_never_waits_for_room_and_counts_what_it_drops(void **state)
{
    struct kp_thread *eater = kp_lane_open("eater");
    (void)state;
    window(60, KP_GATE_RECORD);
    const uint64_t lost = kp_loss_total(), waited = kp_loss_waited_ms();
    for (int i = 0; i < FAST_BUFFERS; i++) {
        uint8_t *buffer = taken();
        size_t at = 0;
        for (int n = 0; n < FAST_KERNELS; n++) at += kernel(buffer + at, "_Z4fastv", 1, 1);
        while (kp_chunk_ready() > 0 && kp_chunk_take(eater, 61)) {}
        given(buffer, at);
        kp_chunk_recycle(61);
    }
    assert_int_equal(kp_loss_waited_ms(), waited);
    assert_true(kp_loss_total() > lost);
    assert_int_equal(found_in(60).kinds[KP_KIND_KERNEL] + kp_loss_total() - lost, FAST_BUFFERS * FAST_KERNELS);
    kp_lane_close(60);
}

/* Of contexts, in META chunks. */
static uint64_t contexts_found(uint32_t context)
{
    uint64_t n = 0;
    size_t bytes;
    uint8_t *const file = halves_read(&bytes);
    for (size_t at = KP_CHUNK_BYTES; at + KP_CHUNK_BYTES <= bytes; at += KP_CHUNK_BYTES) {
        const struct kp_chunk_head *chunk = (const void *)(file + at);
        if (chunk->magic != KP_CHUNK_MAGIC || chunk->kind != KP_CHUNK_META) continue;
        for (uint32_t in = sizeof *chunk; in < chunk->used;) {
            const struct kp_rec_context *r = (const void *)(file + at + in);
            assert_true(r->head.size >= sizeof r->head);
            n += r->head.kind == KP_KIND_CONTEXT && r->context == context;
            in += r->head.size;
        }
    }
    munmap(file, bytes);
    return n;
}

/* To write one takes a mutex, for which a callback must not wait. */
static void a_context_is_written_by_kprof_cuda_alone(void **state)
{
    uint8_t record[CONTEXT] = {0};
    (void)state;
    kp_sizes[KP_CUPTI_CONTEXT] = CONTEXT;
    put32(record, 0, KP_CUPTI_CONTEXT);
    put32(record, KP_AT_CONTEXT_contextId, 77);
    kp_lane_decode(record, sizeof record, false);
    assert_int_equal(contexts_found(77), 0);
    kp_lane_decode(record, sizeof record, true);
    assert_int_equal(contexts_found(77), 1);
}

static void what_comes_after_its_window_was_closed_is_not_written(void **state)
{
    (void)state;
    const uint64_t before = found_in(1).kinds[KP_KIND_KERNEL];
    kp_lane_close(1);
    uint8_t *buffer = taken();
    given(buffer, kernel(buffer, "_Z4latev", 1, 0));
    assert_int_equal(found_in(1).kinds[KP_KIND_KERNEL], before);
    window(2, KP_GATE_RECORD);
    kp_lane_close(1); /* the writer comes to it only now: window 2 goes on */
    buffer = taken();
    given(buffer, kernel(buffer, "_Z4latev", 1, 0));
    assert_int_equal(found_in(2).kinds[KP_KIND_KERNEL], 1);
    kp_lane_forget_work();
}

static void only_events_are_kept_while_warming_up(void **state)
{
    (void)state;
    kp_lane_close(2);
    window(3, KP_GATE_WARM);
    uint8_t *buffer = taken();
    size_t at = kernel(buffer, "_Z4warmv", 1, 0);
    put32(buffer, at, KP_CUPTI_CUDA_EVENT);
    given(buffer, at + EVENT);
    assert_int_equal(found_in(3).kinds[KP_KIND_KERNEL], 0);
    assert_int_equal(found_in(3).kinds[KP_KIND_CUDAEVENT], 1);
    window(3, KP_GATE_RECORD);
    window(4, KP_GATE_WARM); /* and window 3 still drains: what arrives may be its own */
    buffer = taken();
    given(buffer, kernel(buffer, "_Z5drainv", 1, 0));
    assert_int_equal(found_in(4).kinds[KP_KIND_KERNEL], 1);
    window(4, KP_GATE_RECORD);
    kp_lane_close(3);
    kp_lane_forget_work();
}

/* With KP_CUPTI_LOOK: the module a kernel came from was unloaded before its buffer came, and its text with it. */
static void a_name_that_is_gone_is_lost_and_nothing_else(void **state)
{
    long page = sysconf(_SC_PAGESIZE);
    char *text = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(text != MAP_FAILED);
    window(41, KP_GATE_RECORD);
    kp_store_relaxed(&kp_lane_looks, true);
    char *last = strcpy(text + page - 8, "_Z4lasv"); /* ends with its page */
    assert_int_equal(munmap(text + page, (size_t)page), 0);
    uint8_t *buffer = taken();
    size_t at = kernel(buffer, last, 9100001, 0);
    at += kernel(buffer + at, text + page + 100, 9100002, 0);
    memset(text, 'a', (size_t)page - 9); /* and one that runs off the end of what is there */
    last[-1] = 'a', last[7] = 'a';
    uint64_t lost = kp_loss_total();
    at += kernel(buffer + at, text, 9100003, 0);
    given(buffer, at);
    struct found f = found_in(41);
    assert_int_equal(f.kinds[KP_KIND_KERNEL], 3);
    assert_int_equal(f.kernel_names, 0);
    assert_int_equal(kp_loss_total() - lost, 3);
    last[7] = 0;
    buffer = taken();
    given(buffer, kernel(buffer, last, 9100004, 0));
    assert_int_equal(found_in(41).kernel_names, 1);
    kp_store_relaxed(&kp_lane_looks, false);
    kp_lane_close(41);
    kp_lane_forget_work();
    munmap(text, (size_t)page);
}

/* torch.profiler, told to, enables waits itself: beside it they come into our buffers too. */
static void waits_that_we_did_not_ask_for_are_not_kept(void **state)
{
    (void)state;
    window(40, KP_GATE_RECORD);
    kp_sizes[KP_CUPTI_SYNCHRONIZATION] = EVENT;
    for (int asked = 0; asked < 2; asked++) {
        waits_are_asked_for(asked);
        uint8_t *buffer = taken();
        put32(buffer, 0, KP_CUPTI_CUDA_EVENT);
        put32(buffer, EVENT, KP_CUPTI_SYNCHRONIZATION);
        put64(buffer, EVENT + KP_AT_SYNCHRONIZATION_start, 1000);
        put64(buffer, EVENT + KP_AT_SYNCHRONIZATION_end, 2000);
        given(buffer, (size_t)2 * EVENT);
        assert_int_equal(found_in(40).kinds[KP_KIND_CUDAEVENT], asked);
        assert_int_equal(found_in(40).kinds[KP_KIND_SYNC], asked);
    }
    kp_lane_close(40);
}

static void a_name_at_the_same_address_in_the_next_buffer_is_read_anew(void **state)
{
    static char text[16] = "_Z3abcv";
    (void)state;
    window(5, KP_GATE_RECORD);
    uint8_t *buffer = taken();
    given(buffer, kernel(buffer, text, 1, 0));
    memcpy(text, "_Z3xyzv", 8);
    buffer = taken();
    given(buffer, kernel(buffer, text, 2, 0));
    struct found f = found_in(5);
    assert_int_equal(f.kinds[KP_KIND_KERNEL], 2);
    assert_int_not_equal(f.first_name, f.last_name);
    kp_lane_forget_work();
}

static void complete_one(size_t (*make)(uint8_t *))
{
    uint8_t *buffer = taken();
    given(buffer, make(buffer));
}

static size_t a_launch_by_both(uint8_t *b)
{
    size_t at = call(b, KP_CUPTI_RUNTIME, 211, 501);
    return at + call(b + at, KP_CUPTI_DRIVER, 307, 501);
}

static size_t its_kernel(uint8_t *b) { return kernel(b, "_Z3onev", 501, 0); }

static size_t a_graph_node(uint8_t *b) { return kernel(b, "_Z3onev", 502, 7); }

static size_t a_capture(uint8_t *b)
{
    size_t at = call(b, KP_CUPTI_RUNTIME, 305, 503);
    at += call(b + at, KP_CUPTI_RUNTIME, 211, 504);
    return at + call(b + at, KP_CUPTI_RUNTIME, 306, 505);
}

static size_t a_failed_launch(uint8_t *b)
{
    size_t at = call(b, KP_CUPTI_RUNTIME, 211, 506);
    put32(b, KP_AT_API_returnValue, 9);
    return at;
}

static void launches_are_waited_for_until_their_kernels_came(void **state)
{
    (void)state;
    const uint64_t before = kp_lane_launched();
    complete_one(a_launch_by_both);
    assert_int_equal(kp_lane_launched(), before + 1);
    assert_false(kp_lane_has_run(kp_lane_launched()));
    complete_one(a_graph_node);
    assert_false(kp_lane_has_run(kp_lane_launched()));
    complete_one(its_kernel);
    assert_true(kp_lane_has_run(kp_lane_launched()));
    complete_one(a_capture);
    complete_one(a_failed_launch);
    assert_int_equal(kp_lane_launched(), before + 1);
    assert_true(kp_lane_has_run(kp_lane_launched()));
    complete_one(a_launch_by_both); /* its kernel never comes */
    complete_one(a_graph_node);
    kp_lane_forget_work();
    assert_true(kp_lane_has_run(kp_lane_launched()));
}

static size_t a_capture_begins(uint8_t *b) { return call(b, KP_CUPTI_RUNTIME, 305, 507); }

static size_t a_launch(uint8_t *b) { return call(b, KP_CUPTI_RUNTIME, 211, 508); }

/* The window ended inside the capture, so its end was not recorded. */
static void a_capture_that_one_arming_saw_begin_hides_no_launch_of_the_next(void **state)
{
    (void)state;
    const uint64_t before = kp_lane_launched();
    complete_one(a_capture_begins);
    complete_one(a_launch);
    assert_int_equal(kp_lane_launched(), before);
    kp_lane_forget_work();
    complete_one(a_launch);
    assert_int_equal(kp_lane_launched(), before + 1);
    assert_false(kp_lane_has_run(kp_lane_launched()));
    kp_lane_forget_work();
}

/* ---- the pool ---- */

static uint8_t *pool_out[KP_BUFFERS];

static void pool_empty(void)
{
    for (int i = 0; i < KP_BUFFERS; i++) pool_out[i] = taken();
}

static void pool_fill(void)
{
    for (int i = 0; i < KP_BUFFERS; i++) given(pool_out[i], 0);
}

static uint8_t *taken_beyond(size_t *bytes)
{
    uint8_t *buffer = NULL;
    size_t most = 1;
    kp_buffer_request(&buffer, bytes, &most);
    return buffer;
}

static void the_pool_gives_zeroed_buffers_each_to_one_thread(void **state)
{
    (void)state;
    const uint64_t mark = kp_buffer_mark();
    assert_false(kp_buffer_is_older_out(mark));
    pool_empty();
    assert_true(kp_buffer_is_older_out(kp_buffer_mark()));
    assert_true(kp_buffer_is_older_left(kp_buffer_mark()));
    assert_false(kp_buffer_is_older_out(mark)); /* all of them are younger */
    for (int i = 1; i < KP_BUFFERS; i++) assert_ptr_equal(pool_out[i], pool_out[i - 1] + POOL_BYTES);
    memset(pool_out[0], 0x11, 4096);
    given(pool_out[0], 4096);
    pool_out[0] = taken();
    for (int i = 0; i < 8192; i++) assert_int_equal(pool_out[0][i], 0);
    pool_fill();
    assert_false(kp_buffer_is_older_left(kp_buffer_mark()));
    uint8_t stranger[8];
    assert_false(kp_buffer_is_ours(stranger));
}

static void beyond_the_pool_a_cupti_that_takes_null_gets_it(void **state)
{
    static const struct {
        uint32_t version;
        bool is_null;
    } cases[] = {{26, false}, {27, true}, {28, true}, {130001, true}};
    (void)state;
    pool_empty();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes = 1;
        kp_cupti.version = cases[i].version;
        uint8_t *buffer = taken_beyond(&bytes);
        assert_int_equal(!buffer, cases[i].is_null);
        assert_int_equal(bytes == 0, cases[i].is_null);
        if (buffer) kp_buffer_complete(NULL, 0, buffer, bytes, 0);
    }
    kp_cupti.version = 0;
    pool_fill();
}

/* Before CUPTI 12.9. What one thread wrote there is counted; of what several wrote the fewest records that it can be.
 */
static void what_is_thrown_away_is_counted_or_told_as_a_bound(void **state)
{
    uint8_t *shared[3];
    size_t bytes = 0;
    (void)state;
    pool_empty();
    const uint64_t lost = kp_loss_total();
    shared[0] = taken_beyond(&bytes);
    size_t valid = kernel(shared[0], "_Z4lostv", 1, 0);
    kp_buffer_complete(NULL, 0, shared[0], bytes, valid + call(shared[0] + valid, KP_CUPTI_RUNTIME, 211, 1));
    assert_int_equal(kp_loss_total(), lost + 2);
    assert_false(kp_lane_is_least());
    for (int i = 0; i < 3; i++) shared[i] = taken_beyond(&bytes);
    assert_ptr_equal(shared[0], shared[2]);
    for (int i = 0; i < 3; i++) kp_buffer_complete(NULL, 0, shared[i], bytes, (size_t)i * 2 * KERNEL);
    assert_int_equal(kp_loss_total(), lost + 2 + 2 + 4);
    assert_true(kp_lane_is_least());
    shared[0] = taken_beyond(&bytes);
    for (int i = 0; i < 4096; i++) assert_int_equal(shared[0][i], 0);
    kp_buffer_complete(NULL, 0, shared[0], bytes, 0);
    pool_fill();
}

/* The program finalized CUPTI without a flush. */
static void a_buffer_that_cupti_had_when_it_was_finalized_holds_up_no_drain(void **state)
{
    (void)state;
    uint8_t *buffer = taken(), *client;
    (void)kernel(buffer, "_Z4lostv", 1, 0);
    assert_true(kp_buffer_is_older_left(kp_buffer_mark()));
    kp_buffer_finalized();
    assert_false(kp_buffer_is_older_left(kp_buffer_mark()));
    assert_false(kp_buffer_is_older_out(kp_buffer_mark()));
    const uint64_t lost = kp_loss_total();
    kp_buffer_sweep();
    assert_int_equal(kp_loss_total(), lost + 1);
    kp_buffer_sweep();
    assert_int_equal(kp_loss_total(), lost + 1); /* counted once */
    client = taken();
    assert_ptr_not_equal(client, buffer); /* it rests */
    assert_true(kp_buffer_is_older_left(kp_buffer_mark()));
    window(50, KP_GATE_RECORD);
    given(buffer, KERNEL); /* late after all: it was counted as lost */
    assert_int_equal(found_in(50).kinds[KP_KIND_KERNEL], 0);
    given(client, 0);
    kp_lane_close(50);
}

/* CUPTI's callbacks live on in a child, and write down the calls that fail there. */
static void a_child_may_write_to_a_buffer_that_was_out(void **state)
{
    (void)state;
    uint8_t *buffer = taken();
    buffer[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        buffer[8] = 1;
        _exit(buffer[0] ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    given(buffer, 8);
}

/* Two threads, one after the other on the same stack: libc names both alike. */
static void a_call_is_of_the_thread_that_is_alive_under_that_name(void **state)
{
    (void)state;
    struct kp_thread *alive = kp_thread_get(), *dead = kp_lane_open("dead"), *young = kp_lane_open("dead");
    uint8_t *buffer = taken();
    kp_store_relaxed(&dead->tid, 4711);
    kp_store_relaxed(&young->tid, 4712);
    kp_store_relaxed(&dead->life, KP_THREAD_DEAD);
    kp_store_relaxed(&young->life, KP_THREAD_DEAD);
    dead->thread_no = young->thread_no = 0;
    kp_store_relaxed(&dead->pthread_id, kp_load_relaxed(&alive->pthread_id));
    kp_store_relaxed(&young->pthread_id, kp_load_relaxed(&alive->pthread_id));
    window(5, KP_GATE_RECORD);
    size_t at = call(buffer, KP_CUPTI_RUNTIME, 305, 1);
    put32(buffer, KP_AT_API_threadId, 0x1234); /* another thread's comes first: the last one met is remembered */
    kp_store_relaxed(&kp_lane_open("other")->pthread_id, 0x1234);
    given(buffer, at + call(buffer + at, KP_CUPTI_RUNTIME, 306, 2));
    assert_int_equal(found_in(5).last_tid, kp_load_relaxed(&alive->tid));
    kp_store_relaxed(&dead->pthread_id, 0);
    kp_store_relaxed(&young->pthread_id, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_is_doubted_when_most_of_the_first_kernels_are_odd),
        cmocka_unit_test(a_kernel_that_could_not_be_looked_at_has_no_name_and_the_next_ones_have),
        cmocka_unit_test(an_odd_kernel_among_sound_ones_is_kept_and_refuses_nothing),
        cmocka_unit_test(buffers_of_several_threads_at_once_lose_nothing),
        cmocka_unit_test(what_comes_after_its_window_was_closed_is_not_written),
        cmocka_unit_test(only_events_are_kept_while_warming_up),
        cmocka_unit_test(a_name_at_the_same_address_in_the_next_buffer_is_read_anew),
        cmocka_unit_test(launches_are_waited_for_until_their_kernels_came),
        cmocka_unit_test(a_capture_that_one_arming_saw_begin_hides_no_launch_of_the_next),
        cmocka_unit_test(what_is_thrown_away_is_counted_or_told_as_a_bound),
        cmocka_unit_test(the_pool_gives_zeroed_buffers_each_to_one_thread),
        cmocka_unit_test(beyond_the_pool_a_cupti_that_takes_null_gets_it),
        cmocka_unit_test(a_buffer_that_cupti_had_when_it_was_finalized_holds_up_no_drain),
        cmocka_unit_test(a_child_may_write_to_a_buffer_that_was_out),
        cmocka_unit_test(a_call_is_of_the_thread_that_is_alive_under_that_name),
        cmocka_unit_test(a_name_that_is_gone_is_lost_and_nothing_else),
        cmocka_unit_test(waits_that_we_did_not_ask_for_are_not_kept),
        cmocka_unit_test(a_context_is_written_by_kprof_cuda_alone),
        cmocka_unit_test(a_callback_never_waits_for_room_and_counts_what_it_drops),
    };
    return cmocka_run_group_tests_name("cupti/lane", tests, prepare, NULL);
}

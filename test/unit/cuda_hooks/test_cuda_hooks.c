// SPDX-License-Identifier: Apache-2.0
/* test_cuda_hooks.c - hooked CUDA calls on a driver played by hand: events, names, captures, windows, errors */
#include <errno.h>
#include <pthread.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_fail.h"
#include "preload/cuda_hooks/cuda_hooks.h"
#include "test/support/records.h"

/* ---- the driver: events happen at once, at the time they are recorded, unless told otherwise ---- */

struct event {
    uint64_t ns;
    bool is_stuck, is_ours;
};
static struct event events[20000];
static _Atomic unsigned events_made;
static void *current_context = (void *)0x1000;
static int capture_status, capture_error, calls_of_driver;
static bool are_stuck;
static _Atomic bool is_late; /* the device has not come to any work yet */

static int ctx_get(void **c)
{
    *c = current_context;
    return current_context ? 0 : 201;
}
static int device_get(int *d)
{
    *d = 3;
    return 0;
}
static int ctx_push(void *c)
{
    (void)c;
    return 0;
}
static int ctx_pop(void **c)
{
    *c = NULL;
    return 0;
}
static int is_capturing(void *s, int *status)
{
    (void)s;
    *status = capture_status;
    return capture_error;
}
static int stream_make(void **s, unsigned f)
{
    (void)f;
    *s = (void *)0x77;
    return 0;
}
static int event_make(void **e, unsigned f)
{
    (void)f;
    unsigned at = kp_add_relaxed(&events_made, 1);
    *e = &events[at < 20000 ? at : 0];
    return at < 20000 ? 0 : 2;
}
static int event_destroy(void *e)
{
    (void)e;
    return 0;
}
static int event_record(void *e, void *stream)
{
    bool ours = stream == (void *)0x77;
    if (!ours) calls_of_driver++;
    errno = 5; /* the driver's own business */
    *(struct event *)e = (struct event){kp_clock_ns(CLOCK_MONOTONIC), !ours && are_stuck, ours};
    return 0;
}
static int event_query(void *e)
{
    const struct event *event = e;
    return event->is_stuck || (is_late && !event->is_ours) ? 600 : 0;
}
static int elapsed(float *ms, void *from, void *to)
{
    *ms = (float)((double)((int64_t)(((struct event *)to)->ns - ((struct event *)from)->ns)) / 1e6);
    return 0;
}

/* ---- the runtime's error, and its answers about names ---- */

static int kept_error, names_asked;
static int peek(void) { return kept_error; }
static int take(void)
{
    int e = kept_error;
    kept_error = 0;
    return e;
}
static int func_name(const char **name, const void *f)
{
    names_asked++;
    if (f == (void *)0x666) return kept_error = 98;
    *name = "_Z6kernelv";
    return 0;
}

static uint32_t cycle;
static const struct kp_call_kind launch = {"cudaLaunchKernel", 211, false}, outer = {"cudaOuter", 1, false};

static void window_open(void)
{
    kp_gate_set(kp_gate_make(++cycle, KP_GATE_ON | KP_GATE_RECORD));
    kp_resolve_wake();
}
static void window_close(void)
{
    uint64_t end = kp_ticks();
    kp_gate_set(kp_gate_make(cycle, KP_GATE_ON));
    for (int i = 0; i < 60000 && !kp_resolve_is_drained(end); i++) usleep(1000);
    assert_true(kp_resolve_is_drained(end));
    kp_resolve_close(cycle);
    assert_int_equal(kp_record_quiesce(cycle, 60000), 0);
}

static struct records spool;
static const void *seen[32768];
static size_t find(enum kp_kind kind)
{
    spool = records_open();
    size_t n = records_find(&spool, cycle, kind, seen, 32768);
    return n;
}
static const struct kp_rec_kernel *kernel(size_t i) { return seen[i]; }

/* A tap, with what the real function does in the middle. */
static bool call_begin(struct kp_hooked_call *call, const void *function)
{
    if (!kp_call_begin(call)) return false;
    call->stream = (void *)0x5000;
    call->work = (struct kp_work){
        .kind = KP_KIND_KERNEL, .function = function, .grid = {2, 3, 4}, .block = {32, 1, 1}, .smem = 64};
    kp_work_begin(call);
    return true;
}
static void launch_one(const void *function, int result)
{
    struct kp_hooked_call call;
    errno = 33;
    assert_true(call_begin(&call, function));
    assert_int_equal(errno, 33);
    kp_call_end(&call, &launch, result);
    assert_int_equal(errno, 33);
}

static void a_launch_makes_a_call_and_a_kernel_with_the_times_of_its_events(void **state)
{
    (void)state;
    struct kp_hooked_call call;
    window_open();
    usleep(20000); /* a reference event lies behind us */
    uint64_t before = kp_ticks();
    assert_true(call_begin(&call, (void *)0x100));
    uint64_t began = kp_ticks();
    usleep(100000);
    uint64_t ends = kp_ticks();
    kp_call_end(&call, &launch, 0);
    uint64_t after = kp_ticks();
    window_close();
    assert_int_equal(find(KP_KIND_API), 1);
    const struct kp_rec_api *api = seen[0];
    assert_string_equal(records_name(&spool, api->head.name), "cudaLaunchKernel");
    assert_int_equal(api->cbid, 211);
    assert_int_equal(api->tid, kp_load_relaxed(&kp_thread_self->tid));
    assert_true(api->end > api->start && (api->head.flags & KP_DEV_TICKS));
    uint32_t correlation = api->correlation, stream = api->stream;
    records_close(&spool);
    assert_int_equal(find(KP_KIND_KERNEL), 1);
    assert_string_equal(records_name(&spool, kernel(0)->head.name), "_Z6kernelv");
    assert_int_equal(kernel(0)->correlation, correlation);
    assert_int_equal(kernel(0)->head.flags, KP_DEV_TICKS | KP_DEV_EVENTS);
    assert_int_equal(kernel(0)->device, 3);
    assert_int_equal(kernel(0)->stream, stream);
    assert_int_equal(kernel(0)->grid[2], 4);
    uint64_t slack = (ends - began) / 4; /* where the reference event lies is known to half the time that it took */
    assert_true(kernel(0)->start + slack > before && kernel(0)->start < began + slack);
    assert_true(kernel(0)->end + slack > ends && kernel(0)->end < after + slack);
    records_close(&spool);
}

static void a_call_inside_a_call_shares_its_correlation_and_makes_no_second_kernel(void **state)
{
    (void)state;
    struct kp_hooked_call out, in;
    window_open();
    assert_true(call_begin(&out, (void *)0x100));
    assert_true(call_begin(&in, (void *)0x100));
    assert_int_equal(out.correlation, in.correlation);
    kp_call_end(&in, &launch, 0);
    kp_call_end(&out, &outer, 0);
    launch_one((void *)0x100, 0);
    window_close();
    assert_int_equal(find(KP_KIND_API), 3);
    records_close(&spool);
    assert_int_equal(find(KP_KIND_KERNEL), 2);
    assert_int_not_equal(kernel(0)->correlation, kernel(1)->correlation);
    records_close(&spool);
}

static void what_is_captured_or_fails_makes_no_kernel(void **state)
{
    (void)state;
    window_open();
    int calls = calls_of_driver;
    capture_status = 1;
    launch_one((void *)0x100, 0);
    capture_status = 0;
    assert_int_equal(calls_of_driver, calls); /* no event went into the graph */
    launch_one((void *)0x100, 700);
    capture_error = 906; /* the default stream, while another one is captured */
    calls = calls_of_driver;
    launch_one((void *)0x100, 0);
    capture_error = 0;
    assert_int_equal(calls_of_driver, calls);
    window_close();
    assert_int_equal(find(KP_KIND_API), 3);
    records_close(&spool);
    assert_int_equal(find(KP_KIND_KERNEL), 1);
    assert_true(kernel(0)->head.flags & KP_DEV_NO_TIME);
    records_close(&spool);
}

static void the_runtimes_error_stays_the_hosts(void **state)
{
    (void)state;
    window_open();
    kept_error = 2; /* the host's, not looked at yet */
    int asked = names_asked;
    launch_one((void *)0x200, 0);
    assert_int_equal(kept_error, 2);
    assert_int_equal(names_asked, asked);
    kept_error = 0;
    launch_one((void *)0x200, 0); /* asked now */
    launch_one((void *)0x200, 0); /* and known */
    assert_int_equal(names_asked, asked + 1);
    launch_one((void *)0x666, 0); /* the question fails: taken back */
    assert_int_equal(kept_error, 0);
    window_close();
    assert_int_equal(find(KP_KIND_KERNEL), 4);
    unsigned named = 0;
    for (size_t i = 0; i < 4; i++) named += strcmp(records_name(&spool, kernel(i)->head.name), "_Z6kernelv") == 0;
    assert_int_equal(named, 2);
    records_close(&spool);
}

static void a_call_that_outlives_its_window_is_in_none(void **state)
{
    (void)state;
    struct kp_hooked_call call;
    window_open();
    assert_true(call_begin(&call, (void *)0x100));
    window_close();
    window_open();
    kp_call_end(&call, &launch, 0);
    window_close();
    assert_int_equal(find(KP_KIND_API) + find(KP_KIND_KERNEL), 0);
    cycle--;
    assert_int_equal(find(KP_KIND_API) + find(KP_KIND_KERNEL), 0);
    cycle++;
    for (int i = 0; i < KP_ITEMS; i++) assert_int_equal(kp_load_relaxed(&kp_items[i].state), KP_ITEM_FREE);
    assert_false(kp_call_begin(&call)); /* and with the gate shut nothing is done at all */
}

static void work_that_never_ends_is_given_up(void **state)
{
    (void)state;
    window_open();
    are_stuck = true;
    launch_one((void *)0x100, 0);
    are_stuck = false;
    launch_one((void *)0x100, 0);
    window_close(); /* some two seconds */
    assert_int_equal(find(KP_KIND_KERNEL), 2);
    assert_int_equal((kernel(0)->head.flags & KP_DEV_NO_TIME) + (kernel(1)->head.flags & KP_DEV_NO_TIME),
                     KP_DEV_NO_TIME);
    records_close(&spool);
}

static void more_in_flight_than_items_has_no_times_but_is_there(void **state)
{
    (void)state;
    window_open();
    is_late = true;
    for (int i = 0; i < KP_ITEMS + 500; i++) launch_one((void *)0x100, 0);
    is_late = false;
    window_close();
    size_t n = find(KP_KIND_KERNEL), timed = 0;
    assert_int_equal(n, KP_ITEMS + 500);
    for (size_t i = 0; i < n; i++) timed += !(kernel(i)->head.flags & KP_DEV_NO_TIME);
    assert_in_range(timed, KP_ITEMS / 2, KP_ITEMS + 400);
    records_close(&spool);
}

static void *call_without_memory(void *lost)
{
    struct kp_hooked_call call;
    const uint64_t before = kp_thread_get() ? kp_loss_total() : 0;
    kp_fail_set("arena:1+:12");
    const bool is_recorded = call_begin(&call, (void *)0x100);
    kp_fail_set(NULL);
    *(uint64_t *)lost = kp_loss_total() - before;
    return is_recorded ? lost : NULL;
}

static void a_call_without_memory_is_counted_as_lost(void **state)
{
    pthread_t thread;
    uint64_t lost = 0;
    void *is_recorded;
    (void)state;
    window_open();
    assert_int_equal(pthread_create(&thread, NULL, call_without_memory, &lost), 0);
    pthread_join(thread, &is_recorded);
    window_close();
    assert_null(is_recorded);
    assert_int_equal(lost, 1);
}

static void contexts_that_the_host_takes_down_are_not_touched_again(void **state)
{
    (void)state;
    window_open();
    are_stuck = true;
    launch_one((void *)0x100, 0);
    kp_contexts_forget();
    are_stuck = false;
    launch_one((void *)0x100, 0); /* a new context with the old one's address */
    window_close();
    assert_int_equal(find(KP_KIND_KERNEL), 2);
    unsigned timed = 0;
    for (size_t i = 0; i < 2; i++) timed += (kernel(i)->head.flags & KP_DEV_EVENTS) != 0;
    assert_int_equal(timed, 1);
    records_close(&spool);
}

static void streams_have_small_numbers_of_their_own(void **state)
{
    (void)state;
    assert_int_equal(kp_stream_number(NULL, 1), 7);
    assert_int_equal(kp_stream_number((void *)1, 1), 7);
    uint32_t a = kp_stream_number((void *)0x7f0000001000, 1), mine = kp_stream_number((void *)2, 10),
             other = kp_stream_number((void *)2, 11);
    assert_true(a >= 13 && mine >= 13 && other >= 13 && a != mine && mine != other);
    assert_int_equal(kp_stream_number((void *)0x7f0000001000, 2), a);
    assert_int_equal(kp_stream_number((void *)2, 10), mine);
    assert_int_equal(kp_stream_number((void *)(uintptr_t)KP_DEV_NONE, 1), KP_DEV_NONE);
}

static int begin(void **state)
{
    static char path[4096];
    (void)state;
    kp_clock_init();
    snprintf(path, sizeof path, "%s", kp_test_tmpdir());
    struct kp_record_options options = {.dir = path, .max_bytes = 256u << 20, .text = ""};
    if (kp_gate_init() || kp_record_open(&options)) return 1;
    kp_cudrv.cuCtxGetCurrent = ctx_get;
    kp_cudrv.cuCtxGetDevice = device_get;
    kp_cudrv.cuCtxPushCurrent_v2 = ctx_push;
    kp_cudrv.cuCtxPopCurrent_v2 = ctx_pop;
    kp_cudrv.cuStreamIsCapturing = is_capturing;
    kp_cudrv.cuStreamCreate = stream_make;
    kp_cudrv.cuEventCreate = event_make;
    kp_cudrv.cuEventDestroy_v2 = event_destroy;
    kp_cudrv.cuEventRecord = event_record;
    kp_cudrv.cuEventQuery = event_query;
    kp_cudrv.cuEventElapsedTime = elapsed;
    kp_cudart.cudaPeekAtLastError = peek;
    kp_cudart.cudaGetLastError = take;
    kp_cudart.cudaFuncGetName = func_name;
    kp_store_relaxed(&kp_cudrv.has_events, true);
    kp_store_release(&kp_cudrv.is_filled, true); /* pairs with: work.c */
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    return kp_resolve_start();
}

static int end(void **state)
{
    (void)state;
    kp_gate_set(0);
    (void)kp_record_close(true, 10000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_makes_a_call_and_a_kernel_with_the_times_of_its_events),
        cmocka_unit_test(a_call_inside_a_call_shares_its_correlation_and_makes_no_second_kernel),
        cmocka_unit_test(what_is_captured_or_fails_makes_no_kernel),
        cmocka_unit_test(the_runtimes_error_stays_the_hosts),
        cmocka_unit_test(a_call_that_outlives_its_window_is_in_none),
        cmocka_unit_test(work_that_never_ends_is_given_up),
        cmocka_unit_test(more_in_flight_than_items_has_no_times_but_is_there),
        cmocka_unit_test(a_call_without_memory_is_counted_as_lost),
        cmocka_unit_test(contexts_that_the_host_takes_down_are_not_touched_again),
        cmocka_unit_test(streams_have_small_numbers_of_their_own),
    };
    return cmocka_run_group_tests_name("cuda_hooks", tests, begin, end);
}

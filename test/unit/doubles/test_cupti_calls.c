// SPDX-License-Identifier: Apache-2.0
/* test_cupti_calls.c - the functions of the simulated libcupti: errors, versions, subscribers, the log */
#include "test/unit/doubles/cupti_test.h"

static int want_error;
static void nothing_is_enabled_before_the_driver(void)
{
    uint32_t version = 0;
    bool all_fail = !strcmp(getenv("SIMCUPTI_VERSION"), "130300");
    CHECK_IS(CUPTI(GetVersion, &version), all_fail ? 999 : 0);
    CHECK_IS(CUPTI(ActivityRegisterCallbacks, on_request, on_complete), fake || all_fail ? want_error : 0);
    CHECK_IS(CUPTI(ActivityEnable, 5), want_error);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), want_error);
    CHECK_IS(CUPTI(ActivityPushExternalCorrelationId, 3, (uint64_t)1), want_error);
    if (!fake) return;
    set_up_driver(true);
    CHECK_IS(CUPTI(GetVersion, &version), 0);
    arm("5");
    CHECK_IS(client.requests, 0);
}
static void with_a_driver_that_is_not_up(void)
{
    set_up_driver(false);
    nothing_is_enabled_before_the_driver();
}
static void any_call_is_the_end(void)
{
    set_up_driver(false);
    uint32_t version;
    CUPTI(GetVersion, &version);
}

static void test_before_driver(void **state)
{
    (void)state;
    want_error = 15;
    assert_int_equal(run_child(nothing_is_enabled_before_the_driver, "12", "SIMCUPTI_VERSION=27", false), 0);
    in_child(with_a_driver_that_is_not_up, "12", "SIMCUPTI_VERSION=27");
    want_error = 999;
    assert_int_equal(run_child(nothing_is_enabled_before_the_driver, "13", "SIMCUPTI_VERSION=130101", false), 0);
    in_child(with_a_driver_that_is_not_up, "13", "SIMCUPTI_VERSION=130300");
    int status = run_child(any_call_is_the_end, "13", "SIMCUPTI_CRASH_EARLY=1", true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void some_kinds_cannot_be_enabled(void)
{
    static const int never[] = {0, 6, 7, 36, 41, 59, 60};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) CHECK_IS(CUPTI(ActivityEnable, never[i]), 21);
    CHECK_IS(CUPTI(ActivityEnable, 58), 0);
}
static void v1_is_refused_after_v2(void)
{
    CHECK_IS(CUPTI(ActivityEnable, 5), 14);
    CHECK_IS(CUPTI(ActivityRegisterCallbacks, on_request, on_complete), 14);
}

static void test_kinds(void **state)
{
    (void)state;
    in_child(some_kinds_cannot_be_enabled, "13", "SIMCUPTI_VERSION=130101");
    in_child(v1_is_refused_after_v2, "13", "SIMCUPTI_V2_USED=1");
}

static int has(const char *name) { return dlsym(cupti, name) != NULL; }
static void a_version_has_its_functions(void)
{
    bool is_old = !strcmp(getenv("SIMCUPTI_VERSION"), "22"), is_kept = getenv("SIMCUPTI_KEEP_SYMBOLS") != NULL;
    CHECK_IS(has("cuptiActivityEnable"), 1);
    CHECK_IS(has("cuptiActivityEnableRuntimeApi"), !is_old || is_kept);
    CHECK_IS(has("cuptiActivityEnableAllSyncRecords"), 0 + is_kept);
    if (is_kept) CHECK_IS(CUPTI(ActivityEnableRuntimeApi, 211, 1), 27);
}
static void a_size_is_told_from_13_2_on(void)
{
    size_t size = 0;
    bool is_there = !strcmp(getenv("SIMCUPTI_VERSION"), "130200");
    CHECK_IS(has("cuptiActivityGetStructSize"), is_there);
    if (is_there) CHECK_IS(CUPTI(ActivityGetStructSize, 10, 0, &size), 0);
    if (is_there) CHECK_IS(size, 224);
}

static void test_functions(void **state)
{
    (void)state;
    in_child(a_version_has_its_functions, "12", "SIMCUPTI_VERSION=22");
    in_child(a_version_has_its_functions, "12", "SIMCUPTI_VERSION=24");
    in_child(a_version_has_its_functions, "12", "SIMCUPTI_VERSION=22 SIMCUPTI_KEEP_SYMBOLS=1");
    in_child(a_size_is_told_from_13_2_on, "13", "SIMCUPTI_VERSION=130200");
    in_child(a_size_is_told_from_13_2_on, "13", "SIMCUPTI_VERSION=130101");
}

struct params { /* CUpti_SubscriberParams */
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
    uint8_t allows_others, padding[7];
};
static struct {
    int enters, exits, resources;
    char function[64], symbol[64];
    uint32_t correlation;
} heard;
static void listen(void *user, int domain, uint32_t cbid, const void *data)
{
    const uint8_t *about = data;
    CHECK(user == (void *)&heard);
    if (domain == 3) heard.resources += cbid == 3;
    if (domain != 2) return;
    CHECK_IS(cbid, 211);
    u32(about, 0) ? heard.exits++ : heard.enters++;
    snprintf(heard.function, sizeof heard.function, "%s", (const char *)(uintptr_t)u64(about, 8));
    snprintf(heard.symbol, sizeof heard.symbol, "%s", (const char *)(uintptr_t)u64(about, 32));
    heard.correlation = u32(about, 64);
    uint64_t *kept = (uint64_t *)(uintptr_t)u64(about, 56);
    if (u32(about, 0)) CHECK_IS(*kept, 42);
    else *kept = 42;
}
static void one_subscriber_hears_calls(void)
{
    void *first = NULL, *second = NULL;
    CHECK_IS(CUPTI(Subscribe, &first, listen, &heard), 0);
    CHECK_IS(CUPTI(Subscribe, &second, listen, &heard), 39);
    CHECK_IS(CUPTI(EnableCallback, 1, first, 2, 211), 0);
    CHECK_IS(CUPTI(EnableDomain, 1, first, 3), 0);
    finish(launch());
    observer()->stream_made(1, 14, 0, 1);
    CHECK_IS(heard.enters, 1);
    CHECK_IS(heard.exits, 1);
    CHECK_IS(heard.resources, 1);
    CHECK_IS(heard.correlation, 1);
    CHECK(!strcmp(heard.function, "cudaLaunchKernel"));
    CHECK(!strcmp(heard.symbol, "_Z6kernelv"));
    CHECK_IS(CUPTI(Unsubscribe, first), 0);
    finish(launch());
    CHECK_IS(heard.enters, 1);
    CHECK_IS(CUPTI(Unsubscribe, first), 1);
    CHECK_IS(CUPTI(Subscribe, &second, listen, &heard), 0);
}
static int calls_heard;
static void launch_inside(void *user, int domain, uint32_t cbid, const void *data)
{
    (void)user, (void)domain, (void)cbid, (void)data;
    if (calls_heard++ < 3) finish(launch());
}
static void calls_inside_a_callback_are_not_told(void)
{
    void *us = NULL;
    CHECK_IS(CUPTI(Subscribe, &us, launch_inside, NULL), 0);
    CHECK_IS(CUPTI(EnableDomain, 1, us, 2), 0);
    arm("5 10");
    finish(launch());
    CHECK_IS(calls_heard, 2);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.count, 2);
}
static void another_tool_is_named(void)
{
    char name[64] = "";
    void *handle = NULL;
    struct params params = {
        .size = sizeof params, .name = "us", .old_name = name, .old_size = sizeof name, .allows_others = 1};
    CHECK_IS(CUPTI(Subscribe, &handle, listen, &heard), 39);
    CHECK_IS(CUPTI(Subscribe_v2, &handle, listen, &heard, &params), 39);
    CHECK(!strcmp(name, "Nsight Systems"));
}
static void several_subscribe_when_all_allow_it(void)
{
    char name[64] = "";
    void *first = NULL, *second = NULL, *third = NULL;
    struct params params = {
        .size = sizeof params, .name = "A", .old_name = name, .old_size = sizeof name, .allows_others = 1};
    CHECK_IS(CUPTI(Subscribe_v2, &first, listen, &heard, &params), 0);
    params.name = "B";
    CHECK_IS(CUPTI(Subscribe_v2, &second, listen, &heard, &params), 0);
    CHECK(!strcmp(name, "CUPTI for A"));
    params.allows_others = 0;
    CHECK_IS(CUPTI(Subscribe_v2, &third, listen, &heard, &params), 39);
    CHECK_IS(CUPTI(ActivityEnable_v2, second, 5, NULL), 0);
    CHECK_IS(CUPTI(ActivityEnable, 10), 14);
}

static int v2_requests, v2_completions;
static void request_v2(uint8_t **buffer, size_t *size, size_t *max_records, void *info)
{
    CHECK_IS(*(size_t *)info, 8);
    v2_requests++;
    on_request(buffer, size, max_records);
}
static void complete_v2(uint8_t *buffer, size_t size, size_t valid, void *info)
{
    CHECK_IS(((uint64_t *)info)[0], 32);
    CHECK_IS((uint32_t)((uint64_t *)info)[1], (uint32_t)(uintptr_t)pthread_self());
    v2_completions++;
    on_complete(NULL, 0, buffer, size, valid);
}
static void the_second_form_works_alike(void)
{
    struct params params = {.size = sizeof params, .name = "us", .allows_others = 1};
    void *us = NULL;
    size_t dropped = 1;
    uint8_t is_running = 0;
    CHECK_IS(CUPTI(ActivityEnable_v2, NULL, 5, NULL), 1);
    CHECK_IS(CUPTI(Subscribe_v2, &us, listen, &heard, &params), 0);
    CHECK_IS(CUPTI(ActivityRegisterCallbacks_v2, us, request_v2, complete_v2), 0);
    CHECK_IS(CUPTI(ActivityEnable_v2, us, 10, NULL), 0);
    CHECK_IS(CUPTI(ActivityEnableDriverApi_v2, us, 307, 1), 0);
    CHECK_IS(CUPTI(ActivityEnable_v2, us, 39, NULL), 0);
    CHECK_IS(CUPTI(ActivityPushExternalCorrelationId_v2, us, 3, (uint64_t)7), 0);
    finish(launch());
    CHECK_IS(CUPTI(IsTracingSessionRunning, &is_running), 0);
    CHECK_IS(is_running, 1);
    uint32_t kinds[8], size = sizeof kinds, count = 0;
    CHECK_IS(CUPTI(ActivityGetEnabledKinds, us, kinds, &size, &count), 0);
    CHECK_IS(count, 2);
    CHECK_IS(kinds[1], 39);
    CHECK_IS(CUPTI(ActivityGetNumDroppedRecords_v2, us, NULL, 0, &dropped), 0);
    CHECK_IS(dropped, 0);
    CHECK_IS(v2_requests, 1);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0); /* it has but one form */
    CHECK_IS(v2_completions, 1);
    CHECK_IS(client.count, 3);
}

static void test_subscribers(void **state)
{
    (void)state;
    in_child(one_subscriber_hears_calls, "13", "");
    in_child(one_subscriber_hears_calls, "12", "");
    in_child(calls_inside_a_callback_are_not_told, "13", "");
    setenv("SIMCUPTI_OTHER_TOOL", "Nsight Systems", 1);
    in_child(another_tool_is_named, "13", "");
    unsetenv("SIMCUPTI_OTHER_TOOL");
    in_child(several_subscribe_when_all_allow_it, "13", "");
    in_child(the_second_form_works_alike, "13", "SIMCUPTI_VERSION=130400 SIMCUPTI_SINGLES=1");
}

static void calls_fail_as_told(void)
{
    CHECK_IS(CUPTI(ActivityEnable, 5), 0);
    CHECK_IS(CUPTI(ActivityEnable, 10), 7);
    CHECK_IS(CUPTI(ActivityEnable, 10), 0);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 999);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 999);
}
static void hang(void)
{
    alarm(1);
    arm("5");
    CUPTI(ActivityFlushAll, 0);
}

static void flush_in_a_forked_child(void)
{
    arm("5");
    pid_t child = fork();
    if (child == 0) {
        alarm(getenv("SIMCUPTI_HANG") ? 1 : 120);
        set_up_driver(false);
        CUPTI(ActivityFlushAll, 1);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_IS(WIFSIGNALED(status), getenv("SIMCUPTI_HANG") != NULL);
}

static void flush_at_exit(void)
{
    if (getenv("SIMCUPTI_HANG")) alarm(1);
    arm("5");
    exit(0);
}
__attribute__((destructor)) static void at_exit(void)
{
    if (getenv("SIMCUPTI_HANG") && cupti) CUPTI(ActivityFlushAll, 1);
}

static uint64_t flush_ms(void)
{
    uint64_t begin = now_ns();
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    return (now_ns() - begin) / 1000000;
}
static void only_the_second_flush_is_slow(void)
{
    arm("5");
    CHECK(flush_ms() < 300);
    CHECK(flush_ms() >= 300);
    CHECK(flush_ms() < 300);
}
static void calls_go_on_after_their_kind(void)
{
    arm("5");
    CHECK_IS(CUPTI(ActivityDisable, 5), 0);
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(count_of(5), 1);
}
static void *finish_later(void *work)
{
    wait_ms(300);
    finish(work);
    return NULL;
}
static void disable_waits_for_the_work(void)
{
    pthread_t thread;
    arm("10");
    CHECK_IS(CUPTI(ActivityDisable, 9), 0); /* nothing to wait for */
    uint64_t begin = now_ns();
    pthread_create(&thread, NULL, finish_later, launch());
    CHECK_IS(CUPTI(ActivityDisable, 10), 0);
    CHECK(now_ns() - begin >= 300000000);
    pthread_join(thread, NULL);
}
static void *flush_for_ever(void *unused)
{
    CUPTI(ActivityFlushAll, 0);
    return unused;
}
static void somebody_is_inside_at_exit(void)
{
    pthread_t thread;
    arm("5");
    pthread_create(&thread, NULL, flush_for_ever, NULL);
    wait_ms(200);
    exit(0);
}

static void test_told_faults(void **state)
{
    (void)state;
    in_child(only_the_second_flush_is_slow, "13", "SIMCUPTI_SLOW=Flush:300:2");
    in_child(calls_go_on_after_their_kind, "13", "SIMCUPTI_STUCK=1 SIMCUPTI_SINGLES=1");
    in_child(disable_waits_for_the_work, "13", "SIMCUPTI_SYNC=Disable");
    int inside = run_child(somebody_is_inside_at_exit, "13", "SIMCUPTI_CRASH_EXIT=1 SIMCUPTI_SLOW=Flush:20000", true);
    assert_true(WIFSIGNALED(inside) && WTERMSIG(inside) == SIGSEGV);
    in_child(somebody_is_inside_at_exit, "13", "SIMCUPTI_SLOW=Flush:20000");
    in_child(flush_in_a_forked_child, "13", "");
    in_child(flush_in_a_forked_child, "13", "SIMCUPTI_HANG=fork");
    in_child(flush_at_exit, "13", "SIMCUPTI_FAIL=nothing:1:1");
    int at = run_child(flush_at_exit, "13", "SIMCUPTI_HANG=exit", true);
    assert_true(WIFSIGNALED(at) && WTERMSIG(at) == SIGALRM);
    in_child(calls_fail_as_told, "13", "SIMCUPTI_FAIL=cuptiActivityEnable:2:7,cuptiActivityFlushAll:0:999");
    int status = run_child(hang, "13", "SIMCUPTI_HANG=flush", true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static char log_path[] = "/tmp/simcupti_log_XXXXXX";
static void leave_one_kind_enabled(void)
{
    arm("5 10");
    finish(launch());
    CHECK_IS(CUPTI(ActivityDisable, 5), 0);
    CHECK_IS(CUPTI(ActivityEnableRuntimeApi, 3, 1), 0);
    exit(0);
}

static void test_log(void **state)
{
    (void)state;
    int fd = mkstemp(log_path);
    char settings[128], text[4096] = "";
    snprintf(settings, sizeof settings, "SIMCUPTI_LOG=%s SIMCUPTI_SINGLES=1", log_path);
    in_child(leave_one_kind_enabled, "13", settings);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    unlink(log_path);
    assert_non_null(strstr(text, "\"call\":\"cuptiActivityEnable\",\"args\":[10,0],\"result\":0}"));
    assert_non_null(strstr(text, "\"call\":\"cuptiActivityDisable\",\"args\":[5,0],\"result\":0}"));
    assert_non_null(strstr(text, "\"request\":1,\"enabled\":[5,10],\"single\":0}"));
    assert_non_null(strstr(text, "\"exit\":1,\"enabled\":[10],\"single\":1"));
    assert_non_null(strstr(text, "\"outstanding\":1"));
}

static void names_are_cuptis(void)
{
    const char *name = NULL;
    CHECK_IS(CUPTI(GetCallbackName, 2, 211, &name), 0);
    CHECK(!strcmp(name, "cudaLaunchKernel_v7000"));
    CHECK_IS(CUPTI(GetCallbackName, 1, 307, &name), 0);
    CHECK(!strcmp(name, "cuLaunchKernel"));
    CHECK_IS(CUPTI(GetCallbackName, 2, 5000, &name), 1);
    CHECK_IS(CUPTI(GetResultString, 39, &name), 0);
    CHECK(!strcmp(name, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"));
    uint32_t id = 0;
    CHECK_IS(CUPTI(GetStreamIdEx, NULL, NULL, 0, &id), 0);
    CHECK_IS(id, 7);
    CHECK_IS(CUPTI(SetThreadIdType, 1), 0);
    arm("5");
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(u32(nth_of(5, 0), 28), gettid());
}

static void test_names(void **state)
{
    (void)state;
    in_child(names_are_cuptis, "13", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_driver), cmocka_unit_test(test_kinds),       cmocka_unit_test(test_functions),
        cmocka_unit_test(test_subscribers),   cmocka_unit_test(test_told_faults), cmocka_unit_test(test_log),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

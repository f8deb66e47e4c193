// SPDX-License-Identifier: Apache-2.0
/* test_taps.c - sets of taps that come later reach every module that calls */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_gate.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"
#include "preload/hook/tap_modules.h"
#include "preload/run.h"
#include "test/support/support.h"

enum { FUNCTIONS = 40, BY_TAP = 1000 };

/* Stands in for the record room's thread state, of which dlfollow.c reads only `inside`. */
_Thread_local struct kp_thread *kp_thread_self __attribute__((tls_model("initial-exec")));

static void (*at_scan)(void);
static void modules_changed(void)
{
    if (at_scan) at_scan();
}

static char folder[4096];
static void *library;
static char names[FUNCTIONS][16];
static struct kp_tap taps[FUNCTIONS];

typedef int (*number_fn)(int);
/* clang-format off */
#define T(n) static int tap_##n(int x) { return ((number_fn)(uintptr_t)taps[1##n - 100].real)(x) + BY_TAP; }
#define TEN(d) T(d##0) T(d##1) T(d##2) T(d##3) T(d##4) T(d##5) T(d##6) T(d##7) T(d##8) T(d##9)
TEN(0) TEN(1) TEN(2) TEN(3)
#undef T
#define T(n) tap_##n,
static const number_fn functions[] = {TEN(0) TEN(1) TEN(2) TEN(3)};
/* clang-format on */

struct caller {
    void *handle;
    int (*by_name)(int);
    int (*by_table)(int);
    void (*clear)(void);
};

static void *open_here(const char *name, int flags)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *handle = dlopen(path, flags);
    if (!handle) fprintf(stderr, "%s\n", dlerror());
    assert_non_null(handle);
    return handle;
}

static struct caller open_caller(const char *name)
{
    struct caller c = {.handle = open_here(name, RTLD_LAZY | RTLD_LOCAL)};
    c.by_name = (int (*)(int))(uintptr_t)dlsym(c.handle, "calls_by_name");
    c.by_table = (int (*)(int))(uintptr_t)dlsym(c.handle, "calls_by_table");
    c.clear = (void (*)(void))(uintptr_t)dlsym(c.handle, "calls_clear");
    return c;
}

static void must_answer(const struct caller *c, int added)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        assert_int_equal(c->by_name(i), i + added);
        assert_int_equal(c->by_table(i), i + added);
    }
}

static int set_up(void **state)
{
    (void)state;
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n <= 0) return -1;
    *strrchr(folder, '/') = 0;
    if (kp_gate_init() != 0) return -1;
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    if (kp_hook_start() != 0) return -1;
    library = open_here("libcalled.so", RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < FUNCTIONS; i++) {
        snprintf(names[i], sizeof names[i], "called_f%02d", i);
        taps[i] = (struct kp_tap){names[i], dlsym(library, names[i]), (void *)(uintptr_t)functions[i]};
        if (!taps[i].real) return -1;
    }
    return 0;
}

static void words_not_yet_bound_are_taken(void **state)
{
    (void)state;
    struct caller c = open_caller("libcalls_lazy.so"); /* nothing called yet: the words lead to the binding stubs */
    assert_int_equal(kp_hook_add_taps(taps, FUNCTIONS), 0);
    must_answer(&c, BY_TAP);
    dlclose(c.handle);
}

static void words_bound_and_made_read_only_are_taken(void **state)
{
    (void)state;
    struct caller now = open_caller("libcalls_now.so"), noplt = open_caller("libcalls_noplt.so");
    must_answer(&now, 0);
    must_answer(&noplt, 0);
    assert_int_equal(kp_hook_add_taps(taps, FUNCTIONS), 0);
    must_answer(&now, BY_TAP);
    must_answer(&noplt, BY_TAP);
    dlclose(now.handle);
    dlclose(noplt.handle);
}

static void modules_that_come_later_are_tapped_by_the_next_scan(void **state)
{
    (void)state;
    assert_int_equal(kp_hook_add_taps(taps, FUNCTIONS), 0);
    struct caller c = open_caller("libcalls_now.so");
    kp_hook_scan();
    must_answer(&c, BY_TAP);
    dlclose(c.handle);
    c = open_caller("libcalls_now.so"); /* most likely at the same place: looks like the module that is known */
    kp_hook_scan();
    must_answer(&c, BY_TAP);
    dlclose(c.handle);
}

static int added_inside;
static struct caller inside_caller;
static void add_at_scan(void)
{
    at_scan = NULL;
    inside_caller = open_caller("libcalls_lazy.so"); /* comes between the scan and the new set */
    added_inside = kp_hook_add_taps(taps, FUNCTIONS);
}

static void attach_in_a_scan_may_add_taps(void **state)
{
    (void)state;
    at_scan = add_at_scan;
    added_inside = -1;
    struct caller c = open_caller("libcalls_now.so");
    kp_hook_scan();
    assert_int_equal(added_inside, 0);
    must_answer(&c, BY_TAP);
    must_answer(&inside_caller, BY_TAP);
    assert_true(kp_modules_changed()); /* what came in the meantime is still to be told to the sources */
    dlclose(c.handle);
    dlclose(inside_caller.handle);
}

static void a_word_the_host_changed_is_its_own(void **state)
{
    (void)state;
    struct caller c = open_caller("libcalls_now.so");
    c.clear();
    assert_int_equal(c.by_table(7), 8);
    assert_int_equal(kp_hook_add_taps(&taps[7], 1), 0);
    assert_int_equal(c.by_table(7), 8); /* holds another function: left alone */
    assert_int_equal(c.by_name(7), 7 + BY_TAP);
    dlclose(c.handle);
}

static void sets_live_beside_each_other(void **state)
{
    (void)state;
    struct caller c = open_caller("libcalls_now.so");
    assert_int_equal(kp_hook_add_taps(&taps[0], 10), 0);
    assert_int_equal(kp_hook_add_taps(&taps[5], 10), -EEXIST);
    assert_int_equal(kp_hook_add_taps(&taps[10], 30), 0);
    must_answer(&c, BY_TAP);
    dlclose(c.handle);
}

static void in_a_child_nothing_is_added(void **state)
{
    (void)state;
    kp_gate_set(0); /* what a child reads */
    assert_int_equal(kp_hook_add_taps(taps, FUNCTIONS), -EBUSY);
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
}

static void loads_and_unloads_need_no_more_memory(void **state)
{
    (void)state;
    assert_int_equal(kp_hook_add_taps(taps, FUNCTIONS), 0);
    for (int i = 0; i < 300; i++) {
        if (i == 5) kp_fail_set("arena:1+"); /* a module without memory stays as it is, and its calls too */
        struct caller c = open_caller(i % 2 ? "libcalls_now.so" : "libcalls_lazy.so");
        kp_hook_scan();
        must_answer(&c, BY_TAP);
        dlclose(c.handle);
        kp_hook_scan();
    }
}

struct loop {
    struct caller caller;
    int stop, bad;
    unsigned long calls;
};
static void *call_on(void *arg)
{
    struct loop *l = arg;
    while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
        const int n = (int)(__atomic_fetch_add(&l->calls, 1, __ATOMIC_RELAXED) % FUNCTIONS), got = l->caller.by_name(n);
        if (got != n && got != n + BY_TAP) l->bad++;
    }
    return NULL;
}

static void calls_go_on_while_taps_come(void **state)
{
    struct loop loop = {.caller = open_caller("libcalls_lazy.so")};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, call_on, &loop), 0);
    for (int i = 0; i < FUNCTIONS; i++) {
        const unsigned long so_far = __atomic_load_n(&loop.calls, __ATOMIC_RELAXED);
        while (__atomic_load_n(&loop.calls, __ATOMIC_RELAXED) < so_far + FUNCTIONS) sched_yield();
        assert_int_equal(kp_hook_add_taps(&taps[i], 1), 0);
    }
    __atomic_store_n(&loop.stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_int_equal(loop.bad, 0);
    must_answer(&loop.caller, BY_TAP);
    dlclose(loop.caller.handle);
}

/* Taps stay: each test has a process of its own. */
static bool passes_in_a_child(const struct CMUnitTest *test)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const struct CMUnitTest alone[] = {*test};
        exit(cmocka_run_group_tests_name(test->name, alone, set_up, NULL));
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_not_yet_bound_are_taken),
        cmocka_unit_test(words_bound_and_made_read_only_are_taken),
        cmocka_unit_test(modules_that_come_later_are_tapped_by_the_next_scan),
        cmocka_unit_test(attach_in_a_scan_may_add_taps),
        cmocka_unit_test(a_word_the_host_changed_is_its_own),
        cmocka_unit_test(sets_live_beside_each_other),
        cmocka_unit_test(in_a_child_nothing_is_added),
        cmocka_unit_test(loads_and_unloads_need_no_more_memory),
        cmocka_unit_test(calls_go_on_while_taps_come),
    };
    kp_run_set_calls(&(struct kp_run_calls){.modules_changed = modules_changed});
    int failed = 0;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) failed += !passes_in_a_child(&tests[i]);
    return failed;
}

// SPDX-License-Identifier: Apache-2.0
/* test_dlfollow.c - the taps jump on with every argument as it was, and tell of new modules once */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/kp_gate.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"
#include "preload/hook/taps.h"
#include "preload/run.h"
#include "test/support/support.h"

#define LATE_LIBRARY "libresolv.so.2"

/* Stands in for the record room's thread state, of which dlfollow.c reads only `inside`. */
_Thread_local struct kp_thread *kp_thread_self __attribute__((tls_model("initial-exec")));

static int told;
static _Atomic int tells; /* 1: it shall take its time, 2: it is at it, 3: let it go on, 4: done */
static void *(*call_inside)(void *, const char *);
static void modules_changed(void)
{
    told++;
    if (tells == 1) {
        for (tells = 2; tells != 3;) usleep(100);
        usleep(2000);
        tells = 4;
        return;
    }
    errno = ENOTTY;
    if (call_inside) call_inside(RTLD_DEFAULT, "getpid"); /* re-enters the tap */
    dlsym(RTLD_DEFAULT, "no_such_symbol_at_all");         /* leaves an error behind */
}

typedef void *(*dlsym_fn)(void *, const char *);
typedef void *(*dlvsym_fn)(void *, const char *, const char *);
typedef void *(*dlopen_fn)(const char *, int);
typedef void *(*dlmopen_fn)(Lmid_t, const char *, int);
static dlsym_fn tap_dlsym;
static dlvsym_fn tap_dlvsym;
static dlopen_fn tap_dlopen;
static dlmopen_fn tap_dlmopen;

static int set_up(void **state)
{
    (void)state;
    tap_dlsym = (dlsym_fn)(uintptr_t)kp_hook_tap_dlsym;
    tap_dlvsym = (dlvsym_fn)(uintptr_t)kp_hook_tap_dlvsym;
    tap_dlopen = (dlopen_fn)(uintptr_t)kp_hook_tap_dlopen;
    tap_dlmopen = (dlmopen_fn)(uintptr_t)kp_hook_tap_dlmopen;
    if (kp_gate_init() != 0) return -1;
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    return kp_hook_start();
}

static int first_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info, (void)size, (void)arg;
    return 1;
}

static int reset(void **state)
{
    (void)state;
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    call_inside = NULL;
    kp_hook_scan();
    kp_hook_credit = 0;
    told = 0;
    return 0;
}

static void taps_answer_like_the_functions(void **state)
{
    (void)state;
    for (int credit = 0; credit < 2; credit++) {
        kp_hook_credit = credit;
        assert_ptr_equal(tap_dlsym(RTLD_DEFAULT, "getpid"), dlsym(RTLD_DEFAULT, "getpid"));
        kp_hook_credit = credit;
        assert_null(tap_dlvsym(RTLD_DEFAULT, "getpid", "NO_1.0"));
        kp_hook_credit = credit;
        void *handle = tap_dlopen(LATE_LIBRARY, RTLD_NOW);
        assert_int_equal(handle != NULL, 1);
        dlclose(handle);
        kp_hook_credit = credit;
        assert_null(tap_dlmopen(LM_ID_BASE, "./no/such/library.so", RTLD_NOW));
    }
}

static void a_dlsym_after_a_dlopen_tells_of_the_new_module(void **state)
{
    (void)state;
    void *handle = tap_dlopen(LATE_LIBRARY, RTLD_NOW);
    assert_non_null(handle);
    assert_int_equal(told, 0);
    assert_non_null(tap_dlsym(handle, "getpid"));
    assert_int_equal(told, 1);
    assert_non_null(tap_dlsym(handle, "getuid"));
    assert_int_equal(told, 1);
    dlclose(handle);
}

static void a_dlsym_without_a_dlopen_costs_no_scan(void **state)
{
    (void)state;
    void *handle = dlopen(LATE_LIBRARY, RTLD_NOW); /* not seen by a tap */
    tap_dlsym(RTLD_DEFAULT, "getpid");
    assert_int_equal(told, 0);
    kp_hook_scan(); /* the safety net sees it */
    assert_int_equal(told, 1);
    dlclose(handle);
}

static void the_credit_runs_out(void **state)
{
    (void)state;
    tap_dlopen("./no/such/library.so", RTLD_NOW);
    assert_int_equal(kp_hook_credit, KP_HOOK_CREDIT);
    for (int i = 0; i < KP_HOOK_CREDIT + 5; i++) tap_dlsym(RTLD_DEFAULT, "getpid");
    assert_int_equal(kp_hook_credit, 0);
    assert_int_equal(told, 0);
}

static void errno_and_the_pending_error_are_the_hosts(void **state)
{
    (void)state;
    void *handle = tap_dlopen(LATE_LIBRARY, RTLD_NOW);
    dlerror();
    errno = EXDEV;
    assert_non_null(tap_dlsym(handle, "getpid"));
    assert_int_equal(told, 1);
    assert_int_equal(errno, EXDEV);
    assert_null(dlerror());
    dlclose(handle);
}

static void what_the_scan_calls_does_not_scan_again(void **state)
{
    (void)state;
    call_inside = tap_dlsym;
    void *handle = tap_dlopen(LATE_LIBRARY, RTLD_NOW);
    tap_dlsym(handle, "getpid");
    assert_int_equal(told, 1);
    dlclose(handle);
}

static void inside_a_hook_and_in_a_child_nothing_is_scanned(void **state)
{
    struct kp_thread thread = {.inside = 1};
    (void)state;
    kp_thread_self = &thread;
    void *handle = tap_dlopen(LATE_LIBRARY, RTLD_NOW);
    assert_non_null(tap_dlsym(handle, "getpid"));
    assert_int_equal(told, 0);
    kp_thread_self = NULL;
    kp_gate_set(0); /* what a child reads */
    assert_non_null(tap_dlsym(handle, "getpid"));
    assert_int_equal(told, 0);
    dlclose(handle);
}

struct loop {
    int stop;
    unsigned long calls;
};
static void *load_and_unload(void *arg)
{
    struct loop *loop = arg;
    while (!__atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE)) {
        void *handle = tap_dlopen(LATE_LIBRARY, RTLD_NOW);
        if (!handle || !tap_dlsym(handle, "getpid")) return (void *)1;
        dlclose(handle);
        loop->calls++;
    }
    return NULL;
}

static void threads_that_load_and_unload_do_not_disturb_each_other(void **state)
{
    enum { THREADS = 4 };
    static struct loop loops[THREADS];
    pthread_t threads[THREADS];
    void *failed;
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_unload, &loops[i]), 0);
    for (int i = 0; i < 300; i++) {
        kp_hook_scan();
        usleep(1000);
    }
    for (int i = 0; i < THREADS; i++) __atomic_store_n(&loops[i].stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
        assert_true(loops[i].calls > 0);
    }
}

static _Atomic bool is_over;

static void *scans(void *arg)
{
    while (!is_over) kp_hook_scan();
    return arg;
}

/* A child inherits the loader's list lock as it was: none of our threads may have it at that moment. */
static void a_forked_child_can_ask_the_loader(void **state)
{
    pthread_t thread;
    int hung = 0, forks = 0;
    (void)state;
    is_over = false;
    assert_int_equal(pthread_create(&thread, NULL, scans, NULL), 0);
    for (int i = 0; i < 300 && !hung; i++) {
        int status = 0;
        if (!kp_hook_before_fork()) continue; /* a busy machine: it waits for a moment only */
        forks++;
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            dl_iterate_phdr(first_module, NULL);
            _exit(0);
        }
        kp_hook_after_fork();
        waitpid(child, &status, 0);
        hung += status != 0;
    }
    is_over = true;
    pthread_join(thread, NULL);
    assert_int_equal(hung, 0);
    assert_true(forks > 0);
}

static void *scans_once(void *arg)
{
    kp_hook_scan();
    return arg;
}

/* As where our writer notices torch first: the program's thread must not run ops until torch is attached. */
static void a_dlsym_waits_for_another_thread_that_tells(void **state)
{
    pthread_t thread;
    (void)state;
    tells = 1;
    void *handle = tap_dlopen(LATE_LIBRARY, RTLD_NOW);
    assert_int_equal(pthread_create(&thread, NULL, scans_once, NULL), 0);
    while (tells != 2) usleep(100);
    tells = 3;
    assert_non_null(tap_dlsym(handle, "getpid"));
    const int then = tells;
    pthread_join(thread, NULL);
    assert_int_equal(then, 4);
    assert_int_equal(told, 1);
    tells = 0;
    dlclose(handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(taps_answer_like_the_functions, reset),
        cmocka_unit_test_setup(a_dlsym_after_a_dlopen_tells_of_the_new_module, reset),
        cmocka_unit_test_setup(a_dlsym_without_a_dlopen_costs_no_scan, reset),
        cmocka_unit_test_setup(the_credit_runs_out, reset),
        cmocka_unit_test_setup(errno_and_the_pending_error_are_the_hosts, reset),
        cmocka_unit_test_setup(what_the_scan_calls_does_not_scan_again, reset),
        cmocka_unit_test_setup(inside_a_hook_and_in_a_child_nothing_is_scanned, reset),
        cmocka_unit_test_setup(threads_that_load_and_unload_do_not_disturb_each_other, reset),
        cmocka_unit_test_setup(a_dlsym_waits_for_another_thread_that_tells, reset),
        cmocka_unit_test_setup(a_forked_child_can_ask_the_loader, reset),
    };
    kp_run_set_calls(&(struct kp_run_calls){.modules_changed = modules_changed});
    return cmocka_run_group_tests(tests, set_up, NULL);
}

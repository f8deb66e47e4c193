// SPDX-License-Identifier: Apache-2.0
/* test_tap_modules.c - new modules are tapped once, gone ones forgotten, and a loop of both does not grow anything */
#include "preload/hook/tap_modules.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_fail.h"
#include "test/support/support.h"

#define LATE_LIBRARY "libresolv.so.2" /* any library the loader finds */

static volatile int taken; /* glibc calls ttyname_r a leaf: the compiler would not read it again */
static int tap_getlogin(char *name, size_t size)
{
    (void)name, (void)size;
    taken++;
    return 0;
}
static int tap_ttyname(int fd, char *name, size_t size)
{
    (void)fd, (void)name, (void)size;
    taken++;
    return 0;
}

static struct kp_tap taps[1], later_taps[1];

/* Once: when the program's own word for a function is tapped, reading it gives the tap. */
static int fill_taps(void **state)
{
    (void)state;
    taps[0] = (struct kp_tap){"getlogin_r", (void *)(uintptr_t)getlogin_r, (void *)(uintptr_t)tap_getlogin};
    later_taps[0] = (struct kp_tap){"ttyname_r", (void *)(uintptr_t)ttyname_r, (void *)(uintptr_t)tap_ttyname};
    return 0;
}

static void the_program_itself_is_tapped_when_asked(void **state)
{
    char name[64];
    (void)state;
    assert_int_equal(kp_modules_apply(taps, 1, true), 0);
    taken = 0;
    (void)!getlogin_r(name, sizeof name);
    assert_int_equal(taken, 1);
}

static void nothing_changed_after_a_scan(void **state)
{
    (void)state;
    assert_int_equal(kp_modules_apply(taps, 1, true), 0);
    assert_false(kp_modules_changed());
    void *handle = dlopen(LATE_LIBRARY, RTLD_NOW);
    if (!handle) KP_SKIP("the library cannot be opened here");
    assert_true(kp_modules_changed());
    assert_int_equal(kp_modules_apply(taps, 1, true), 0);
    assert_false(kp_modules_changed());
    dlclose(handle);
    assert_true(kp_modules_changed());
}

static void a_thousand_loads_and_unloads_need_no_more_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        if (i == 5) kp_fail_set("arena:1+"); /* then a module that is not known yet is no success */
        void *handle = dlopen(LATE_LIBRARY, RTLD_LAZY);
        if (!handle) KP_SKIP("the library cannot be opened here");
        assert_int_equal(kp_modules_apply(taps, 1, true), 0);
        dlclose(handle);
    }
    kp_fail_set(NULL);
}

static void *idle(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) usleep(1000);
    return NULL;
}

static void with_threads_about_a_module_is_held_while_it_is_tapped(void **state)
{
    pthread_t thread;
    int stop = 0;
    char name[64];
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, idle, &stop), 0);
    assert_int_equal(kp_modules_apply(later_taps, 1, true), 0);
    taken = 0;
    (void)ttyname_r(0, name, sizeof name);
    assert_int_equal(taken, 1);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_itself_is_tapped_when_asked),
        cmocka_unit_test(nothing_changed_after_a_scan),
        cmocka_unit_test(a_thousand_loads_and_unloads_need_no_more_memory),
        cmocka_unit_test(with_threads_about_a_module_is_held_while_it_is_tapped),
    };
    return cmocka_run_group_tests(tests, fill_taps, NULL);
}

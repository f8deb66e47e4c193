// SPDX-License-Identifier: Apache-2.0
/* test_modules.c - new modules are tapped once, gone ones forgotten, and a loop of both does not grow anything */
#include "preload/hook/modules.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "test/support/support.h"

#define LATE_LIBRARY "libresolv.so.2" /* any library the loader finds */

static int taken;
static char *tap_getcwd(char *buf, size_t size)
{
    taken++;
    return getcwd(buf, size) ? buf : NULL;
}

static struct kp_tap taps[1];

/* Once: later on the program's own word for the function is tapped, and reading it gives the tap. */
static void fill_taps(void)
{
    if (taps[0].symbol) return;
    taps[0] = (struct kp_tap){"getlogin_r", (void *)(uintptr_t)getlogin_r, (void *)(uintptr_t)tap_getcwd};
}

static void the_program_itself_is_tapped_when_asked(void **state)
{
    struct kp_modules_stats stats;
    char name[64];
    (void)state;
    fill_taps();
    assert_int_equal(kp_modules_apply(taps, 1, true), 0);
    kp_modules_stats_get(&stats);
    assert_true(stats.modules > 3);
    assert_in_range(stats.tapped_words, 1, 2);
    taken = 0;
    (void)getlogin_r(name, sizeof name);
    assert_int_equal(taken, 1);
    kp_modules_undo(taps, 1);
    (void)getlogin_r(name, sizeof name);
    assert_int_equal(taken, 1);
    kp_modules_stats_get(&stats);
    assert_int_equal(stats.tapped_words, 0);
}

static void nothing_changed_after_a_scan(void **state)
{
    (void)state;
    fill_taps();
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

static void a_thousand_loads_and_unloads_keep_the_list_as_long_as_it_was(void **state)
{
    struct kp_modules_stats before, after;
    (void)state;
    fill_taps();
    kp_modules_apply(taps, 1, true);
    kp_modules_stats_get(&before);
    for (int i = 0; i < 1000; i++) {
        void *handle = dlopen(LATE_LIBRARY, RTLD_LAZY);
        if (!handle) KP_SKIP("the library cannot be opened here");
        kp_modules_apply(taps, 1, true);
        dlclose(handle);
    }
    kp_modules_apply(taps, 1, true);
    kp_modules_stats_get(&after);
    assert_int_equal(after.modules, before.modules);
    assert_int_equal(after.modules + after.free_entries, before.modules + before.free_entries);
}

static void *idle(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) usleep(1000);
    return NULL;
}

static void with_threads_about_a_module_is_held_while_it_is_tapped(void **state)
{
    struct kp_modules_stats stats;
    pthread_t thread;
    int stop = 0;
    char name[64];
    (void)state;
    fill_taps();
    kp_modules_undo(taps, 1);
    assert_int_equal(pthread_create(&thread, NULL, idle, &stop), 0);
    void *handle = dlopen(LATE_LIBRARY, RTLD_NOW); /* an unload makes the scan look at the program's words again */
    if (handle) dlclose(handle);
    assert_int_equal(kp_modules_apply(taps, 1, true), 0);
    kp_modules_stats_get(&stats);
    assert_in_range(stats.tapped_words, 1, 2);
    taken = 0;
    (void)getlogin_r(name, sizeof name);
    assert_int_equal(taken, 1);
    kp_modules_undo(taps, 1);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_itself_is_tapped_when_asked),
        cmocka_unit_test(nothing_changed_after_a_scan),
        cmocka_unit_test(a_thousand_loads_and_unloads_keep_the_list_as_long_as_it_was),
        cmocka_unit_test(with_threads_about_a_module_is_held_while_it_is_tapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_residents.c - the spool says how much memory a program has at the ends of its steps */
#include "preload/procfacts/procfacts.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "test/unit/window/window_fixture.h"

#define MS UINT64_C(1000000)

/* Reads "17:60000,22:61000" of a window's notes of that name. Returns how many there are. */
static size_t list_of(const char *name, uint32_t window, long *steps, long *kb, size_t most)
{
    struct kp_reader *r;
    char why[200], key[40];
    size_t count = 0;
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    for (uint32_t part = 0;; part++) {
        snprintf(key, sizeof key, "%s.%u.%u", name, window, part);
        const char *at = kp_reader_text(r, key);
        if (!at) break;
        for (; *at && count < most; count++) {
            char *end;
            steps[count] = strtol(at, &end, 10);
            assert_int_equal(*end, ':');
            kb[count] = strtol(end + 1, &end, 10);
            at = end + (*end == ',');
        }
    }
    kp_reader_close(r);
    return count;
}

static size_t looks_of(uint32_t window, long *steps, long *kb, size_t most)
{
    return list_of("resident_steps", window, steps, kb, most);
}

/* Addresses between two looks, less the arenas that glibc reserves for threads of an emulator. */
static long addresses_between(const long *kb)
{
    enum { ARENA_KB = 64 << 10 };
    return (kb[1] - kb[0]) % ARENA_KB;
}

static void what_a_step_takes_is_seen_at_its_end(void **state)
{
    enum { TAKEN = 32 << 20 };
    long steps[8] = {0}, kb[8] = {0};
    (void)state;
    setup("active=1");
    assert_int_equal(open_spool(), 0);
    kp_residents_begin(1, 0);
    kp_residents_step(4, 10 * MS);
    char *const taken = mmap(NULL, TAKEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(taken, MAP_FAILED);
    memset(taken, 1, TAKEN);
    kp_residents_step(5, 12 * MS); /* too soon */
    kp_residents_step(6, 15 * MS);
    munmap(taken, TAKEN);
    kp_residents_note();
    assert_int_equal(looks_of(1, steps, kb, 8), 2);
    assert_int_equal(steps[0], 4);
    assert_int_equal(steps[1], 6);
    assert_in_range(kb[1] - kb[0], TAKEN / 1024 - 2048, TAKEN / 1024 + 2048);
    assert_int_equal(list_of("address_steps", 1, steps, kb, 8), 2);
    assert_in_range(addresses_between(kb), TAKEN / 1024, TAKEN / 1024 + 2048);
}

static void what_was_reserved_before_adds_no_addresses(void **state)
{
    enum { TAKEN = 32 << 20 };
    long steps[8] = {0}, kb[8] = {0};
    (void)state;
    char *const taken = mmap(NULL, TAKEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(taken, MAP_FAILED);
    kp_residents_begin(4, 0);
    kp_residents_step(4, 10 * MS);
    memset(taken, 1, TAKEN);
    kp_residents_step(6, 15 * MS);
    munmap(taken, TAKEN);
    kp_residents_note();
    assert_int_equal(looks_of(4, steps, kb, 8), 2);
    assert_in_range(kb[1] - kb[0], TAKEN / 1024 - 2048, TAKEN / 1024 + 2048);
    assert_int_equal(list_of("address_steps", 4, steps, kb, 8), 2);
    assert_in_range(addresses_between(kb), 0, 2048);
}

static void files_that_a_step_leaves_open_are_counted(void **state)
{
    enum { LEFT = 3 };
    long steps[8] = {0}, files[8] = {0};
    int left[LEFT];
    (void)state;
    if (!kp_io_open_files()) skip(); /* before Linux 6.2 */
    kp_residents_begin(2, 0);
    kp_residents_step(4, 10 * MS);
    for (int i = 0; i < LEFT; i++) left[i] = dup(STDERR_FILENO);
    kp_residents_step(6, 15 * MS);
    for (int i = 0; i < LEFT; i++) close(left[i]);
    kp_residents_note();
    assert_int_equal(list_of("file_steps", 2, steps, files, 8), 2);
    assert_int_equal(steps[1], 6);
    assert_int_equal(files[1] - files[0], LEFT);
}

/* Its last note is a tenth of a second old, as that of its waits for a core is. */
static void a_killed_process_leaves_the_memory_of_its_steps(void **state)
{
    long steps[64] = {0}, kb[64] = {0};
    const uint64_t from = kp_clock_ns(CLOCK_MONOTONIC);
    (void)state;
    kp_procfacts_window_begin(3, true);
    for (uint64_t i = 1; i <= 30; i++) kp_procfacts_core_step(from + i * 20 * MS, false, i);
    const size_t count = looks_of(3, steps, kb, 64);
    assert_in_range(count, 20, 30);
    assert_in_range(steps[count - 1], 24, 30);
}

/* A long window has few looks. */
static void looks_come_a_thousandth_of_the_window_apart(void **state)
{
    static long steps[4096], kb[4096];
    (void)state;
    kp_residents_begin(2, 0);
    for (uint64_t i = 1; i <= 100; i++) kp_residents_step(i, i * 10 * MS);
    assert_in_range(looks_of(2, steps, kb, 4096), 60, 99);
    for (uint64_t i = 101; i <= 20000; i++) kp_residents_step(i, i * 10 * MS);
    kp_residents_note();
    assert_in_range(looks_of(2, steps, kb, 4096), 2000, 4000);
}

static int run_end(void **state)
{
    (void)state;
    (void)kp_record_close(true, 10000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_step_takes_is_seen_at_its_end),
        cmocka_unit_test(what_was_reserved_before_adds_no_addresses),
        cmocka_unit_test(files_that_a_step_leaves_open_are_counted),
        cmocka_unit_test(a_killed_process_leaves_the_memory_of_its_steps),
        cmocka_unit_test(looks_come_a_thousandth_of_the_window_apart),
    };
    return cmocka_run_group_tests(tests, NULL, run_end);
}

// SPDX-License-Identifier: Apache-2.0
/* test_steplines.c - lines go from the thread that steps to another one, whole and in order */
#include "preload/summary/steplines.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "test/support/support.h"

#define MS UINT64_C(1000000)
enum { ROOM = 2048 };

static uint64_t collectives_ns;
static uint64_t collectives(void) { return collectives_ns; }

static int fresh(void **state)
{
    (void)state;
    kp_steplines_forget();
    return kp_steplines_begin(collectives);
}

static void a_line_has_how_long_a_collective_was_open_in_its_step(void **state)
{
    struct kp_stepline lines[3];
    (void)state;
    collectives_ns += 5 * MS;
    kp_steplines_step(0, 100 * MS, 0, false); /* before it: not of a step */
    collectives_ns += 3 * MS;
    kp_steplines_step(1, 110 * MS, 10 * MS, false);
    kp_steplines_step(2, 120 * MS, 10 * MS, false);
    assert_int_equal(kp_steplines_take(lines, 3), 3);
    assert_int_equal(lines[0].collectives_us, 0);
    assert_int_equal(lines[1].collectives_us, 3000);
    assert_int_equal(lines[2].collectives_us, 0);
}

static void a_step_becomes_a_line(void **state)
{
    struct kp_stepline lines[4];
    (void)state;
    kp_steplines_step(7, 100 * MS, 12345, true);
    kp_steplines_step(8, 101 * MS, 0, false);
    assert_int_equal(kp_steplines_take(lines, 4), 2);
    assert_int_equal(lines[0].step, 7);
    assert_int_equal(lines[0].dur_ns, 12345);
    assert_int_equal(lines[0].max_ns, 12345);
    assert_int_equal(lines[0].count, 1);
    assert_int_equal(lines[0].recorded, 1);
    assert_int_equal(lines[1].step, 8);
    assert_int_equal(lines[1].recorded, 0);
    assert_true(lines[1].end_ns >= lines[0].end_ns);
    assert_int_equal(kp_steplines_take(lines, 4), 0);
}

/* Looks are 20 ms apart: what the kernel counted stands in the line at whose end it looked. */
static void what_the_thread_took_is_counted_between_looks(void **state)
{
    enum { PAGES = 500, PAGE = 4096 };
    struct kp_stepline lines[4];
    (void)state;
    kp_steplines_step(0, 100 * MS, MS, false);
    char *const taken = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(taken, MAP_FAILED);
    assert_int_equal(madvise(taken, PAGES * PAGE, MADV_NOHUGEPAGE), 0);
    for (int i = 0; i < PAGES; i++) taken[i * PAGE] = 1;
    kp_steplines_step(1, 110 * MS, MS, false);
    kp_steplines_step(2, 130 * MS, MS, false);
    munmap(taken, PAGES * PAGE);
    assert_int_equal(kp_steplines_take(lines, 4), 3);
    assert_int_equal(lines[1].looked_us, 0);
    assert_int_equal(lines[1].faults_minor, 0);
    assert_int_equal(lines[2].looked_us, 30000);
    assert_in_range(lines[2].faults_minor, PAGES, 10 * PAGES); /* a sanitizer adds its own */
    assert_in_range(lines[2].resident_kb - lines[0].resident_kb, PAGES * 4 - 1000, PAGES * 40);
}

static void what_finds_no_room_is_counted(void **state)
{
    static struct kp_stepline lines[ROOM + 10];
    (void)state;
    for (unsigned i = 0; i < ROOM + 5; i++) kp_steplines_step(i, MS, 1, false);
    assert_int_equal(kp_steplines_lost(), 5);
    assert_int_equal(kp_steplines_take(lines, ROOM + 10), ROOM);
    assert_int_equal(lines[ROOM - 1].step, ROOM - 1);
    kp_steplines_step(9999, MS, 1, false);
    assert_int_equal(kp_steplines_take(lines, 1), 1);
    assert_int_equal(lines[0].step, 9999);
}

enum { MANY = 20000 };

static void *stepping(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < MANY; i++) kp_steplines_step(i, MS, i + 1, false);
    return NULL;
}

/* With TSan this is the test of the two orders. */
static void two_threads_share_the_ring(void **state)
{
    struct kp_stepline lines[64];
    pthread_t thread;
    uint64_t seen = 0, next = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, stepping, NULL), 0);
    while (seen + kp_steplines_lost() < MANY) {
        const size_t count = kp_steplines_take(lines, 64);
        for (size_t i = 0; i < count; i++) {
            assert_true(lines[i].step >= next);
            assert_int_equal(lines[i].dur_ns, lines[i].step + 1);
            next = lines[i].step + 1;
        }
        seen += count;
    }
    pthread_join(thread, NULL);
    assert_int_equal(seen + kp_steplines_lost(), MANY);
}

static void without_a_begin_there_is_no_line(void **state)
{
    struct kp_stepline line;
    (void)state;
    kp_steplines_forget();
    kp_steplines_step(1, MS, MS, false);
    assert_int_equal(kp_steplines_take(&line, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_step_becomes_a_line, fresh),
        cmocka_unit_test_setup(a_line_has_how_long_a_collective_was_open_in_its_step, fresh),
        cmocka_unit_test_setup(what_the_thread_took_is_counted_between_looks, fresh),
        cmocka_unit_test_setup(what_finds_no_room_is_counted, fresh),
        cmocka_unit_test_setup(two_threads_share_the_ring, fresh),
        cmocka_unit_test_setup(without_a_begin_there_is_no_line, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

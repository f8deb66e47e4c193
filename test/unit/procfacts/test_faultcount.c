// SPDX-License-Identifier: Apache-2.0
/* test_faultcount.c - page faults of the steps of a window, and of no others, and what one costs */
#include "preload/procfacts/faultcount.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "preload/procfacts/procfacts.h"
#include "test/unit/window/window_fixture.h"

static void touch(size_t pages)
{
    char *const at = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    (void)madvise(at, pages * 4096, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++) ((volatile char *)at)[i * 4096] = 1; /* volatile: the store is the fault */
    munmap(at, pages * 4096);
}

/* Reads "STEPS,MANY,MINOR,MAJOR,BARE_STEPS,BARE" of a window. False: there is none. */
static bool note_read(uint32_t window, unsigned long of[6])
{
    struct kp_reader *r;
    char key[24], why[200];
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    snprintf(key, sizeof key, "faults.%u", window);
    const char *const text = kp_reader_text(r, key);
    const bool is_there =
        text && sscanf(text, "%lu,%lu,%lu,%lu,%lu,%lu", &of[0], &of[1], &of[2], &of[3], &of[4], &of[5]) == 6;
    kp_reader_close(r);
    return is_there;
}

static void faults_of_the_windows_steps_count(void **state)
{
    static const size_t pages[] = {9000, 500, 1000, 600, 2000, 300, 5, 400, 5, 2000};
    unsigned long of[6];
    (void)state;
    setup("wait=4,warmup=1,active=4,repeat=1");
    kp_window_begin_run(false);
    struct kp_thread *t = kp_thread_get();
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        touch(pages[i]);
        step(t);
    }
    assert_true(note_read(1, of));
    assert_int_equal(of[0], 4);
    assert_int_equal(of[1], 2);
    assert_in_range(of[2], 710, 1200); /* and the few of the code of the steps */
    assert_int_equal(of[3], 0);
    assert_int_equal(of[4], 3); /* the first has the start of the program */
    assert_in_range(of[5], 600, 700);
}

static void the_start_of_the_program_is_no_step(void **state)
{
    unsigned long of[6];
    struct kp_window w;
    (void)state;
    while (kp_window_take_drained(&w, false)) continue;
    kp_faultcount_begin(false);
    touch(2000);
    kp_faultcount_step(false); /* the first one has the start */
    touch(300);
    kp_faultcount_step(false);
    kp_faultcount_note(70);
    assert_true(note_read(70, of));
    assert_int_equal(of[0], 1);
    assert_in_range(of[2], 300, 600);
}

static void *other_steps(void *none)
{
    (void)none;
    kp_faultcount_step(false);
    return NULL;
}

static void steps_of_two_threads_are_not_told(void **state)
{
    unsigned long of[6];
    pthread_t other;
    (void)state;
    kp_faultcount_begin(true);
    kp_faultcount_step(false);
    assert_int_equal(pthread_create(&other, NULL, other_steps, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    kp_faultcount_step(false);
    kp_faultcount_note(71);
    assert_false(note_read(71, of));
}

static void what_one_costs_is_measured_where_there_were_many(void **state)
{
    (void)state;
    struct kp_reader *r;
    char why[200];
    kp_faultcount_note_cost();
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    const char *const text = kp_reader_text(r, "fault_ns");
    assert_non_null(text);
    assert_in_range(atol(text), 30, 100000);
    kp_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_the_windows_steps_count),
        cmocka_unit_test(the_start_of_the_program_is_no_step),
        cmocka_unit_test(steps_of_two_threads_are_not_told),
        cmocka_unit_test(what_one_costs_is_measured_where_there_were_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_stepfile.c - the file of a line a step: whole, in order, and small after many steps */
#include "preload/summary/steplines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_fail.h"
#include "test/support/support.h"

#define SECOND UINT64_C(1000000000)

static struct kp_stepfile file;
static struct kp_stepline *lines;
static char folder[64];

static int setup(void **state)
{
    (void)state;
    memset(&file, 0, sizeof file);
    snprintf(folder, sizeof folder, "/tmp/kprof-stepfile-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(file.path, sizeof file.path, "%s/a.steps", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kp_fail_set(NULL);
    unlink(file.path);
    rmdir(folder);
    free(lines);
    lines = NULL;
    return 0;
}

static void step_add(uint64_t step, uint64_t dur_ns)
{
    kp_stepfile_add(&file, &(struct kp_stepline){.step = step,
                                                 .end_ns = step * SECOND,
                                                 .dur_ns = dur_ns,
                                                 .min_ns = dur_ns,
                                                 .median_ns = dur_ns,
                                                 .p99_ns = dur_ns,
                                                 .max_ns = dur_ns,
                                                 .count = 1,
                                                 .had_us = 2,
                                                 .resident_kb = 5});
}

/* Reads the file into `lines`. Returns how many there are. */
static size_t read_back(struct kp_stephead *head)
{
    FILE *const in = fopen(file.path, "rb");
    struct stat st;
    assert_non_null(in);
    assert_int_equal(fstat(fileno(in), &st), 0);
    assert_int_equal(fread(head, sizeof *head, 1, in), 1);
    const size_t count = ((size_t)st.st_size - sizeof *head) / sizeof *lines;
    lines = calloc(count + 1, sizeof *lines);
    assert_int_equal(fread(lines, sizeof *lines, count, in), count);
    fclose(in);
    return count;
}

static void lines_are_written_in_order_and_the_end_is_said(void **state)
{
    struct kp_stephead head;
    (void)state;
    for (uint64_t i = 0; i < 200; i++) step_add(i, i + 1);
    assert_int_equal(kp_stepfile_flush(&file, 500 * SECOND), 0);
    assert_int_equal(read_back(&head), 200);
    assert_int_equal(head.state, KP_STEPLINE_RUNS);
    assert_int_equal(head.beat_ns, 500 * SECOND);
    for (uint64_t i = 0; i < 200; i++) assert_int_equal(lines[i].step, i);
    free(lines);
    step_add(200, 1);
    assert_int_equal(kp_stepfile_end(&file, 501 * SECOND), 0);
    assert_int_equal(read_back(&head), 201);
    assert_int_equal(head.state, KP_STEPLINE_ENDED);
}

static void without_steps_there_is_no_file(void **state)
{
    (void)state;
    assert_int_equal(kp_stepfile_end(&file, SECOND), 0);
    assert_int_equal(access(file.path, F_OK), -1);
}

/* Two weeks of a step a second are 1.2 million steps. */
static void weeks_of_steps_stay_small(void **state)
{
    enum { STEPS = 1209600 };
    struct kp_stephead head;
    (void)state;
    for (uint64_t i = 0; i < STEPS; i++) {
        step_add(i, i % 100 == 99 ? 1000 : 10);
        assert_int_equal(kp_stepfile_flush(&file, i * SECOND), 0);
    }
    assert_int_equal(kp_stepfile_end(&file, STEPS * SECOND), 0);
    const size_t count = read_back(&head);
    uint64_t steps = 0, dur_ns = 0;
    for (size_t i = 0; i < count; i++) steps += lines[i].count, dur_ns += lines[i].dur_ns;
    assert_int_equal(steps, STEPS);
    assert_int_equal(dur_ns, (uint64_t)STEPS / 100 * (99 * 10 + 1000));
    assert_in_range(count * sizeof *lines, 9600000, 12000000);
    const struct kp_stepline *const late = &lines[count - 2];
    assert_in_range(late->count, 60, 61); /* a minute */
    assert_int_equal(late->median_ns, 10);
    assert_int_equal(late->min_ns, 10);
    assert_int_equal(late->had_us, late->count * 2);
}

/* A write that fails loses its lines, which are counted; the next ones stand where they would have. */
static void a_full_disk_loses_lines_and_no_more(void **state)
{
    struct kp_stephead head;
    (void)state;
    step_add(0, 1);
    assert_int_equal(kp_stepfile_flush(&file, SECOND), 0);
    kp_fail_set("pwrite:1+");
    step_add(1, 1);
    assert_int_equal(kp_stepfile_flush(&file, 2 * SECOND), -ENOSPC);
    kp_fail_set(NULL);
    step_add(2, 1);
    assert_int_equal(kp_stepfile_flush(&file, 3 * SECOND), 0);
    assert_int_equal(read_back(&head), 2);
    assert_int_equal(lines[1].step, 2);
    assert_int_equal(head.lost, 1);
}

static void a_file_that_is_there_is_left_alone(void **state)
{
    (void)state;
    FILE *const other = fopen(file.path, "w");
    fputs("other", other);
    fclose(other);
    step_add(0, 1);
    assert_int_equal(kp_stepfile_flush(&file, SECOND), -EEXIST);
    assert_int_equal(file.head.lost, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_are_written_in_order_and_the_end_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(without_steps_there_is_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(weeks_of_steps_stay_small, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_loses_lines_and_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_there_is_left_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

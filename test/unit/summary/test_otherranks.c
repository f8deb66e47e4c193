// SPDX-License-Identifier: Apache-2.0
/* test_otherranks.c - shares of collectives are those of the same job's ranks that live, of steps not recorded */
#include "preload/summary/steplines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/support/support.h"

#define SECOND UINT64_C(1000000000)
#define NOW (1000 * SECOND)
enum { STEPS = 100, STEP_US = 10000 };

static struct kp_stepfile file;
static char folder[64];
static uint64_t shares[KP_OTHERRANKS_MOST];

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kprof-otherranks-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* Writes the file of a rank: its first half of steps without a collective, then `milli` of each step in one. */
static const struct kp_stephead *rank_write(uint32_t rank, uint32_t ranks, const char *job, unsigned milli)
{
    memset(&file, 0, sizeof file);
    snprintf(file.path, sizeof file.path, "%s/host_r%u_%u.1.steps", folder, rank, 40 + rank);
    memcpy(file.head.magic, KP_STEPLINE_MAGIC, sizeof file.head.magic);
    file.head.head_bytes = sizeof file.head;
    file.head.line_bytes = sizeof(struct kp_stepline);
    file.head.rank = rank;
    file.head.ranks = ranks;
    snprintf(file.head.job, sizeof file.head.job, "%s", job);
    for (unsigned i = 0; i < STEPS; i++) {
        struct kp_stepline line = {.step = i, .dur_ns = STEP_US * 1000, .count = 1};
        line.collectives_us = i < STEPS - 64 ? 0 : STEP_US / 1000 * milli;
        line.recorded = i >= STEPS - 3; /* whatever those say */
        if (line.recorded) line.collectives_us = STEP_US;
        kp_stepfile_add(&file, &line);
    }
    unlink(file.path); /* it begins a file, and takes none that is there */
    assert_int_equal(kp_stepfile_flush(&file, NOW), 0);
    return &file.head;
}

static void a_share_is_of_the_last_steps_that_were_not_recorded(void **state)
{
    struct kp_stephead head;
    uint64_t milli;
    (void)state;
    rank_write(3, 4, "job", 250);
    assert_int_equal(kp_otherranks_share(file.path, &head, &milli), 0);
    assert_int_equal(milli, 250);
    assert_int_equal(head.rank, 3);
    assert_int_equal(kp_otherranks_share("/tmp/none/there.steps", &head, &milli), -ENOENT);
    assert_int_equal(truncate(file.path, sizeof head + 31 * sizeof(struct kp_stepline) + 5), 0); /* the last is torn */
    assert_int_equal(kp_otherranks_share(file.path, &head, &milli), -ENODATA);
    assert_int_equal(truncate(file.path, 100), 0);
    assert_int_equal(kp_otherranks_share(file.path, &head, &milli), -EINVAL);
}

static void the_other_ranks_are_those_of_the_job_that_live(void **state)
{
    (void)state;
    rank_write(1, 4, "job", 500);
    rank_write(2, 4, "another", 600);
    rank_write(3, 8, "job", 700);
    const struct kp_stephead own = *rank_write(0, 4, "job", 100);
    assert_int_equal(kp_otherranks_shares(folder, &own, NOW + SECOND, shares), 1);
    assert_int_equal(shares[0], 500);
    assert_int_equal(kp_otherranks_shares(folder, &own, NOW + 61 * SECOND, shares), 0); /* nothing for a minute */
    rank_write(1, 4, "job", 500);
    assert_int_equal(kp_stepfile_end(&file, NOW), 0);
    assert_int_equal(kp_otherranks_shares(folder, &own, NOW + SECOND, shares), 0); /* it has ended */
}

static void of_many_ranks_some_are_looked_at(void **state)
{
    (void)state;
    for (uint32_t rank = 1; rank < 20; rank++) rank_write(rank, 20, "job", 500);
    const struct kp_stephead own = *rank_write(0, 20, "job", 100);
    assert_int_equal(kp_otherranks_shares(folder, &own, NOW, shares), KP_OTHERRANKS_MOST);
    for (int i = 0; i < KP_OTHERRANKS_MOST; i++) assert_int_equal(shares[i], 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_share_is_of_the_last_steps_that_were_not_recorded, setup, teardown),
        cmocka_unit_test_setup_teardown(the_other_ranks_are_those_of_the_job_that_live, setup, teardown),
        cmocka_unit_test_setup_teardown(of_many_ranks_some_are_looked_at, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

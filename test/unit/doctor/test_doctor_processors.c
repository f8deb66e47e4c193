// SPDX-License-Identifier: Apache-2.0
/* test_doctor_processors.c - limits of control groups and the load average, read from folders made here */
#include "export/answers/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test/support/support.h"

static char root[256];

/* A file below root with all folders above it. */
static void put(const char *path, const char *text)
{
    char whole[600];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0700);
    }
    FILE *const file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "%s/processors-XXXXXX", kp_test_tmpdir());
    return mkdtemp(root) ? 0 : -1;
}

static void an_empty_machine_has_a_processor_and_no_limit(void **state)
{
    const struct kp_processors found = kp_processors_read(root);
    (void)state;
    assert_true(found.count >= 1);
    assert_true(found.limit == 0 && found.load == 0);
}

static void the_load_is_of_the_last_minute(void **state)
{
    (void)state;
    put("/proc/loadavg", "11.69 6.73 5.87 4/312 15259\n");
    assert_float_equal(kp_processors_read(root).load, 11.69, 1e-9);
}

static void the_lowest_limit_of_nested_groups_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/job/task\n");
    put("/sys/fs/cgroup/job/task/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    assert_float_equal(kp_processors_read(root).limit, 1.5, 1e-9);
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    assert_float_equal(kp_processors_read(root).limit, 1.5, 1e-9);
    put("/sys/fs/cgroup/job/task/cpu.max", "50000 100000\n");
    assert_float_equal(kp_processors_read(root).limit, 0.5, 1e-9);
}

static void a_container_sees_its_group_as_the_root(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    assert_float_equal(kp_processors_read(root).limit, 4, 1e-9);
}

static void version_1_has_a_file_each(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "9:cpuset:/job\n4:cpuacct,cpu:/job\n1:name=systemd:/job\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_true(kp_processors_read(root).limit == 0);
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    assert_float_equal(kp_processors_read(root).limit, 2, 1e-9);
}

static void what_is_no_number_is_no_limit(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "nonsense\n0::/job\n");
    put("/proc/loadavg", "busy\n");
    put("/sys/fs/cgroup/job/cpu.max", "100000 0\n");
    assert_true(kp_processors_read(root).limit == 0 && kp_processors_read(root).load == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_empty_machine_has_a_processor_and_no_limit, setup),
        cmocka_unit_test_setup(the_load_is_of_the_last_minute, setup),
        cmocka_unit_test_setup(the_lowest_limit_of_nested_groups_counts, setup),
        cmocka_unit_test_setup(a_container_sees_its_group_as_the_root, setup),
        cmocka_unit_test_setup(version_1_has_a_file_each, setup),
        cmocka_unit_test_setup(what_is_no_number_is_no_limit, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

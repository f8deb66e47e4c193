// SPDX-License-Identifier: Apache-2.0
/* test_fskind.c - file systems by number: each row once, those of jobs by name; what is left free of one */
#include "collector/base/sys/kp_fskind.h"

#include <string.h>
#include <sys/statfs.h>

#include "test/support/support.h"

#define GB (UINT64_C(1) << 30)

static const uint32_t magics[] = {
#define KP_FSKIND(magic, name, place, copies) magic,
#include "collector/base/sys/fskind.def"
#undef KP_FSKIND
};
enum { ROWS = sizeof magics / sizeof *magics };

static void each_number_is_in_one_row(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROWS; i++) {
        assert_int_equal(kp_fskind_of(magics[i])->magic, magics[i]);
        for (unsigned j = 0; j < i; j++) assert_int_not_equal(magics[i], magics[j]);
    }
}

static void file_systems_of_jobs_have_their_names(void **state)
{
    static const struct {
        uint64_t type;
        const char *name;
        bool may_stand;
    } known[] = {{0xef53, "ext4", false},        {0x01021994, "tmpfs", false},
                 {0x794c7630, "overlay", false}, {0x6969, "nfs", true},
                 {0x0bd00bd0, "lustre", true},   {0x47504653, "gpfs", true},
                 {0x00c36400, "ceph", true},     {0x19830326, "beegfs", true},
                 {0xff534d42, "cifs", true},     {0x65735546, "fuse or virtiofs", true},
                 {0x01021997, "9p", true}};
    (void)state;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
        assert_string_equal(kp_fskind_of(known[i].type)->name, known[i].name);
        assert_int_equal(kp_fskind_may_stand(kp_fskind_of(known[i].type)), known[i].may_stand);
    }
}

static void a_number_with_a_sign_is_found(void **state)
{
    (void)state;
    assert_string_equal(kp_fskind_of((uint64_t)(int64_t)(int32_t)0x9123683e)->name, "btrfs");
    assert_string_equal(kp_fskind_of((uint64_t)(int64_t)(int32_t)0xff534d42)->name, "cifs");
}

static void a_number_that_is_not_known_is_other(void **state)
{
    const struct kp_fskind *kind = kp_fskind_of(12345);
    (void)state;
    assert_string_equal(kind->name, "other");
    assert_true(kind->copies);
    assert_string_equal(kp_fskind_what(kind), "a file system that kprof does not know");
}

static void the_kernel_numbers_them_so(void **state)
{
    struct statfs fs;
    (void)state;
    if (statfs("/proc/self", &fs) == 0) assert_string_equal(kp_fskind_of((uint64_t)fs.f_type)->name, "other");
    if (statfs("/dev/shm", &fs) == 0 && strcmp(kp_fskind_of((uint64_t)fs.f_type)->name, "tmpfs") != 0) skip();
    assert_string_equal(kp_fskind_what(kp_fskind_of(0x01021994)), "memory of this machine");
}

static void the_program_keeps_its_part_of_a_volume(void **state)
{
    (void)state;
    assert_true(kp_fskind_left_free(4 * GB, 4 * GB) == GB);
    assert_true(kp_fskind_left_free(100 * GB, 50 * GB) == 5 * GB);
    assert_true(kp_fskind_left_free(100 * GB, 4 * GB) == 2 * GB); /* half of what is free */
    assert_true(kp_fskind_left_free(24 << 20, 24 << 20) == 12 << 20);
    assert_true(kp_fskind_left_free(100 * GB, 0) == 0);
}

static void records_lie_in_a_large_tmpfs_alone(void **state)
{
    (void)state;
    assert_true(kp_fskind_holds_records(0x01021994, GB));
    assert_false(kp_fskind_holds_records(0x01021994, GB - 1));
    assert_false(kp_fskind_holds_records(0xef53, 100 * GB));
    assert_false(kp_fskind_holds_records(0x858458f6, 100 * GB)); /* ramfs has no limit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_in_one_row),          cmocka_unit_test(file_systems_of_jobs_have_their_names),
        cmocka_unit_test(a_number_with_a_sign_is_found),      cmocka_unit_test(a_number_that_is_not_known_is_other),
        cmocka_unit_test(the_kernel_numbers_them_so),         cmocka_unit_test(the_program_keeps_its_part_of_a_volume),
        cmocka_unit_test(records_lie_in_a_large_tmpfs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

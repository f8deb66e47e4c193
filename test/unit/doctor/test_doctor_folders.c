// SPDX-License-Identifier: Apache-2.0
/* test_doctor_folders.c - what is said of a folder, by its file system, its room and its use */
#include "export/answers/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

#define GB (UINT64_C(1) << 30)
enum { EXT4 = 0xef53, LUSTRE = 0x0bd00bd0, TMPFS = 0x01021994 };

static char line[6000];

static const char *line_of(enum kp_doctor_use use, uint64_t type, uint64_t bytes, uint64_t spare, const char *wrong)
{
    const struct kp_doctor_folder folder = {use, "/at", type, bytes, spare, 4096, wrong};
    return kp_doctor_folder_line(&folder, line, sizeof line);
}

#define DISK "a disk of this machine"
#define LEFT " MiB of them left free for the program"

static void a_disk_with_room_is_good(void **state)
{
    (void)state;
    assert_string_equal(line_of(KP_DOCTOR_SPOOL, EXT4, 100 * GB, 50 * GB, NULL), "ok");
    assert_string_equal(line, "spool: /at (ext4, " DISK "), 51200 MiB free, 5120" LEFT);
    assert_string_equal(line_of(KP_DOCTOR_TRACES, EXT4, 100 * GB, 50 * GB, NULL), "ok");
    assert_string_equal(line, "traces: /at (ext4, " DISK "), 51200 MiB free");
}

static void a_spool_that_does_not_fit_beside_the_program_is_told(void **state)
{
    (void)state;
    assert_string_equal(line_of(KP_DOCTOR_SPOOL, EXT4, 100 * GB, 6 * GB, NULL), "warn");
    assert_non_null(
        strstr(line, "6144 MiB free, 3072" LEFT ": 3072 MiB for a recording is less than KPROF_MAX_MB=4096"));
}

static void a_shared_file_system_is_for_traces(void **state)
{
    (void)state;
    assert_string_equal(line_of(KP_DOCTOR_TRACES, LUSTRE, 1000 * GB, 500 * GB, NULL), "ok");
    assert_string_equal(line_of(KP_DOCTOR_SPOOL, LUSTRE, 1000 * GB, 500 * GB, NULL), "warn");
    assert_non_null(strstr(line, "/at (lustre, shared by machines)"));
    assert_non_null(strstr(line, "KPROF_SPOOL_DIR on " DISK));
}

static void memory_is_for_records_where_there_is_enough(void **state)
{
    (void)state;
    assert_string_equal(line_of(KP_DOCTOR_RECORDS, TMPFS, 8 * GB, 8 * GB, NULL), "ok");
    assert_non_null(strstr(line, "SIGKILL loses none"));
    assert_string_equal(line_of(KP_DOCTOR_RECORDS, TMPFS, 64 << 20, 64 << 20, NULL), "ok");
    assert_non_null(strstr(line, "64 MiB free, no tmpfs with 1024 MiB free: records lie in memory that ends with the "
                                 "process, and SIGKILL loses those of the last 100 ms"));
    assert_string_equal(line_of(KP_DOCTOR_RECORDS, EXT4, 8 * GB, 8 * GB, "it is not there"), "ok");
    assert_non_null(strstr(line, ": it is not there: records lie in memory"));
    assert_string_equal(line_of(KP_DOCTOR_TRACES, TMPFS, 8 * GB, 8 * GB, NULL), "warn");
    assert_string_equal(line_of(KP_DOCTOR_SPOOL, TMPFS, 8 * GB, 8 * GB, NULL), "warn");
}

static void a_folder_that_cannot_be_written_fails(void **state)
{
    (void)state;
    assert_string_equal(line_of(KP_DOCTOR_SPOOL, EXT4, GB, GB, "no file can be made there: no"), "fail");
    assert_non_null(strstr(line, "choose another folder (KPROF_SPOOL_DIR)"));
    assert_string_equal(line_of(KP_DOCTOR_TRACES, EXT4, GB, GB, "no"), "fail");
    assert_string_equal(line_of(KP_DOCTOR_TEMPORARY, EXT4, GB, GB, "no"), "warn");
    assert_non_null(strstr(line, "temporary files: /at"));
}

static int told;
static char levels[8];
static void hear(const char *level, const char *format, ...)
{
    (void)format;
    levels[told++] = level[0];
}

static void each_folder_of_the_settings_has_a_line(void **state)
{
    char place[300], deep[400], found[400];
    struct kp_config config = {.dir = deep, .max_mb = 1};
    (void)state;
    snprintf(place, sizeof place, "%s/folders-XXXXXX", kp_test_tmpdir());
    assert_non_null(mkdtemp(place));
    snprintf(deep, sizeof deep, "%s/not/yet", place);
    kp_doctor_folders(&config, hear);
    assert_int_equal(told, 4);
    assert_true(levels[0] != 'f' && levels[1] != 'f');
    kp_doctor_existing(deep, found, sizeof found);
    assert_string_equal(found, place);
    config.spool_dir = "/proc/none";
    told = 0;
    kp_doctor_folders(&config, hear);
    assert_int_equal(levels[1], 'f');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_with_room_is_good),
        cmocka_unit_test(a_spool_that_does_not_fit_beside_the_program_is_told),
        cmocka_unit_test(a_shared_file_system_is_for_traces),
        cmocka_unit_test(memory_is_for_records_where_there_is_enough),
        cmocka_unit_test(a_folder_that_cannot_be_written_fails),
        cmocka_unit_test(each_folder_of_the_settings_has_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

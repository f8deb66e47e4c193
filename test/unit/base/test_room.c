// SPDX-License-Identifier: Apache-2.0
/* test_room.c - what is taken of a volume, and what is left free in it */
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "collector/base/sys/kp_room.h"
#include "test/support/support.h"

static int file_open(void)
{
    const int fd = open(kp_test_tmpdir(), O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

static void nothing_is_left_free_unless_it_is_asked_for(void **state)
{
    struct kp_room room = {0};
    (void)state;
    const int fd = file_open();
    assert_true(kp_room_take(&room, fd, UINT64_MAX));
    close(fd);
}

/* Other processes write to the volume, too: half of what is free is a bound that holds beside them. */
static void what_is_left_free_is_not_given(void **state)
{
    struct statvfs st;
    (void)state;
    const int fd = file_open();
    assert_int_equal(fstatvfs(fd, &st), 0);
    const uint64_t spare = (uint64_t)st.f_bavail * st.f_frsize;
    struct kp_room room = {.left_free = spare / 2};
    assert_true(kp_room_take(&room, fd, 65536));
    assert_true(room.usable > 0 && room.usable <= 16u << 20);
    assert_false(kp_room_take(&room, fd, spare));
    room = (struct kp_room){.left_free = spare * 2};
    assert_false(kp_room_take(&room, fd, 1));
    close(fd);
}

static void the_share_that_is_left_free_is_of_what_there_is(void **state)
{
    struct statvfs st;
    (void)state;
    const int fd = file_open();
    assert_int_equal(fstatvfs(fd, &st), 0);
    const uint64_t left = kp_room_left_free_of(kp_test_tmpdir());
    assert_true(left > 0 && left <= (uint64_t)st.f_bavail * st.f_frsize);
    assert_int_equal(kp_room_left_free_of("/nowhere"), 0);
    close(fd);
}

static void a_volume_that_cannot_be_looked_at_gives_all(void **state)
{
    struct kp_room room = {.left_free = 1};
    (void)state;
    assert_true(kp_room_take(&room, -1, 1u << 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_free_unless_it_is_asked_for),
        cmocka_unit_test(what_is_left_free_is_not_given),
        cmocka_unit_test(the_share_that_is_left_free_is_of_what_there_is),
        cmocka_unit_test(a_volume_that_cannot_be_looked_at_gives_all),
    };
    return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}

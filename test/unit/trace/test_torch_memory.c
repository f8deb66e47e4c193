// SPDX-License-Identifier: Apache-2.0
/* test_torch_memory.c - the table of the CPU's blocks against a plain model */
#include "export/write/trace/torch_memory.h"

#include <stdlib.h>

#include "test/support/support.h"

enum { PLACES = 5000, MOVES = 200000 };

static void blocks_come_and_go_as_in_a_plain_array(void **state)
{
    static int64_t model[PLACES];
    int64_t sum = 0, total = 0;
    struct kp_blocks *b = kp_blocks_open();
    (void)state;
    assert_non_null(b);
    srand(7);
    for (int i = 0; i < MOVES; i++) {
        int at = rand() % PLACES, is_take = rand() % 2;
        uint64_t address = 0x7f0000000000u + (uint64_t)at * 64; /* as an allocator deals them: close together */
        if (is_take && !model[at]) {
            model[at] = 1 + rand() % 100000;
            sum += model[at];
            assert_int_equal(kp_blocks_take(b, address, model[at], &total), 0);
        } else if (!is_take) {
            assert_int_equal(kp_blocks_give(b, address, &total), model[at]);
            sum -= model[at];
            model[at] = 0;
        }
        if (model[at] || sum) assert_int_equal(total, sum);
    }
    kp_blocks_close(b);
}

static void a_block_nobody_saw_taken_is_nobodys(void **state)
{
    int64_t total = 77;
    struct kp_blocks *b = kp_blocks_open();
    (void)state;
    assert_int_equal(kp_blocks_give(b, 0x1000, &total), 0);
    assert_int_equal(total, 77);
    kp_blocks_close(b);
}

static void numbers_of_a_damaged_file_break_nothing(void **state)
{
    int64_t total = 0;
    struct kp_blocks *b = kp_blocks_open();
    (void)state;
    for (int i = 0; i < 100000; i++) assert_int_equal(kp_blocks_take(b, 0, 5, &total), 0);
    assert_int_equal(total, 0);
    assert_int_equal(kp_blocks_take(b, 16, INT64_MAX, &total), 0);
    assert_int_equal(kp_blocks_take(b, 32, INT64_MIN, &total), 0);
    assert_int_equal(total, -1);
    assert_true(kp_blocks_give(b, 32, &total) == INT64_MIN);
    assert_true(total == INT64_MAX);
    kp_blocks_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go_as_in_a_plain_array),
        cmocka_unit_test(a_block_nobody_saw_taken_is_nobodys),
        cmocka_unit_test(numbers_of_a_damaged_file_break_nothing),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}

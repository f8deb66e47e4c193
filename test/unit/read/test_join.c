// SPDX-License-Identifier: Apache-2.0
/* test_join.c - inputs wait for the end of their op */
#include "collector/read/join.h"

#include "test/support/support.h"

static uint64_t room[2000][2]; /* kp_rec_inputs without data */
#define REC(i) ((struct kp_rec_inputs *)(void *)room[i])

static void push(struct kp_join *j, int i, uint64_t start)
{
    REC(i)->start = start;
    assert_int_equal(kp_join_push(j, REC(i)), 0);
}

static void nested_ops_find_their_own_inputs(void **state)
{
    struct kp_join j = {0};
    (void)state;
    push(&j, 0, 10), push(&j, 1, 11), push(&j, 2, 12);
    assert_ptr_equal(kp_join_take(&j, 12), REC(2));
    assert_ptr_equal(kp_join_take(&j, 11), REC(1));
    push(&j, 3, 20);
    assert_ptr_equal(kp_join_take(&j, 20), REC(3));
    assert_ptr_equal(kp_join_take(&j, 10), REC(0));
    assert_null(kp_join_take(&j, 10));
    kp_join_fini(&j);
}

static void crossing_ops_find_theirs_too(void **state)
{
    struct kp_join j = {0};
    (void)state;
    push(&j, 0, 10), push(&j, 1, 11);
    assert_ptr_equal(kp_join_take(&j, 10), REC(0));
    assert_null(kp_join_take(&j, 12));
    assert_ptr_equal(kp_join_take(&j, 11), REC(1));
    kp_join_fini(&j);
}

static void inputs_nobody_comes_for_do_not_pile_up(void **state)
{
    struct kp_join j = {0};
    (void)state;
    for (int i = 0; i < 2000; i++) push(&j, i, (uint64_t)i);
    assert_true(j.n <= 512);
    assert_ptr_equal(kp_join_take(&j, 1999), REC(1999));
    assert_ptr_equal(kp_join_take(&j, 1900), REC(1900));
    assert_null(kp_join_take(&j, 3));
    kp_join_fini(&j);
}

static void nothing_pushed_is_nothing_found(void **state)
{
    struct kp_join j = {0};
    (void)state;
    assert_null(kp_join_take(&j, 0));
    kp_join_fini(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_ops_find_their_own_inputs),
        cmocka_unit_test(crossing_ops_find_theirs_too),
        cmocka_unit_test(inputs_nobody_comes_for_do_not_pile_up),
        cmocka_unit_test(nothing_pushed_is_nothing_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

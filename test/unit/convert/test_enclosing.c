// SPDX-License-Identifier: Apache-2.0
/* test_enclosing.c - the slice around an event, where slices nest and where they do not */
#include "export/answers/convert/convert.h"

#include "test/support/support.h"

static int64_t slice_add(struct kp_enclosing *n, size_t thread, int64_t start, int64_t end, int64_t id)
{
    const int64_t around = kp_enclosing_slice(n, thread, start, end);
    kp_enclosing_open(n, thread, start, end, id);
    return around;
}

static void test_the_innermost_is_found(void **state)
{
    struct kp_enclosing n = {0};
    (void)state;
    assert_int_equal(slice_add(&n, 1, 0, 100, 1), 0);
    assert_int_equal(slice_add(&n, 1, 0, 50, 2), 1);
    assert_int_equal(slice_add(&n, 1, 10, 20, 3), 2);
    assert_int_equal(slice_add(&n, 1, 20, 30, 4), 2); /* 3 ends where it begins */
    assert_int_equal(kp_enclosing_slice(&n, 1, 25, 25), 4);
    assert_int_equal(slice_add(&n, 1, 50, 100, 5), 1);
    assert_int_equal(slice_add(&n, 1, 100, 110, 6), 0);
    kp_enclosing_free(&n);
}

static void test_threads_are_apart(void **state)
{
    struct kp_enclosing n = {0};
    (void)state;
    slice_add(&n, 500, 0, 100, 1);
    assert_int_equal(slice_add(&n, 3, 10, 20, 2), 0);
    assert_int_equal(slice_add(&n, 500, 10, 20, 3), 1);
    kp_enclosing_free(&n);
}

static void test_overlaps_are_no_parents(void **state)
{
    struct kp_enclosing n = {0};
    (void)state;
    slice_add(&n, 0, 0, 100, 1);
    assert_int_equal(slice_add(&n, 0, 10, 20, 2), 1);
    assert_int_equal(slice_add(&n, 0, 15, 40, 3), 1); /* ends after 2 */
    assert_int_equal(slice_add(&n, 0, 16, 18, 4), 3);
    assert_int_equal(slice_add(&n, 0, 90, 120, 5), 0);
    kp_enclosing_free(&n);
}

/* A slice without length holds what is at its time only. */
static void test_slices_without_length(void **state)
{
    struct kp_enclosing n = {0};
    (void)state;
    slice_add(&n, 0, 10, 10, 1);
    assert_int_equal(kp_enclosing_slice(&n, 0, 10, 10), 1);
    assert_int_equal(kp_enclosing_slice(&n, 0, 11, 11), 0);
    assert_int_equal(n.threads[0].count, 0);
    kp_enclosing_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_innermost_is_found),
        cmocka_unit_test(test_threads_are_apart),
        cmocka_unit_test(test_overlaps_are_no_parents),
        cmocka_unit_test(test_slices_without_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

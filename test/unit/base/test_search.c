// SPDX-License-Identifier: Apache-2.0
/* test_search.c - the lower bound is what a walk from the first item finds */
#include "collector/base/kp_search.h"

#include <stdlib.h>

#include "test/support/support.h"

static bool is_below(const void *item, const void *key) { return *(const uint32_t *)item < *(const uint32_t *)key; }

static void the_bound_is_where_a_walk_stops(void **state)
{
    uint32_t items[200];
    (void)state;
    srand(9);
    for (unsigned round = 0; round < 2000; round++) {
        const size_t n = (size_t)rand() % 200;
        for (size_t i = 0; i < n; i++) items[i] = (i ? items[i - 1] : 0) + (uint32_t)rand() % 3;
        for (uint32_t key = 0; key < 12; key++) {
            const uint32_t wanted = key < 2 ? key * UINT32_MAX : (uint32_t)rand() % 220;
            size_t first = 0;
            while (first < n && items[first] < wanted) first++;
            assert_int_equal(kp_search(items, sizeof *items, n, is_below, &wanted), first);
        }
    }
}

static void no_array_is_needed_for_no_items(void **state)
{
    const uint32_t key = 3;
    (void)state;
    assert_int_equal(kp_search(NULL, sizeof key, 0, is_below, &key), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_where_a_walk_stops),
        cmocka_unit_test(no_array_is_needed_for_no_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_idpages.c - a number for each id: 0 at first, kept where it is, and NULL without memory */
#include "collector/base/sys/kp_fail.h"
#include "export/write/heap/idpages.h"

#include <stdio.h>

#include "test/support/support.h"

static void a_number_stays(void **state)
{
    static const uint32_t ids[] = {0, 1, 65535, 65536, 65537, 5000000, UINT32_MAX - 1, UINT32_MAX};
    enum { N = sizeof ids / sizeof *ids };
    struct kp_idpages numbers = {0};
    uint32_t *first[N];
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        first[i] = kp_idpages_at(&numbers, ids[i]);
        assert_non_null(first[i]);
        assert_int_equal(*first[i], 0);
        *first[i] = i + 1;
    }
    for (uint32_t i = 0; i < N; i++) {
        assert_ptr_equal(kp_idpages_at(&numbers, ids[i]), first[i]);
        assert_int_equal(*first[i], i + 1);
    }
    assert_int_equal(*kp_idpages_at(&numbers, 2), 0);
    kp_idpages_fini(&numbers);
    assert_int_equal(*kp_idpages_at(&numbers, 1), 0);
    kp_idpages_fini(&numbers);
}

static void without_memory_there_is_no_number(void **state)
{
    struct kp_idpages numbers = {0};
    (void)state;
    for (int fails = 1; fails <= 2; fails++) {
        char what[32];
        snprintf(what, sizeof what, "mmap:%d:12", fails);
        kp_fail_set(what);
        assert_null(kp_idpages_at(&numbers, 7));
        kp_fail_set(NULL);
        kp_idpages_fini(&numbers);
    }
    assert_non_null(kp_idpages_at(&numbers, 7));
    kp_idpages_fini(&numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_stays),
        cmocka_unit_test(without_memory_there_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_joblist.c - the job that the user means, of those that share a folder */
#include "export/answers/jobs/joblist.h"

#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

static struct kp_joblist three(void)
{
    static const char *const ids[] = {"sweep-1", "sweep-12", "", "sweep-1", "n1-29500"};
    struct kp_joblist list = {.count = 0};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) kp_joblist_add(&list, ids[i]);
    return list;
}

static void of_several_jobs_one_is_named_by_its_id_or_its_first_letters(void **state)
{
    struct kp_joblist list = three();
    (void)state;
    assert_int_equal(list.count, 4);
    assert_int_equal(list.rows[0].ranks, 2);
    assert_string_equal(kp_joblist_pick(&list, "d", "n1"), "n1-29500");
    assert_string_equal(kp_joblist_pick(&list, "d", "sweep-12"), "sweep-12");
    assert_string_equal(kp_joblist_pick(&list, "d", "sweep-1"), "sweep-1"); /* and the begin of another one */
    assert_string_equal(kp_joblist_pick(&list, "d", "none"), "");
    kp_joblist_free(&list);
}

static void what_names_none_or_several_is_refused(void **state)
{
    struct kp_joblist list = three();
    (void)state;
    assert_null(kp_joblist_pick(&list, "d", NULL));
    assert_null(kp_joblist_pick(&list, "d", "sweep"));
    assert_null(kp_joblist_pick(&list, "d", "other"));
    kp_joblist_free(&list);
    assert_null(kp_joblist_pick(&list, "d", "sweep"));
}

static void the_only_one_needs_no_name(void **state)
{
    struct kp_joblist list = {.count = 0};
    (void)state;
    assert_string_equal(kp_joblist_pick(&list, "d", NULL), "");
    kp_joblist_add(&list, "a");
    kp_joblist_add(&list, "a");
    assert_string_equal(kp_joblist_pick(&list, "d", NULL), "a");
    kp_joblist_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_jobs_one_is_named_by_its_id_or_its_first_letters),
        cmocka_unit_test(what_names_none_or_several_is_refused),
        cmocka_unit_test(the_only_one_needs_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

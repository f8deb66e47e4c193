// SPDX-License-Identifier: Apache-2.0
/* test_viewrows.c - viewrows.c: what is shown, in which order, and where the user is */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/answers/view/viewparts.h"

/* a (a1 (a1x), a2), b, c; values 1, (5, 9), 7, 3 */
static void rows_make(struct kp_view_tab *tab)
{
    *tab = (struct kp_view_tab){.column_count = 1};
    const int32_t a = kp_view_add(tab, KP_VIEW_NONE, "a");
    const int32_t a1 = kp_view_add(tab, a, "a1 Convolution");
    kp_view_add(tab, a1, "a1x");
    kp_view_add(tab, a, "a2");
    kp_view_add(tab, KP_VIEW_NONE, "b\x1b[31m");
    kp_view_add(tab, KP_VIEW_NONE, "c");
    static const double values[] = {1, 5, 5, 9, 7, 3};
    for (size_t i = 0; i < tab->count; i++) tab->rows[i].values[0] = values[i];
    kp_view_settle(tab);
}

static void assert_shown(const struct kp_view_tab *tab, const char *expected)
{
    char all[200] = "";
    for (size_t i = 0; i < tab->shown_count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "," : "", tab->rows[tab->shown[i]].name);
    assert_string_equal(all, expected);
}

static void rows_come_by_value_and_below_their_parents(void **state)
{
    struct kp_view_tab tab;
    (void)state;
    rows_make(&tab);
    assert_shown(&tab, "b\\x1b[31m,c,a");
    kp_view_open_all(&tab, true);
    assert_shown(&tab, "b\\x1b[31m,c,a,a2,a1 Convolution,a1x");
    kp_view_sort(&tab, KP_VIEW_NONE);
    assert_shown(&tab, "a,a1 Convolution,a1x,a2,b\\x1b[31m,c");
    kp_view_open_all(&tab, false);
    assert_shown(&tab, "a,b\\x1b[31m,c");
    kp_view_tab_fini(&tab);
}

static void the_chosen_row_stays_chosen_or_gives_way_to_the_one_around(void **state)
{
    struct kp_view_tab tab;
    (void)state;
    rows_make(&tab);
    kp_view_open_all(&tab, true);
    kp_view_go(&tab, 5, 3);
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a1x");
    assert_int_equal(tab.top, 3);
    kp_view_sort(&tab, KP_VIEW_NONE);
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a1x");
    kp_view_open(&tab, false); /* a leaf: to the row around */
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a1 Convolution");
    kp_view_open(&tab, false); /* folds it */
    assert_shown(&tab, "a,a1 Convolution,a2,b\\x1b[31m,c");
    kp_view_open(&tab, true);
    assert_shown(&tab, "a,a1 Convolution,a1x,a2,b\\x1b[31m,c");
    kp_view_go(&tab, -100, 3);
    assert_int_equal(tab.at + tab.top, 0);
    kp_view_go(&tab, 100, 3);
    assert_int_equal(tab.at, 5);
    assert_int_equal(tab.top, 3);
    kp_view_go(&tab, 0, 10); /* a taller screen leaves no gap */
    assert_int_equal(tab.top, 0);
    kp_view_tab_fini(&tab);
}

static void a_search_unfolds_what_it_finds_and_goes_round(void **state)
{
    struct kp_view_tab tab;
    (void)state;
    rows_make(&tab);
    assert_true(kp_view_find(&tab, "CONV", 1, true));
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a1 Convolution");
    assert_shown(&tab, "b\\x1b[31m,c,a,a2,a1 Convolution");
    assert_true(kp_view_find(&tab, "a", 1, false));
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a1x");
    assert_true(kp_view_find(&tab, "a", 1, false));
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a");
    assert_true(kp_view_find(&tab, "a", -1, false));
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a1x");
    assert_false(kp_view_find(&tab, "nothing", 1, true));
    assert_string_equal(tab.rows[tab.shown[tab.at]].name, "a1x");
    kp_view_tab_fini(&tab);
}

static void an_empty_tab_takes_every_key(void **state)
{
    struct kp_view_tab tab = {.column_count = 1};
    (void)state;
    kp_view_settle(&tab);
    kp_view_go(&tab, 1, 10);
    kp_view_open(&tab, true);
    kp_view_open_all(&tab, true);
    kp_view_sort(&tab, 0);
    assert_false(kp_view_find(&tab, "a", 1, true));
    assert_int_equal(tab.shown_count + tab.at + tab.top, 0);
    kp_view_tab_fini(&tab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_by_value_and_below_their_parents),
        cmocka_unit_test(the_chosen_row_stays_chosen_or_gives_way_to_the_one_around),
        cmocka_unit_test(a_search_unfolds_what_it_finds_and_goes_round),
        cmocka_unit_test(an_empty_tab_takes_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

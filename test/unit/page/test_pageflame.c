// SPDX-License-Identifier: Apache-2.0
/* test_pageflame.c - the call paths of a page: each moment has its place, and all add up to the wall time */
#include "test/unit/page/little_page.h"

/* The text of a place with those around it, from the outermost on. */
static const char *path_of(const struct kp_page *page, uint32_t place)
{
    static char path[400];
    char before[400] = "";
    for (; place; place = column_at(page, "placeParent", place)) {
        snprintf(path, sizeof path, "%s%s%s", page_text(page, column_at(page, "placeName", place)), *before ? ";" : "",
                 before);
        snprintf(before, sizeof before, "%s", path);
    }
    return path;
}

static void moments_have_their_places_and_add_up(void **state)
{
    struct little *t = *state;
    trace_of(t, "call 'train.py(1): main' 0 100; op aten::mul 10 20; op aten::add 50 30");
    struct kp_page page = page_make(t);
    kp_page_flame_put(&page);
    uint64_t sum = 0, mul = 0, at = 0, mul_at = 0;
    for (size_t i = 0; i < column_count(&page, "cpuPlace"); i++) {
        const char *path = path_of(&page, column_at(&page, "cpuPlace", i));
        at += wide_at(&page, "cpuAfter", i);
        sum += wide_at(&page, "cpuValue", i);
        if (!strstr(path, "aten::mul")) continue;
        assert_non_null(strstr(path, "train.py"));
        mul += wide_at(&page, "cpuValue", i);
        mul_at = at;
    }
    assert_int_equal(sum, 100000);
    assert_int_equal(mul, 20000);
    assert_int_equal(mul_at, 10000);
    assert_true(page.has_frames);
    assert_null(column_find(&page, "gpuPlace"));
    assert_null(column_find(&page, "bytesPlace"));
    assert_string_equal(page_text(&page, column_at(&page, "placeName", 0)), "all");
    page_fini(&page);
}

/* aten::mul twice without a pause is one moment. */
static void moments_of_one_place_that_touch_are_joined(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mul 0 10; op aten::mul 10 10; op aten::mul 30 5");
    struct kp_page page = page_make(t);
    kp_page_flame_put(&page);
    size_t moments = 0;
    for (size_t i = 0; i < column_count(&page, "cpuPlace"); i++) {
        if (!strstr(path_of(&page, column_at(&page, "cpuPlace", i)), "aten::mul")) continue;
        assert_int_equal(wide_at(&page, "cpuValue", i), moments++ ? 5000 : 20000);
    }
    assert_int_equal(moments, 2);
    assert_false(page.has_frames);
    page_fini(&page);
}

static void gpu_and_memory_have_columns_of_their_own(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mul 0 30 id=1; kernel mul_kernel@7 40 15 id=1");
    t->used +=
        (size_t)snprintf(t->events + t->used, sizeof t->events - t->used,
                         ",{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,"
                         "\"ts\":5,\"args\":{\"Device Type\":0,\"Device Id\":-1,\"Addr\":64,\"Bytes\":256}}");
    struct kp_page page = page_make(t);
    kp_page_flame_put(&page);
    assert_int_equal(column_count(&page, "gpuPlace"), 1);
    assert_int_equal(wide_at(&page, "gpuValue", 0), 15000);
    assert_non_null(strstr(path_of(&page, column_at(&page, "gpuPlace", 0)), "aten::mul"));
    assert_int_equal(column_count(&page, "bytesPlace"), 1);
    assert_int_equal(wide_at(&page, "bytesValue", 0), 256);
    assert_int_equal(wide_at(&page, "bytesAfter", 0), 5000);
    page_fini(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(moments_have_their_places_and_add_up, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(moments_of_one_place_that_touch_are_joined, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(gpu_and_memory_have_columns_of_their_own, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

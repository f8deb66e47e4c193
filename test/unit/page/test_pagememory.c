// SPDX-License-Identifier: Apache-2.0
/* test_pagememory.c - blocks of memory in a page: when, how large, of which op */
#include "test/unit/page/little_page.h"

static void memory(struct little *t, int ts, int address, int bytes)
{
    t->used +=
        (size_t)snprintf(t->events + t->used, sizeof t->events - t->used,
                         ",{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,"
                         "\"ts\":%d,\"args\":{\"Device Type\":0,\"Device Id\":-1,\"Addr\":%d,\"Bytes\":%d}}",
                         ts, address, bytes);
    assert_true(t->used < sizeof t->events);
}

static char *head_of(struct kp_page *page, struct little *t)
{
    char *head = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&head, &bytes);
    kp_page_memory_put(page, &t->tree, KP_JSONOUT(f));
    fclose(f);
    return head;
}

static void blocks_have_their_life_bytes_and_op(void **state)
{
    struct little *t = *state;
    op(t, "aten::mul", 0, 30);
    memory(t, 5, 64, 256);
    memory(t, 20, 128, 512);
    memory(t, 25, 64, -256);
    memory(t, 90, 192, 1024);
    struct kp_page page = page_make(t);
    char *head = head_of(&page, t);
    assert_int_equal(column_count(&page, "blockOp"), 3);
    assert_int_equal(wide_at(&page, "blockAfter", 0), 5000);
    assert_int_equal(wide_at(&page, "blockAfter", 1), 15000); /* since the one before */
    assert_int_equal(wide_at(&page, "blockAfter", 2), 70000);
    assert_int_equal(wide_at(&page, "blockLife", 0), 20000);
    assert_true(wide_at(&page, "blockLife", 1) == UINT64_MAX); /* it stays */
    assert_int_equal(wide_at(&page, "blockBytes", 0), 256);
    assert_int_equal(wide_at(&page, "blockBytes", 1), 512);
    assert_string_equal(page_text(&page, column_at(&page, "blockOp", 0)), "aten::mul");
    assert_string_equal(page_text(&page, column_at(&page, "blockOp", 2)), "(outside any op)");
    assert_int_equal(column_count(&page, "blockCategory"), 3);
    assert_non_null(strstr(head, "\"devices\":[[\"CPU\",0,3,"));
    free(head);
    page_fini(&page);
}

static void a_block_is_of_the_outermost_op(void **state)
{
    struct little *t = *state;
    op(t, "aten::conv2d", 0, 30);
    op(t, "aten::empty", 4, 6);
    memory(t, 5, 64, 256);
    struct kp_page page = page_make(t);
    free(head_of(&page, t));
    assert_string_equal(page_text(&page, column_at(&page, "blockOp", 0)), "aten::conv2d");
    page_fini(&page);
}

/* Only its end is in the trace. */
static void a_block_of_before_begins_with_the_page(void **state)
{
    struct little *t = *state;
    op(t, "aten::mul", 0, 30);
    memory(t, 25, 64, -256);
    struct kp_page page = page_make(t);
    char *head = head_of(&page, t);
    assert_int_equal(column_count(&page, "blockOp"), 1);
    assert_int_equal(wide_at(&page, "blockAfter", 0), 0);
    assert_int_equal(wide_at(&page, "blockLife", 0), 25000);
    assert_int_equal(wide_at(&page, "blockBytes", 0), 256);
    assert_string_equal(page_text(&page, column_at(&page, "blockOp", 0)), "(before recording)");
    free(head);
    page_fini(&page);
}

static void without_memory_the_page_has_none(void **state)
{
    struct little *t = *state;
    op(t, "aten::mul", 0, 30);
    struct kp_page page = page_make(t);
    char *head = head_of(&page, t);
    assert_string_equal(head, "");
    assert_null(column_find(&page, "blockOp"));
    free(head);
    page_fini(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_have_their_life_bytes_and_op, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_block_is_of_the_outermost_op, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_block_of_before_begins_with_the_page, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(without_memory_the_page_has_none, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_pagelinks.c - what an event of a page belongs to: launches, forward ops, modules */
#include "test/unit/page/little_page.h"

enum { NODES_MOST = 16 };

/* All nodes are shown, the last one first. */
static void backwards(const struct kp_page *page, uint32_t *positions, uint32_t *order)
{
    const uint32_t count = (uint32_t)page->tree->count;
    assert_true(count <= NODES_MOST);
    for (uint32_t i = 0; i < count; i++) {
        positions[i] = count - 1 - i;
        order[count - 1 - i] = i;
    }
}

static uint32_t node_named(const struct kp_page *page, const char *name)
{
    for (uint32_t i = 0; i < page->tree->count; i++)
        if (strcmp(kp_kineto_text(page->tree->trace, page->tree->nodes[i].name), name) == 0) return i;
    fail_msg("no node %s", name);
    return 0;
}

static void a_kernel_leads_to_the_call_that_launched_it(void **state)
{
    struct little *t = *state;
    uint32_t positions[NODES_MOST], order[NODES_MOST];
    trace_of(t, "op aten::mul 0 30 id=1; cuda cudaLaunchKernel 5 10 id=1 corr=9; "
                "kernel mul_kernel@7 40 15 id=1 corr=9; kernel lost_kernel@7 60 15 corr=10");
    struct kp_page page = page_make(t);
    backwards(&page, positions, order);
    kp_page_links_put(&page, positions);
    assert_int_equal(column_count(&page, "link"), 4);
    assert_int_equal(column_at(&page, "link", positions[node_named(&page, "mul_kernel")]),
                     positions[node_named(&page, "cudaLaunchKernel")] + 1);
    assert_int_equal(column_at(&page, "link", positions[node_named(&page, "lost_kernel")]), 0);
    assert_int_equal(column_at(&page, "link", positions[node_named(&page, "aten::mul")]), 0);
    page_fini(&page);
}

static void a_backward_op_leads_to_its_forward_op(void **state)
{
    struct little *t = *state;
    uint32_t positions[NODES_MOST], order[NODES_MOST];
    trace_of(t, "op aten::mul 0 30 seq=4; op MulBackward0@2 50 30 seq=4 fwd=1");
    struct kp_page page = page_make(t);
    backwards(&page, positions, order);
    kp_page_links_put(&page, positions);
    assert_int_equal(column_at(&page, "link", positions[node_named(&page, "MulBackward0")]),
                     positions[node_named(&page, "aten::mul")] + 1);
    page_fini(&page);
}

/* An event that the page leaves out has no number, and none leads to it. */
static void what_is_not_shown_is_not_linked(void **state)
{
    struct little *t = *state;
    uint32_t positions[NODES_MOST], order[NODES_MOST];
    trace_of(t, "cuda cudaLaunchKernel 5 10 corr=9; kernel mul_kernel@7 40 15 corr=9");
    struct kp_page page = page_make(t);
    backwards(&page, positions, order);
    positions[node_named(&page, "cudaLaunchKernel")] = UINT32_MAX;
    positions[node_named(&page, "mul_kernel")] = 0;
    kp_page_links_put(&page, positions);
    assert_int_equal(column_count(&page, "link"), 1);
    assert_int_equal(column_at(&page, "link", 0), 0);
    page_fini(&page);
}

static void an_event_has_its_modules(void **state)
{
    struct little *t = *state;
    uint32_t positions[NODES_MOST], order[NODES_MOST];
    trace_of(t, "op aten::mul 0 30 seq=4 stack='nn.Module: Linear_0;train.py(3): f;nn.Module: Net_0'; "
                "op MulBackward0@2 50 30 seq=4 fwd=1; op aten::add 100 30");
    struct kp_page page = page_make(t);
    backwards(&page, positions, order);
    kp_page_modules_put(&page, order, page.tree->count);
    const uint32_t forward = column_at(&page, "module", positions[node_named(&page, "aten::mul")]);
    assert_string_equal(page_text(&page, forward / 2 - 1), "Net_0.Linear_0");
    assert_int_equal(forward % 2, 0);
    assert_int_equal(column_at(&page, "module", positions[node_named(&page, "MulBackward0")]), forward + 1);
    assert_int_equal(column_at(&page, "module", positions[node_named(&page, "aten::add")]), 0);
    page_fini(&page);
}

static void without_modules_there_is_no_column(void **state)
{
    struct little *t = *state;
    uint32_t positions[NODES_MOST], order[NODES_MOST];
    op(t, "aten::mul", 0, 30);
    struct kp_page page = page_make(t);
    backwards(&page, positions, order);
    kp_page_modules_put(&page, order, page.tree->count);
    assert_null(column_find(&page, "module"));
    page_fini(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kernel_leads_to_the_call_that_launched_it, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_backward_op_leads_to_its_forward_op, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(what_is_not_shown_is_not_linked, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(an_event_has_its_modules, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(without_modules_there_is_no_column, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

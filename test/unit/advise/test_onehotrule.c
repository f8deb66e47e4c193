// SPDX-License-Identifier: Apache-2.0
/* test_onehotrule.c - one_hot that is multiplied with a weight */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000 };

/* Each step: one_hot of 100 us, its conversion of 100, an op of 200, 100 us of backward of that. */
static struct kp_advice hot_advise(struct little *t, const char *hot, const char *product)
{
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        char text[64];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, STEP_US, "");
        op(t, hot, at, 100);
        op(t, "aten::to", at + 100, 100);
        snprintf(text, sizeof text, "\"Sequence number\":%d,\"Fwd thread id\":0", step);
        event(t, "cpu_op", product, 1, at + 200, 200, text);
        op(t, "aten::relu", at + 400, 400);
        op(t, "autograd::engine::evaluate_function: MmBackward0", at + 800, 110);
        snprintf(text, sizeof text, "\"Sequence number\":%d,\"Fwd thread id\":1", step);
        event(t, "cpu_op", "MmBackward0", 1, at + 800, 100, text);
    }
    return advise(t);
}

static const struct kp_finding *product_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "one-hot-product") == 0) return &a->findings[i];
    return NULL;
}

static void a_product_of_one_hot_is_told_with_its_backward(void **state)
{
    const struct kp_advice a = hot_advise(*state, "aten::one_hot", "aten::linear");
    assert_non_null(product_find(&a));
    assert_float_equal(product_find(&a)->step_ns, 510000, 1);
    assert_non_null(strstr(product_find(&a)->change, "torch.nn.Embedding("));
}

static void one_hot_for_a_loss_is_not_told(void **state)
{
    const struct kp_advice a = hot_advise(*state, "aten::one_hot", "aten::mul");
    assert_null(product_find(&a));
}

static void a_product_of_anything_else_is_not_told(void **state)
{
    const struct kp_advice a = hot_advise(*state, "aten::zeros", "aten::linear");
    assert_null(product_find(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_product_of_one_hot_is_told_with_its_backward),
        LITTLE(one_hot_for_a_loss_is_not_told),
        LITTLE(a_product_of_anything_else_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

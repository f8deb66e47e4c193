// SPDX-License-Identifier: Apache-2.0
/* test_repeatrule.c - copies of what is only repeated, and ops whose copies are needed */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000 };

/* Each step: `first` of 4 us, `second` of 200 us with `inside`, `last`, and 700 us of something else. */
static struct kp_advice repeat_advise(struct little *t, const char *first, const char *second, const char *inside,
                                      const char *last)
{
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        op(t, first, at, 4);
        op(t, second, at + 5, 200);
        op(t, inside, at + 6, 190);
        op(t, last, at + 210, 50);
        op(t, "aten::mm", at + 270, 700);
    }
    return advise(t);
}

static const struct kp_finding *copies_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "repeated-copies") == 0) return &a->findings[i];
    return NULL;
}

#define ATTENTION "aten::scaled_dot_product_attention"

static void keys_that_are_repeated_for_heads_are_told_with_enable_gqa(void **state)
{
    const struct kp_advice a =
        repeat_advise(*state, "aten::slice", "aten::repeat_interleave", "aten::copy_", ATTENTION);
    assert_non_null(copies_find(&a));
    assert_float_equal(copies_find(&a)->step_ns, 200000, 1);
    assert_string_equal(copies_find(&a)->what,
                        "aten::repeat_interleave copies what it repeats for attention, 1.0 times per step");
    assert_non_null(strstr(copies_find(&a)->change, "enable_gqa=True"));
}

static void a_repeat_without_attention_is_told_to_broadcast(void **state)
{
    const struct kp_advice a = repeat_advise(*state, "aten::slice", "aten::repeat", "aten::copy_", "aten::add");
    assert_non_null(copies_find(&a));
    assert_non_null(strstr(copies_find(&a)->change, "x.expand(...)"));
    assert_null(strstr(copies_find(&a)->change, "enable_gqa"));
}

static void rows_that_a_tensor_of_counts_repeats_are_not_told(void **state)
{
    const struct kp_advice a =
        repeat_advise(*state, "aten::slice", "aten::repeat_interleave", "aten::index_select", "aten::add");
    assert_null(copies_find(&a));
}

static void a_copy_behind_expand_is_told(void **state)
{
    const struct kp_advice a = repeat_advise(*state, "aten::expand", "aten::contiguous", "aten::copy_", "aten::add");
    assert_non_null(copies_find(&a));
}

static void a_copy_behind_something_else_is_not_told(void **state)
{
    const struct kp_advice a = repeat_advise(*state, "aten::transpose", "aten::contiguous", "aten::copy_", "aten::add");
    assert_null(copies_find(&a));
}

static void a_view_behind_expand_is_not_told(void **state)
{
    const struct kp_advice a = repeat_advise(*state, "aten::expand", "aten::reshape", "aten::view", "aten::add");
    assert_null(copies_find(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(keys_that_are_repeated_for_heads_are_told_with_enable_gqa),
        LITTLE(a_repeat_without_attention_is_told_to_broadcast),
        LITTLE(rows_that_a_tensor_of_counts_repeats_are_not_told),
        LITTLE(a_copy_behind_expand_is_told),
        LITTLE(a_copy_behind_something_else_is_not_told),
        LITTLE(a_view_behind_expand_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

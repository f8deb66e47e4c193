// SPDX-License-Identifier: Apache-2.0
/* test_bfloat16rule.c - products in bfloat16 on a CPU that has no instructions for them */
#include "test/unit/advise/advised.h"

/* Each step of 1 ms: 600 us of this op in bfloat16, and the rest of float32. */
static struct kp_advice advice_of(struct little *t, const char *instructions, const char *op)
{
    snprintf(t->head, sizeof t->head, "\"record_shapes\":1,\"kprof\":{\"python_gc\":\"1\"%s%s%s},",
             instructions ? ",\"instructions\":\"" : "", instructions ? instructions : "", instructions ? "\"" : "");
    for (int step = 0; step < 3; step++) {
        numbered_step(t, step, 1000 * step, 1000);
        event(t, "cpu_op", op, 1, 1000 * step, 600,
              "\"Input Dims\":[[64,64]],\"Input type\":[\"c10::BFloat16\"],\"Call stack\":\"train.py(3): main\"");
        event(t, "cpu_op", "aten::mul", 1, 1000 * step + 600, 390,
              "\"Input Dims\":[[64,64]],\"Input type\":[\"float\"],\"Call stack\":\"train.py(4): main\"");
    }
    return advise(t);
}

static const struct kp_finding *found(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "bfloat-on-cpu") == 0) return &a->findings[i];
    return NULL;
}

static void products_without_instructions_are_told(void **state)
{
    const struct kp_advice a = advice_of(*state, "avx2", "aten::mm");
    assert_non_null(found(&a));
    assert_float_equal(found(&a)->step_ns, 540000, 1);
    assert_string_equal(found(&a)->where, "aten::mm");
    assert_true(found(&a)->is_critical);
}

static void a_cpu_with_such_instructions_is_fast(void **state)
{
    static const char *const has[] = {"avx2 avx512bw", "avx2 avx512bw avx512_bf16 amx_bf16", "avx2 avx_ne_convert", "",
                                      NULL};
    for (size_t i = 0; i < sizeof has / sizeof *has; i++) { /* NULL: the trace does not say */
        const struct kp_advice a = advice_of(*state, has[i], "aten::mm");
        assert_null(found(&a));
        little_teardown(state);
        little_setup(state);
    }
}

static void ops_by_element_are_not_charged(void **state)
{
    const struct kp_advice a = advice_of(*state, "avx2", "aten::mul");
    assert_null(found(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(products_without_instructions_are_told),
        LITTLE(a_cpu_with_such_instructions_is_fast),
        LITTLE(ops_by_element_are_not_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

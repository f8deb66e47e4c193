// SPDX-License-Identifier: Apache-2.0
/* test_float64rule.c - a training whose ops, or kernels, compute in float64; or in bfloat16 on a CPU that has no
 * instructions for it */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000 };
static int side = 512;                         /* of the tensors */
static const char *doubles_op = "aten::addmm"; /* what computes in float64 */

static const struct kp_finding *float64_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "float64") == 0) return &a->findings[i];
    return NULL;
}

static void typed(struct little *t, const char *name, const char *types, int ts, int dur)
{
    char args[160];
    snprintf(args, sizeof args, "\"Input Dims\":[[%d,%d],[]],\"Input type\":[%s],\"Call stack\":\"train.py(%d): main\"",
             side, side, types, dur);
    event(t, "cpu_op", name, 1, ts, dur, args);
}

/* Each step: an op of 100 us, then `doubles_us` of doubles, and the rest of float32. */
static struct kp_advice steps_advise(struct little *t, const char *first, int doubles_us)
{
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, STEP_US, "");
        typed(t, first, "\"float\",\"Scalar\"", at, 100);
        if (doubles_us) typed(t, doubles_op, "\"double\",\"\"", at + 100, doubles_us);
        typed(t, "aten::mul", "\"float\",\"Scalar\"", at + 100 + doubles_us, 890 - doubles_us);
    }
    return advise(t);
}

static void ops_of_doubles_are_told_with_half_of_their_time(void **state)
{
    const struct kp_advice a = steps_advise(*state, "aten::mul", 600);
    assert_non_null(float64_find(&a));
    assert_float_equal(float64_find(&a)->step_ns, 300000, 1);
    assert_string_equal(float64_find(&a)->where, "aten::addmm");
    assert_string_equal(float64_find(&a)->what, "61 % of the time in ops is float64 computation; aten::addmm at "
                                                "train.py:600 main is the first to receive float64");
    assert_non_null(strstr(float64_find(&a)->change, "tensor.float()"));
}

/* What a small op takes is mostly the way to it, which float32 does not shorten. */
static void small_ops_gain_little(void **state)
{
    static const struct {
        const char *op;
        int side, saved_us; /* of 600; 0: less than a tenth of the step, which is not told */
    } rows[] = {{"aten::mul", 256, 300}, {"aten::mul", 128, 150}, {"aten::mul", 45, 0},    {"aten::mm", 46, 300},
                {"aten::mm", 20, 150},   {"aten::mm", 8, 0},      {"aten::tanh", 45, 150}, {"detach", 256, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        side = rows[i].side, doubles_op = rows[i].op;
        const struct kp_advice a = steps_advise(*state, "aten::mul", 600);
        assert_true((float64_find(&a) != NULL) == (rows[i].saved_us > 0));
        if (float64_find(&a)) assert_float_equal(float64_find(&a)->step_ns, 1000 * rows[i].saved_us, 1);
        little_teardown(state);
        little_setup(state);
    }
    side = 512, doubles_op = "aten::addmm";
}

static void the_conversion_before_them_is_named(void **state)
{
    const struct kp_advice a = steps_advise(*state, "aten::to", 600);
    assert_non_null(strstr(float64_find(&a)->what, "; aten::to at train.py:100 main creates the first one"));
}

static void a_few_doubles_are_not_told(void **state)
{
    const struct kp_advice a = steps_advise(*state, "aten::to", 200);
    assert_null(float64_find(&a));
}

static void without_types_it_is_not_judged(void **state)
{
    for (int step = 0; step < 3; step++) {
        numbered_step(*state, step, STEP_US * step, STEP_US);
        op(*state, "aten::addmm", STEP_US * step, STEP_US - 10);
    }
    const struct kp_advice a = advise(*state);
    assert_null(float64_find(&a));
    assert_string_equal(a.unjudged[a.unjudged_count - 1], "ops in float64 (kprof run --record-shapes)");
}

static void with_types_it_is_judged(void **state)
{
    struct little *t = *state;
    strcpy(t->head, "\"record_shapes\":1,");
    const struct kp_advice a = steps_advise(t, "aten::to", 0);
    for (size_t i = 0; i < a.unjudged_count; i++) assert_null(strstr(a.unjudged[i], "float64"));
}

/* Kernels have their types in their names, also where no shapes were recorded. */
static void kernels_of_doubles_are_told(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, STEP_US * step, STEP_US, "");
        event(t, "kernel", "ampere_dgemm_128x64_nn", 7, STEP_US * step, 400, "\"device\":0,\"stream\":7");
        event(t, "kernel", "void vectorized_elementwise_kernel<4, FillFunctor<double> >", 7, STEP_US * step + 400, 200,
              "\"device\":0,\"stream\":7");
        event(t, "kernel", "void vectorized_elementwise_kernel<4, FillFunctor<float> >", 7, STEP_US * step + 600, 400,
              "\"device\":0,\"stream\":7");
    }
    const struct kp_advice a = advise(t);
    assert_true(a.has_gpu);
    assert_float_equal(float64_find(&a)->step_ns, 300000, 1);
    assert_int_equal(strncmp(float64_find(&a)->what, "60 % of the time in kernels is float64", 38), 0);
}

/* ---- bfloat16 ---- */

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
        LITTLE(ops_of_doubles_are_told_with_half_of_their_time),
        LITTLE(small_ops_gain_little),
        LITTLE(the_conversion_before_them_is_named),
        LITTLE(a_few_doubles_are_not_told),
        LITTLE(without_types_it_is_not_judged),
        LITTLE(with_types_it_is_judged),
        LITTLE(kernels_of_doubles_are_told),
        LITTLE(products_without_instructions_are_told),
        LITTLE(a_cpu_with_such_instructions_is_fast),
        LITTLE(ops_by_element_are_not_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

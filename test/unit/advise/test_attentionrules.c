// SPDX-License-Identifier: Apache-2.0
/* test_attentionrules.c - attention by hand, found by its ops, and what of it a fused kernel does not need */
#include "test/unit/advise/advised.h"

enum { STEPS = 3, STEP_US = 1000 };
#define HEAD "\"with_stack\":1,\"profile_memory\":1,\"record_shapes\":1,\"kprof\":{\"python_gc\":\"1\"},"
#define Q "[2, 4, 512, 64]"
#define K "[2, 4, 64, 512]"
#define SCORES "[2, 4, 512, 512]"
#define V Q

struct training {
    struct little *t;
    bool has_gpu, has_shapes;
    int at, gpu_at, id;
};

/* An op of 10 us, with a kernel of `dur` us behind the one before; without a GPU it lasts `dur` itself. */
static void work(struct training *x, const char *name, const char *shapes, int dur, const char *more)
{
    char args[256];
    snprintf(args, sizeof args, "\"Call stack\":\"train.py(12): attend\"%s%s%s",
             x->has_shapes ? ",\"Input Dims\":" : "", x->has_shapes ? shapes : "", more);
    event(x->t, "cpu_op", name, 1, x->at, x->has_gpu ? 10 : dur, args);
    if (x->has_gpu && dur) {
        snprintf(args, sizeof args, "\"correlation\":%d", ++x->id);
        event(x->t, "cuda_runtime", "cudaLaunchKernel", 1, x->at + 2, 5, args);
        snprintf(args, sizeof args, "\"device\":0,\"stream\":7,\"correlation\":%d", x->id);
        event(x->t, "kernel", "some_kernel", 7, x->gpu_at, dur, args);
    }
    x->at += x->has_gpu ? 10 : dur;
    x->gpu_at += dur;
}

static void step_begin(struct training *x, int step)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", step);
    x->at = STEP_US * step;
    x->gpu_at = x->at + 20;
    event(x->t, "user_annotation", name, 1, x->at, STEP_US, "");
}

static void forward(struct training *x, const char *softmax, int seq)
{
    char number[32];
    snprintf(number, sizeof number, ",\"Sequence number\":%d", seq);
    work(x, "aten::matmul", "[" Q "," K "]", 100, "");
    work(x, "aten::div", "[" SCORES ",[]]", 80, "");
    work(x, "aten::arange", "[[]]", 10, "");
    work(x, softmax, "[" SCORES ",[],[]]", 120, number);
    work(x, "aten::matmul", "[" SCORES "," V "]", 100, "");
}

static struct kp_advice attention_advise(struct little *t, bool has_gpu, bool has_shapes, const char *softmax)
{
    struct training x = {.t = t, .has_gpu = has_gpu, .has_shapes = has_shapes};
    strcpy(t->head, HEAD);
    for (int step = 0; step < STEPS; step++) {
        step_begin(&x, step);
        forward(&x, softmax, step + 1);
        char more[64];
        snprintf(more, sizeof more, ",\"Sequence number\":%d,\"Fwd thread id\":1", step + 1);
        work(&x, "SoftmaxBackward0", "[" SCORES "]", 150, more);
        work(&x, "aten::linear", "[[8, 64],[64, 64]]", 300, "");
    }
    return advise(t);
}

static void what_lies_between_the_products_is_charged_with_its_backward(void **state)
{
    const struct kp_advice a = attention_advise(*state, true, true, "aten::softmax");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "attention-unfused");
    assert_float_equal(a.findings[0].step_ns, (80 + 120 + 150) * 1e3, 1);
    assert_true(a.findings[0].is_critical);
    assert_string_equal(a.findings[0].line, "train.py:12 attend");
    assert_non_null(strstr(a.findings[0].change, "scaled_dot_product_attention"));
    assert_string_equal(kp_advice_bound(&a), "GPU compute");
}

static void without_a_gpu_its_ops_are(void **state)
{
    const struct kp_advice a = attention_advise(*state, false, true, "aten::softmax");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "attention-unfused");
    assert_float_equal(a.findings[0].step_ns, (80 + 120 + 150) * 1e3, 1);
}

static void one_op_less_and_it_is_no_attention(void **state)
{
    assert_int_equal(attention_advise(*state, true, true, "aten::relu").count, 0);
}

static void between_products_without_shapes_what_else_runs_ends_it(void **state)
{
    const struct kp_advice a = attention_advise(*state, true, false, "aten::softmax"); /* the arange */
    assert_int_equal(a.count, 0);
}

/* Two products of a batch with what stands between them. */
static struct kp_advice between_advise(struct little *t, const char *first, const char *scores, const char *other,
                                       bool has_shapes)
{
    struct training x = {.t = t, .has_gpu = true, .has_shapes = has_shapes};
    char shapes[128];
    strcpy(t->head, HEAD);
    for (int step = 0; step < STEPS; step++) {
        step_begin(&x, step);
        work(&x, "aten::bmm", first, 100, "");
        snprintf(shapes, sizeof shapes, "[%s]", scores);
        work(&x, "aten::softmax", shapes, 400, "");
        work(&x, other, shapes, 100, "");
        snprintf(shapes, sizeof shapes, "[%s,[8, 512, 64]]", scores);
        work(&x, "aten::bmm", shapes, 300, "");
    }
    return advise(t);
}

static void without_shapes_the_sequence_of_ops_tells(void **state)
{
    const struct kp_advice a = between_advise(*state, "", "", "aten::dropout", false);
    assert_int_equal(a.count, 1);
    assert_float_equal(a.findings[0].step_ns, 500e3, 1);
}

static void what_does_more_with_the_scores_no_kernel_can_do(void **state)
{
    assert_int_equal(between_advise(*state, "[[8, 512, 64],[8, 64, 512]]", "[8, 512, 512]", "aten::topk", true).count,
                     0);
}

static void few_keys_are_no_matter(void **state)
{
    assert_int_equal(between_advise(*state, "[[8, 512, 64],[8, 64, 16]]", "[8, 512, 16]", "aten::mul", true).count, 0);
}

static void a_softmax_of_classes_is_none(void **state)
{
    assert_int_equal(between_advise(*state, "[[512, 64],[64, 512]]", "[512, 512]", "aten::mul", true).count, 0);
}

/* scaled_dot_product_attention: 100 us of products beside 700 of what is between them. */
static struct kp_advice math_advise(struct little *t, const char *q)
{
    struct training x = {.t = t, .has_gpu = true, .has_shapes = true};
    char shapes[64];
    strcpy(t->head, HEAD);
    snprintf(shapes, sizeof shapes, "[%s,%s,%s]", q, q, q);
    for (int step = 0; step < STEPS; step++) {
        step_begin(&x, step);
        const int at = x.at;
        event(t, "cpu_op", "aten::scaled_dot_product_attention", 1, at, 60, "\"Call stack\":\"train.py(12): attend\"");
        char args[128];
        snprintf(args, sizeof args, "\"Input Dims\":%s", shapes);
        event(t, "cpu_op", "aten::_scaled_dot_product_attention_math", 1, at, 60, args);
        work(&x, "aten::matmul", "[" Q "," K "]", 100, "");
        work(&x, "aten::softmax", "[" SCORES "]", 700, "");
        work(&x, "aten::matmul", "[" SCORES "," V "]", 100, "");
    }
    return advise(t);
}

static void assert_math(struct little *t, const char *q, const char *change)
{
    const struct kp_advice a = math_advise(t, q);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "attention-unfused");
    assert_float_equal(a.findings[0].step_ns, 700e3, 1);
    assert_null(strstr(a.findings[0].what, "by hand"));
    assert_non_null(strstr(a.findings[0].change, change));
}

static void torchs_path_without_a_kernel_says_where_to_ask_why(void **state) { assert_math(*state, Q, "sdpa_kernel"); }

static void of_three_dimensions_the_reason_is_known(void **state) { assert_math(*state, "[8, 512, 64]", "no 3"); }

static void of_an_odd_width_the_reason_is_known(void **state)
{
    assert_math(*state, "[2, 4, 512, 63]", "the head width (63)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(what_lies_between_the_products_is_charged_with_its_backward),
        LITTLE(without_a_gpu_its_ops_are),
        LITTLE(one_op_less_and_it_is_no_attention),
        LITTLE(between_products_without_shapes_what_else_runs_ends_it),
        LITTLE(without_shapes_the_sequence_of_ops_tells),
        LITTLE(what_does_more_with_the_scores_no_kernel_can_do),
        LITTLE(few_keys_are_no_matter),
        LITTLE(a_softmax_of_classes_is_none),
        LITTLE(torchs_path_without_a_kernel_says_where_to_ask_why),
        LITTLE(of_three_dimensions_the_reason_is_known),
        LITTLE(of_an_odd_width_the_reason_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* test_wastedrules.c - work that is done again: cat in a loop, an embedding's rows, a generation without its cache */
#include "test/unit/advise/advised.h"

enum { STEPS = 3, STEP_US = 2000 };

static int step_begin(struct little *t, int step)
{
    numbered_step(t, step, STEP_US * step, STEP_US);
    return STEP_US * step;
}

static void shaped(struct little *t, const char *name, int at, int dur, const char *dims)
{
    char args[200];
    snprintf(args, sizeof args, "\"Input Dims\":%s,\"Call stack\":\"train.py(7): forward\"", dims);
    event(t, "cpu_op", name, 1, at, dur, args);
}

static const struct kp_finding *found(const struct kp_advice *a, const char *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, id) == 0) return &a->findings[i];
    return NULL;
}

/* A step has twelve calls of 50 us; each joins what came before, or `kept` elements, with a piece. */
static struct kp_advice joined(struct little *t, int kept)
{
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step);
        for (int i = 0; i < 12; i++) {
            char dims[64];
            snprintf(dims, sizeof dims, "[[[16,%d,8],[16,1,8]],[]]", kept ? kept : i + 1);
            shaped(t, "aten::cat", begin + 60 * i, 50, dims);
        }
        shaped(t, "aten::relu", begin + 720, 1200, "[[16,13,8]]");
    }
    return advise(t);
}

static void a_tensor_that_cat_grows_is_told_without_the_last_copy(void **state)
{
    const struct kp_advice a = joined(*state, 0);
    const struct kp_finding *const f = found(&a, "cat-in-a-loop");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 10 * 50000, 1); /* nor the first: a reader joins tensors of one shape */
    assert_string_equal(f->line, "train.py:7 forward");
}

static void cats_of_one_size_are_not_told(void **state)
{
    const struct kp_advice a = joined(*state, 4);
    assert_null(found(&a, "cat-in-a-loop"));
}

/* Three layers of a model keep `kept` keys, and one more a step, or as many as before; without shapes where it is 0. */
static struct kp_advice kept(struct little *t, int kept, int more)
{
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step);
        for (int i = 0; i < 3; i++) {
            char dims[64];
            snprintf(dims, sizeof dims, "[[[16,%d,8],[16,1,8]],[]]", kept + more * step);
            if (kept) shaped(t, "aten::cat", begin + 210 * i, 200, dims);
            else event(t, "cpu_op", "aten::cat", 1, begin + 210 * i, 200, "");
        }
        shaped(t, "aten::relu", begin + 720, 1200, "[[16,13,8]]");
    }
    return advise(t);
}

static void keys_that_grow_by_a_token_a_step_are_told_of_all_layers(void **state)
{
    const struct kp_advice a = kept(*state, 40, 1);
    const struct kp_finding *const f = found(&a, "growing-cat");
    assert_non_null(f);
    assert_int_equal(f->steps, 2); /* the first step has nothing old */
    assert_float_equal(f->step_ns, 2 * 600000 / 3.0, 1);
    assert_non_null(strstr(f->what, "2.0 times per step: 97.6 % of"));
    assert_null(found(&a, "cat-in-a-loop"));
}

/* As one token of a class beside all pieces of a picture. */
static void a_little_beside_much_that_is_new_is_not_told(void **state)
{
    const struct kp_advice a = kept(*state, 40, 0);
    assert_null(found(&a, "growing-cat"));
}

static void half_of_new_data_is_not_told(void **state)
{
    const struct kp_advice a = kept(*state, 1, 1);
    assert_null(found(&a, "growing-cat"));
}

static void cats_without_shapes_are_not_judged(void **state)
{
    const struct kp_advice a = kept(*state, 0, 0);
    assert_null(found(&a, "growing-cat"));
    bool is_said = false;
    for (size_t i = 0; i < a.unjudged_count; i++) is_said |= strstr(a.unjudged[i], "old data") != NULL;
    assert_true(is_said);
}

/* A step asks for 64 rows of an embedding of `rows`, of 8 numbers each. */
static struct kp_advice embedded(struct little *t, int rows)
{
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step);
        char dims[64];
        shaped(t, "aten::relu", begin, 1200, "[[64,8]]");
        shaped(t, "aten::embedding_dense_backward", begin + 1300, 400, "[[64,8],[64],[],[],[]]");
        shaped(t, "aten::zeros", begin + 1310, 300, "[[],[],[],[],[]]");
        snprintf(dims, sizeof dims, "[[%d,8]]", rows);
        shaped(t, "aten::zero_", begin + 1320, 280, dims);
    }
    return advise(t);
}

static void a_gradient_of_far_more_rows_than_were_asked_for_is_told(void **state)
{
    const struct kp_advice a = embedded(*state, 512);
    const struct kp_finding *const f = found(&a, "dense-embedding-gradient");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 400000, 1);
    assert_non_null(strstr(f->change, "sparse=True"));
}

/* The same with an Adam that goes over the weight in 300 us, and over another one in 20. `head`: what forward
 * multiplies has the weight's size, as one that shares it; the optimizer updates so many of that size. */
static struct kp_advice updated(struct little *t, const char *head, int of_size)
{
    static const char *const ops[] = {"aten::lerp_", "aten::addcmul_", "aten::addcdiv_"};
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step), update = begin + 1300;
        shaped(t, "aten::addmm", begin, 1000, head);
        shaped(t, "aten::embedding_dense_backward", begin + 1100, 100, "[[64,8],[64],[],[],[]]");
        shaped(t, "aten::zero_", begin + 1110, 80, "[[5000,8]]");
        event(t, "user_annotation", "Optimizer.step#Adam.step", 1, update, 400, "");
        for (int i = 0; i < 3 * of_size; i++)
            shaped(t, ops[i % 3], update + 10 + i * 300 / of_size / 3, 300 / of_size / 3, "[[5000,8],[5000,8],[]]");
        for (int i = 0; i < 3; i++) shaped(t, ops[i], update + 350 + 10 * i, 7, "[[8,8],[8,8],[]]");
    }
    return advise(t);
}

static void what_the_optimizer_does_with_all_rows_is_of_the_gradient(void **state)
{
    const struct kp_advice a = updated(*state, "[[8],[64,8],[8,8],[],[]]", 1);
    const struct kp_finding *const f = found(&a, "dense-embedding-gradient");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 400000, 1);
    assert_non_null(strstr(f->what, "has all its 5000 rows, which the optimizer updates, and a batch uses 64"));
    assert_null(found(&a, "optimizer-unfused"));
}

static void a_fused_update_is_of_the_gradient_by_its_share(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step);
        shaped(t, "aten::addmm", begin, 1000, "[[8],[64,8],[8,8],[],[]]");
        shaped(t, "aten::embedding_dense_backward", begin + 1100, 100, "[[64,8],[64],[],[],[]]");
        shaped(t, "aten::zero_", begin + 1110, 80, "[[5000,8]]");
        event(t, "user_annotation", "Optimizer.step#Adam.step", 1, begin + 1300, 410, "");
        shaped(t, "aten::_fused_adam_", begin + 1305, 400, "[[[5000,8],[10000]],[[5000,8],[10000]],[],[]]");
    }
    const struct kp_advice a = advise(t);
    const struct kp_finding *const f = found(&a, "dense-embedding-gradient");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 100000 + 0.8 * 400000, 1);
}

static void a_weight_that_a_head_shares_has_all_rows_anyway(void **state)
{
    const struct kp_advice a = updated(*state, "[[5000],[64,8],[8,5000],[],[]]", 1);
    assert_null(found(&a, "dense-embedding-gradient"));
    assert_non_null(found(&a, "optimizer-unfused"));
}

static void half_is_the_embeddings_beside_a_head_as_large(void **state)
{
    const struct kp_advice a = updated(*state, "[[5000],[64,8],[8,5000],[],[]]", 2);
    const struct kp_finding *const f = found(&a, "dense-embedding-gradient");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 250000, 1);
}

static void a_gradient_of_rows_most_of_which_were_asked_for_is_not_told(void **state)
{
    const struct kp_advice a = embedded(*state, 500);
    assert_null(found(&a, "dense-embedding-gradient"));
}

static void a_gradient_without_shapes_is_not_judged(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step);
        event(t, "cpu_op", "aten::relu", 1, begin, 1200, "");
        event(t, "cpu_op", "aten::embedding_dense_backward", 1, begin + 1300, step ? 200 : 0, "");
    }
    const struct kp_advice a = advise(t);
    size_t found = 0;
    for (size_t i = 0; i < a.unjudged_count; i++) found += strstr(a.unjudged[i], "rows of an embedding") != NULL;
    assert_int_equal(found, 1);
}

/* The gradient takes 2 % of a step, and an optimizer `update` us. */
static size_t small_unjudged(struct little *t, int update)
{
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step);
        event(t, "cpu_op", "aten::relu", 1, begin, 1200, "");
        event(t, "cpu_op", "aten::embedding_dense_backward", 1, begin + 1300, 40, "");
        event(t, "user_annotation", "Optimizer.step#Adagrad.step", 1, begin + 1400, update, "");
        event(t, "cpu_op", "aten::add_", 1, begin + 1400, update, "");
    }
    const struct kp_advice a = advise(t);
    size_t found = 0;
    for (size_t i = 0; i < a.unjudged_count; i++) found += strstr(a.unjudged[i], "rows of an embedding") != NULL;
    return found;
}

static void a_small_gradient_beside_a_long_update_is_not_judged(void **state)
{
    assert_int_equal(small_unjudged(*state, 500), 1);
}

static void a_small_gradient_beside_a_short_update_is_passed_over(void **state)
{
    assert_int_equal(small_unjudged(*state, 50), 0);
}

/* A step makes twelve tokens; the embedding gets `first` tokens, and `more` more each time. */
static struct kp_advice generated(struct little *t, int first, int more)
{
    for (int step = 0; step < STEPS; step++) {
        const int begin = step_begin(t, step);
        for (int i = 0; i < 12; i++) {
            char dims[64];
            snprintf(dims, sizeof dims, "[[500,8],[1,%d],[],[],[]]", first + i * more);
            shaped(t, "aten::embedding", begin + 150 * i, 20, dims);
            shaped(t, "aten::mm", begin + 150 * i + 20, 120, "[[8,8],[8,8]]");
        }
    }
    return advise(t);
}

static void a_generation_that_takes_all_tokens_again_is_told(void **state)
{
    const struct kp_advice a = generated(*state, 20, 1);
    const struct kp_finding *const f = found(&a, "tokens-again");
    assert_non_null(f);
    assert_true(f->is_critical);
    assert_string_equal(f->what, "for each new token the model recomputes all tokens before it (20 to 31)");
}

static void a_generation_of_one_token_a_pass_is_not_told(void **state)
{
    const struct kp_advice a = generated(*state, 1, 0);
    assert_null(found(&a, "tokens-again"));
}

static void sequences_of_other_lengths_are_not_told(void **state)
{
    const struct kp_advice a = generated(*state, 20, 3);
    assert_null(found(&a, "tokens-again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_tensor_that_cat_grows_is_told_without_the_last_copy),
        LITTLE(cats_of_one_size_are_not_told),
        LITTLE(keys_that_grow_by_a_token_a_step_are_told_of_all_layers),
        LITTLE(a_little_beside_much_that_is_new_is_not_told),
        LITTLE(half_of_new_data_is_not_told),
        LITTLE(cats_without_shapes_are_not_judged),
        LITTLE(a_gradient_of_far_more_rows_than_were_asked_for_is_told),
        LITTLE(what_the_optimizer_does_with_all_rows_is_of_the_gradient),
        LITTLE(a_fused_update_is_of_the_gradient_by_its_share),
        LITTLE(a_weight_that_a_head_shares_has_all_rows_anyway),
        LITTLE(half_is_the_embeddings_beside_a_head_as_large),
        LITTLE(a_gradient_of_rows_most_of_which_were_asked_for_is_not_told),
        LITTLE(a_gradient_without_shapes_is_not_judged),
        LITTLE(a_small_gradient_beside_a_long_update_is_not_judged),
        LITTLE(a_small_gradient_beside_a_short_update_is_passed_over),
        LITTLE(a_generation_that_takes_all_tokens_again_is_told),
        LITTLE(a_generation_of_one_token_a_pass_is_not_told),
        LITTLE(sequences_of_other_lengths_are_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

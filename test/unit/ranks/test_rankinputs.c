// SPDX-License-Identifier: Apache-2.0
/* test_rankinputs.c - why the late rank has more to do: larger inputs, more calls, or neither */
#include "export/answers/ranks/rankwaits.h"

#include "test/unit/tree/little_trace.h"

enum { STEPS = 3, STEP_US = 10000 };

/* Steps of aten::add_ and so many aten::mm, of which the data has these lengths by step; 0: no shapes were recorded. */
struct work {
    int lengths[STEPS], products, product_us;
};

static void rank_add(struct kp_rankwaits *w, int rank, int world, const struct work *work)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    const int length =
        snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":%d},", rank, world);
    if (work->lengths[0]) snprintf(t->head + length, sizeof t->head - (size_t)length, "\"record_shapes\":1,");
    for (int i = 0; i < STEPS; i++) {
        char dims[96] = "";
        const int from = STEP_US * (i + 1), own = 10 + work->products * work->product_us;
        numbered_step(t, i, from, STEP_US);
        if (work->lengths[i]) snprintf(dims, sizeof dims, "\"Input Dims\":[[64],[64]]");
        event(t, "cpu_op", "aten::add_", 1, from, 10, dims);
        if (work->lengths[i]) snprintf(dims, sizeof dims, "\"Input Dims\":[[8,%d],[64,64]]", work->lengths[i]);
        for (int k = 0; k < work->products; k++)
            event(t, "cpu_op", "aten::mm", 1, from + 10 + k * work->product_us, work->product_us, dims);
        event(t, "user_annotation", "gloo:all_reduce", 2, from + own, STEP_US - 10 - own, "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

static const char *cause_of(const struct work *usual, const struct work *late, int world)
{
    static char text[KP_RANKCAUSE_BYTES];
    struct kp_rankwaits w = {0};
    for (int rank = 0; rank + 1 < world; rank++) rank_add(&w, rank, world, usual);
    rank_add(&w, world - 1, world, late);
    kp_rankwaits_settle(&w);
    assert_true(kp_rankwaits_cause(text, sizeof text, &w, kp_rankwaits_late(&w)));
    kp_rankwaits_fini(&w);
    return text;
}

static const struct work usual = {{100, 100, 100}, 4, 500};

static void larger_inputs_are_told_with_the_first_that_is(void **state)
{
    (void)state;
    assert_string_equal(
        cause_of(&usual, &(struct work){{250, 250, 250}, 4, 1250}, 2),
        "rank 1 spends 5.0 ms of each step on ops, the other rank 2.0 ms; aten::mm takes 5.0 ms per step there, "
        "2.0 ms on the other. Its inputs are 2.5 times as large from aten::mm on: [8, 250] there, "
        "[8, 100] on the other");
}

static void inputs_that_vary_are_told_by_their_medians(void **state)
{
    const char *const text = cause_of(&usual, &(struct work){{900, 100, 260}, 4, 1250}, 3);
    (void)state;
    assert_non_null(strstr(text,
                           ". Its inputs are 4.2 times as large from aten::mm on: [8, 260] there, [8, 100] on the "
                           "others (medians)"));
}

static void equal_inputs_explain_nothing(void **state)
{
    const char *const text = cause_of(&usual, &(struct work){{100, 100, 110}, 4, 1250}, 2);
    (void)state;
    assert_null(strstr(text, "inputs"));
}

static void more_calls_are_told_as_such(void **state)
{
    const char *const text = cause_of(&usual, &(struct work){{250, 250, 250}, 10, 500}, 2);
    (void)state;
    assert_non_null(strstr(text, ". It calls aten::mm 10 times per step, the other 4"));
    assert_null(strstr(text, "inputs"));
}

/* A loop over longer inputs: only its first calls are compared, and all are counted. */
static void calls_of_a_long_loop_are_all_counted(void **state)
{
    static const struct work few = {{100, 100, 100}, 70, 20}, many = {{100, 100, 100}, 200, 20};
    (void)state;
    assert_non_null(strstr(cause_of(&few, &many, 2), ". It calls aten::mm 200 times per step, the other 70"));
}

static void without_shapes_it_says_how_to_record_them(void **state)
{
    static const struct work plain = {{0}, 4, 500}, slow = {{0}, 4, 1250}, more = {{0}, 10, 500};
    (void)state;
    assert_non_null(strstr(cause_of(&plain, &slow, 2),
                           ". Larger inputs are not ruled out: kprof run --record-shapes compares them"));
    assert_null(strstr(cause_of(&plain, &more, 2), "--record-shapes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(larger_inputs_are_told_with_the_first_that_is),
        cmocka_unit_test(inputs_that_vary_are_told_by_their_medians),
        cmocka_unit_test(equal_inputs_explain_nothing),
        cmocka_unit_test(more_calls_are_told_as_such),
        cmocka_unit_test(calls_of_a_long_loop_are_all_counted),
        cmocka_unit_test(without_shapes_it_says_how_to_record_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

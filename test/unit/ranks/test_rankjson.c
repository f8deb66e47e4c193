// SPDX-License-Identifier: Apache-2.0
/* test_rankjson.c - what all traces of a job tell together, as JSON */
#include "export/answers/ranks/rankjson.h"

#include "test/unit/tree/little_trace.h"

/* Steps of 100 us of a rank of two, each with a collective of so many us. */
static void rank_add(struct kp_rankwaits *w, int rank, int wait)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},", rank);
    for (int i = 0; i < 2; i++) {
        numbered_step(t, i, 100 * i, 100);
        op(t, "aten::mm", 100 * i, 5);
        event(t, "user_annotation", "gloo:all_reduce", 2, 100 * i + 5, wait, "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

/* Ten steps of 100 us, each with a broadcast and an all-reduce of so many us. */
static void rank_in_turn_add(struct kp_rankwaits *w, int rank, const int *waits)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},", rank);
    for (int i = 0; i < 10; i++) {
        numbered_step(t, i, 100 * (i + 1), 100);
        op(t, "aten::mm", 100 * (i + 1), 5);
        event(t, "user_annotation", "gloo:broadcast", 2, 100 * (i + 1) + 5, waits[0], "");
        event(t, "user_annotation", "gloo:all_reduce", 2, 100 * (i + 1) + 50, waits[1], "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

static const char *printed(int ranks, const char *stands)
{
    static char text[1024];
    struct kp_rankwaits w = {0};
    for (int i = 0; i < ranks; i++) rank_add(&w, i, i ? 10 : 60);
    kp_rankwaits_settle(&w);
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text, "w");
    kp_rankjson_print(out, &w, stands);
    fclose(out);
    kp_rankwaits_fini(&w);
    return text;
}

static void ranks_say_together_who_came_last(void **state)
{
    (void)state;
    const char *const text = printed(2, NULL);
    assert_int_equal(
        strncmp(text, "{\"ranks\":{\"stuck\":null,\"missing\":null,\"matched\":2,\"last\":1,\"cause\":", 65), 0);
    assert_non_null(
        strstr(text, "\"turns\":[],\"rows\":[{\"rank\":0,\"last\":0,\"waited_ms\":0.100000},{\"rank\":1,\"last\":2,"
                     "\"waited_ms\":0.000000}]}}\n"));
}

/* Rank 1 waits for what rank 0 sends, and rank 0 then until rank 1 has unpacked it. */
static void ranks_that_wait_in_turn_are_named(void **state)
{
    static const int waits[2][2] = {{2, 45}, {22, 5}};
    struct kp_rankwaits w = {0};
    char text[1024] = "";
    (void)state;
    for (int rank = 0; rank < 2; rank++) rank_in_turn_add(&w, rank, waits[rank]);
    kp_rankwaits_settle(&w);
    FILE *out = fmemopen(text, sizeof text, "w");
    kp_rankjson_print(out, &w, NULL);
    fclose(out);
    kp_rankwaits_fini(&w);
    assert_non_null(strstr(text, "\"turns\":["
                                 "{\"rank\":1,\"name\":\"gloo:all_reduce\",\"waited_ms\":0.400000},"
                                 "{\"rank\":0,\"name\":\"gloo:broadcast\",\"waited_ms\":0.200000}],\"rows\":["));
}

static void of_a_job_that_stands_none_came_last(void **state)
{
    (void)state;
    assert_string_equal(printed(2, "rank 1 is in \"fetch\""),
                        "{\"ranks\":{\"stuck\":\"rank 1 is in \\\"fetch\\\"\",\"missing\":null}}\n");
    assert_string_equal(printed(0, "the program is in no op"),
                        "{\"ranks\":{\"stuck\":\"the program is in no op\",\"missing\":null}}\n");
}

static void one_trace_alone_has_no_such_line(void **state)
{
    (void)state;
    assert_string_equal(printed(1, NULL), "");
    assert_string_equal(printed(0, NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_say_together_who_came_last),
        cmocka_unit_test(ranks_that_wait_in_turn_are_named),
        cmocka_unit_test(of_a_job_that_stands_none_came_last),
        cmocka_unit_test(one_trace_alone_has_no_such_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

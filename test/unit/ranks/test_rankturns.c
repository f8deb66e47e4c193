// SPDX-License-Identifier: Apache-2.0
/* test_rankturns.c - ranks that wait for each other, each late at a collective of its own */
#include "export/answers/ranks/rankwaits.h"

#include "test/unit/tree/little_trace.h"

enum { STEPS = 10 };

/* Each step has a broadcast and an all-reduce of these lengths. */
static void rank_add(struct kp_rankwaits *w, int rank, const int *broadcasts, const int *reduces)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"distributedInfo\":{\"rank\":%d,\"world_size\":2},", rank);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        event(t, "user_annotation", name, 1, 100 * (i + 1), 100, "");
        op(t, "aten::mm", 100 * (i + 1), 1);
        event(t, "cpu_op", "c10d::broadcast_", 1, 100 * (i + 1) + 2, 1, "\"Call stack\":\"train.py(5): main\"");
        event(t, "cpu_op", "c10d::allreduce_", 1, 100 * (i + 1) + 4, 1, "\"Call stack\":\"train.py(9): main\"");
        event(t, "user_annotation", "gloo:broadcast", 2, 100 * (i + 1) + 5, broadcasts[i % 2], "");
        event(t, "user_annotation", "gloo:all_reduce", 2, 100 * (i + 1) + 50, reduces[i % 2], "");
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_rankwaits_add(w, &t->tree, &t->chosen);
    assert_int_equal(little_teardown(&state), 0);
}

struct job {
    int broadcasts[2][2], reduces[2][2]; /* of a rank, in even and odd steps */
    const char *said;
};

static void check(const struct job *job)
{
    struct kp_rankwaits w = {0};
    char text[KP_RANKCAUSE_BYTES];
    for (int rank = 0; rank < 2; rank++) rank_add(&w, rank, job->broadcasts[rank], job->reduces[rank]);
    kp_rankwaits_settle(&w);
    assert_string_equal(kp_rankwaits_in_turn(text, sizeof text, &w), job->said);
    const bool is_each = kp_rankwaits_kind(&w, 0) == KP_RANKWAIT_EACH;
    assert_int_equal(is_each, *job->said != '\0');
    kp_rankwaits_fini(&w);
}

/* Rank 1 waits 20 us for what rank 0 sends, and rank 0 then 40 us until rank 1 has unpacked it. */
static void each_is_late_at_a_collective_of_its_own(void **state)
{
    (void)state;
    check(&(struct job){
        {{2, 2}, {22, 22}},
        {{45, 45}, {5, 5}},
        "ranks wait for each other in turn: for rank 1 in gloo:all_reduce at train.py:9 main (40.0 us per "
        "step), for rank 0 in gloo:broadcast at train.py:5 main (20.0 us per step)"});
}

static void by_chance_one_is_late_and_then_the_other(void **state)
{
    (void)state;
    check(&(struct job){{{2, 22}, {22, 2}}, {{45, 5}, {5, 45}}, ""});
}

static void one_that_is_late_alone_takes_no_turn(void **state)
{
    (void)state;
    check(&(struct job){{{22, 22}, {2, 2}}, {{45, 45}, {5, 5}}, ""});
    check(&(struct job){{{2, 2}, {4, 4}}, {{45, 45}, {5, 5}}, ""});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_late_at_a_collective_of_its_own),
        cmocka_unit_test(by_chance_one_is_late_and_then_the_other),
        cmocka_unit_test(one_that_is_late_alone_takes_no_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
